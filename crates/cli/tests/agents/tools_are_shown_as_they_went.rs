//! `logs` shows what an agent did with files and commands, and which of it failed.

use crate::bed::Bed;
use ostler_mock_llm::agents::Agent;
use serde_json::{Value, json};

/// What `logs` says, for a person and for a program: the names and details of the tools, and whether each failed.
#[track_caller]
fn logged(bed: &Bed) -> (String, Vec<(String, String)>, Vec<bool>) {
    let session = bed.last();
    let text = bed.harness.run(&["logs", session.id()]).exits(0).stdout;
    let lines = bed.harness.run(&["logs", "--json", session.id()]).exits(0).stdout;
    let items: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &'static str| items.iter().filter(move |item| item["kind"] == kind);
    let word = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let called = of("tool_called").map(|item| (word(item, "name"), word(item, "detail"))).collect();
    let failed = of("tool_returned").map(|item| item["failed"].as_bool().unwrap()).collect();
    (text, called, failed)
}

#[test]
fn codex_shows_its_changes_of_files_and_its_failed_commands() {
    let Some(bed) = Bed::new(Agent::Codex) else { return };
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\nEOF\n";
    let script = format!("{} ; {} ; say done", bed.tool(patch), bed.tool("exit 3"));
    bed.follow(&script).exits(0);
    assert_eq!(bed.written("made.txt"), "hello\n");
    let (text, called, failed) = logged(&bed);
    assert_eq!(called[0].0, "edit", "{called:?}");
    assert!(called[0].1.ends_with("/made.txt (add)"), "{called:?}");
    assert_eq!(failed, [false, true]);
    assert!(text.contains("✘ failed"), "{text}");
    bed.proves("`logs` shows changes of files");
    bed.proves("`logs` shows that a command failed");
}

#[test]
fn gemini_shows_its_failed_commands() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    bed.follow(&format!("{} ; {} ; say done", bed.tool("exit 3"), bed.tool("echo fine"))).exits(0);
    let (text, _, failed) = logged(&bed);
    assert_eq!(failed, [true, false]);
    assert!(text.contains("✘ Command exited with code: 3"), "{text}");
    bed.proves("`logs` shows that a command failed without output");
}

#[test]
fn opencode_shows_its_files_and_its_failed_commands() {
    let Some(bed) = Bed::new(Agent::Opencode) else { return };
    let file = bed.work().join("made.txt");
    let write = format!("tool write {}", json!({"filePath": file, "content": "hello"}));
    bed.follow(&format!("{write} ; {} ; say done", bed.tool("echo oh; exit 3"))).exits(0);
    let (text, called, failed) = logged(&bed);
    assert_eq!(called[0], ("write".to_owned(), file.to_str().unwrap().to_owned()));
    assert_eq!(failed, [false, true]);
    assert!(text.contains("✘ oh"), "{text}");
    bed.proves("`logs` shows changes of files");
    bed.proves("`logs` shows that a command failed");
}
