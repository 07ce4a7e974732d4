//! `logs` shows what an agent did with files and commands, and what failed.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use serde_json::{Value, json};

/// The text of `logs`, and from its JSON the names and details of the tools, and whether each failed.
#[track_caller]
fn logged(fixture: &Fixture) -> (String, Vec<(String, String)>, Vec<bool>) {
    let session = fixture.last();
    let text = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    let lines = fixture.harness.run(&["logs", "--json", session.id()]).exits(0).stdout;
    let items: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &'static str| items.iter().filter(move |item| item["kind"] == kind);
    let word = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let called = of("tool_called").map(|item| (word(item, "name"), word(item, "detail"))).collect();
    let failed = of("tool_returned").map(|item| item["failed"].as_bool().unwrap()).collect();
    (text, called, failed)
}

#[test]
fn codex_shows_its_changes_of_files_and_its_failed_commands() {
    let Some(fixture) = Fixture::new(Agent::Codex) else { return };
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\nEOF\n";
    let script = format!("{} ; {} ; say done", fixture.tool(patch), fixture.tool("exit 3"));
    fixture.follow(&script).exits(0);
    assert_eq!(fixture.written("made.txt"), "hello\n");
    let (text, called, failed) = logged(&fixture);
    assert_eq!(called[0].0, "edit", "{called:?}");
    assert!(called[0].1.ends_with("/made.txt (add)"), "{called:?}");
    assert_eq!(failed, [false, true]);
    assert!(text.contains("✘ failed"), "{text}");
    fixture.proves("`logs` shows changes of files");
    fixture.proves("`logs` shows that a command failed");
}

#[test]
fn gemini_shows_its_failed_commands() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    fixture.follow(&format!("{} ; {} ; say done", fixture.tool("exit 3"), fixture.tool("echo fine"))).exits(0);
    let (text, _, failed) = logged(&fixture);
    assert_eq!(failed, [true, false]);
    assert!(text.contains("✘ Command exited with code: 3"), "{text}");
    fixture.proves("`logs` shows that a command failed without output");
}

#[test]
fn opencode_shows_its_files_and_its_failed_commands() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    let file = fixture.work().join("made.txt");
    let write = format!("tool write {}", json!({"filePath": file, "content": "hello"}));
    fixture.follow(&format!("{write} ; {} ; say done", fixture.tool("echo oh; exit 3"))).exits(0);
    let (text, called, failed) = logged(&fixture);
    assert_eq!(called[0], ("write".to_owned(), file.to_str().unwrap().to_owned()));
    assert_eq!(failed, [false, true]);
    assert!(text.contains("✘ oh"), "{text}");
    fixture.proves("`logs` shows changes of files");
    fixture.proves("`logs` shows that a command failed");
}
