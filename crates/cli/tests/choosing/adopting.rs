//! Which conversation `ostler adopt` adopts, and its message when it adopts none. The tests write the agents' stores
//! themselves; no real agent is started.

use crate::{harness_with, program};
use ostler_testkit::{Harness, Started};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const ONE: &str = "3f8e0c1a-5a4e-4e53-9d0b-6a3f6c1f2b77";
const OTHER: &str = "3f8e9999-5a4e-4e53-9d0b-6a3f6c1f2b77";
const CODEX: &str = "01a1ddbd-408d-7262-88d9-97e7e2d532f0";

/// A machine with claude and codex and a folder to work in.
fn machine() -> (Harness, PathBuf) {
    let (harness, _) = harness_with(&["claude", "codex"]);
    let work = harness.root().join("work");
    std::fs::create_dir(&work).unwrap();
    (harness, work)
}

fn write(file: &Path, lines: &[Value]) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

fn claude_file(config: &Path, work: &Path, id: &str) -> PathBuf {
    let project: String =
        work.to_str().unwrap().chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
    config.join("projects").join(project).join(format!("{id}.jsonl"))
}

fn claude_lines(work: &Path, id: &str) -> Vec<Value> {
    let line = |uuid: &str, parent: Value, kind: &str, content: Value| {
        let message = json!({"role": kind, "content": content});
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id, "cwd": work, "message": message})
    };
    vec![
        line("a", Value::Null, "user", json!("fix the parser\nand the rest")),
        line("b", json!("a"), "assistant", json!([{"type": "text", "text": "fixed"}])),
    ]
}

/// A conversation of claude below the home.
fn claude(harness: &Harness, work: &Path, id: &str) -> PathBuf {
    let file = claude_file(&harness.root().join("home/.claude"), work, id);
    write(&file, &claude_lines(work, id));
    file
}

fn sessions(harness: &Harness) -> usize {
    harness.ls().len()
}

#[test]
fn a_conversation_is_named_by_the_beginning_of_its_id_or_by_its_file_and_becomes_a_session() {
    let (harness, work) = machine();
    let file = claude(&harness, &work, ONE);
    claude(&harness, &work, OTHER);
    let ambiguous = harness.run(&["adopt", "3f8e"]).exits(2);
    assert!(ambiguous.complaint().contains(ONE) && ambiguous.complaint().contains(OTHER), "{ambiguous:?}");
    assert_eq!(sessions(&harness), 0);

    let adopted = harness.run(&["adopt", "3f8e0"]).exits(0);
    let id = adopted.stdout.trim_end();
    let about = format!("adopted as {id}: claude {ONE}, {}, \"fix the parser\", 2 messages", work.display());
    assert!(adopted.stderr.contains(&about), "{adopted:?}");
    let shown = harness.run(&["show", "--json", id]).exits(0).json();
    assert_eq!(shown["transcript"], file.to_str().unwrap());
    assert_eq!(shown["cwd"], work.to_str().unwrap());
    assert_eq!((&shown["title"], &shown["status"]), (&json!("fix the parser"), &json!("succeeded")));
    let said = harness.run(&["logs", id]).exits(0).stdout;
    assert_eq!(said, "› fix the parser\n  and the rest\nfixed\n");
    let lines = harness.run(&["logs", "--json", id]).exits(0).stdout;
    assert!(lines.contains(r#""kind":"told""#) && lines.contains(r#""kind":"said""#), "{lines}");

    let other = claude_file(&harness.root().join("home/.claude"), &work, OTHER);
    harness.run(&["adopt", other.to_str().unwrap()]).exits(0);
    assert_eq!(sessions(&harness), 2);
    let kept = harness.run(&["adopt", id]).exits(7);
    assert!(kept.complaint().contains(&format!("this conversation already belongs to session {id}")), "{kept:?}");
}

#[test]
fn a_conversation_that_is_not_found_is_refused_with_the_places_that_were_searched() {
    let (mut harness, work) = machine();
    let unknown = harness.run(&["adopt", ONE]).exits(3);
    for place in ["~/.claude/projects", "~/.codex/sessions", "~/.gemini/tmp", "opencode.db"] {
        assert!(unknown.complaint().contains(place), "{unknown:?}");
    }
    let nothing = harness.run(&["adopt"]).exits(2);
    assert!(nothing.complaint().contains("ostler adopt CONVERSATION"), "{nothing:?}");
    // It is searched for in the folder that the agent's own variable names, and only there.
    let config = harness.root().join("elsewhere");
    write(&claude_file(&config, &work, ONE), &claude_lines(&work, ONE));
    harness.run(&["adopt", ONE]).exits(3);
    let file = claude_file(&config, &work, ONE);
    let outside = harness.run(&["adopt", file.to_str().unwrap()]).exits(2);
    assert!(outside.complaint().contains("is not where an agent keeps a conversation"), "{outside:?}");
    harness.set("CLAUDE_CONFIG_DIR", &config);
    harness.run(&["adopt", ONE]).exits(0);
}

#[test]
fn what_an_older_gemini_wrote_is_named_with_the_command_that_converts_it() {
    let (harness, work) = machine();
    const ID: &str = "aaaa1111-2222-4333-8444-555566667777";
    let project = harness.root().join("home/.gemini/tmp/work");
    let file = project.join("chats/session-2026-10-01T10-00-aaaa1111.json");
    write(&file, &[json!({"sessionId": ID, "messages": [{"type": "user", "content": "hello"}]})]);
    std::fs::write(project.join(".project_root"), work.to_str().unwrap()).unwrap();
    for word in [ID, "aaaa1", file.to_str().unwrap()] {
        let refused = harness.run(&["adopt", word]).exits(2);
        let reason = format!("an older gemini wrote {ID}, in a form that ostler cannot read; gemini converts it");
        let what_to_do = format!("run gemini --resume {ID} in {} once, then adopt it", work.display());
        assert!(refused.complaint().contains(&reason) && refused.complaint().contains(&what_to_do), "{refused:?}");
    }
    // As gemini converts it: the conversation is in the new file beside the old one.
    write(&file.with_extension("jsonl"), &[json!({"sessionId": ID}), json!({"type": "user", "content": "hello"})]);
    let missing = harness.run(&["adopt", ID]);
    assert!(!missing.stderr.contains("an older gemini"), "{missing:?}");
}

#[test]
fn an_adopted_conversation_has_the_times_of_its_record() {
    let (harness, work) = machine();
    let file = claude_file(&harness.root().join("home/.claude"), &work, ONE);
    let mut lines = claude_lines(&work, ONE);
    lines.extend(claude_lines(&work, ONE));
    let texts = [
        json!("early"),
        json!([{"type": "text", "text": "first"}]),
        json!("late"),
        json!([{"type": "text", "text": "second"}]),
    ];
    for (n, (line, text)) in lines.iter_mut().zip(texts).enumerate() {
        let ago = jiff::SignedDuration::from_mins(if n < 2 { 180 } else { 20 });
        line["timestamp"] = json!((jiff::Timestamp::now() - ago).to_string());
        line["uuid"] = json!(n.to_string());
        line["parentUuid"] = if n == 0 { Value::Null } else { json!((n - 1).to_string()) };
        line["message"]["content"] = text;
    }
    write(&file, &lines);
    let id = harness.run(&["adopt", ONE]).exits(0).stdout.trim_end().to_owned();
    let logs = |words: &[&str]| harness.run(&[&["logs", &id], words].concat()).exits(0).stdout;
    let (early, late) = ("› early\nfirst\n", "› late\nsecond\n");
    assert_eq!(logs(&[]), format!("{early}{late}"));
    assert_eq!(logs(&["--since", "4h"]), format!("{early}{late}"));
    assert_eq!(logs(&["--since", "1h"]), late);
    assert_eq!(logs(&["--since", "1h", "-n", "1"]), "second\n");
    assert_eq!(logs(&["--since", "1m"]), "");
}

#[test]
fn what_could_not_be_continued_is_refused_before_anything_is_made() {
    let (mut harness, work) = machine();
    let gone = harness.root().join("gone");
    claude(&harness, &gone, ONE);
    let refused = harness.run(&["adopt", ONE]).exits(2);
    assert!(refused.complaint().contains(&format!("the folder of {ONE} is gone: {}", gone.display())), "{refused:?}");

    let empty = claude_file(&harness.root().join("home/.claude"), &work, OTHER);
    write(&empty, &[json!({"type": "last-prompt", "sessionId": OTHER, "cwd": work})]);
    let refused = harness.run(&["adopt", OTHER]).exits(2);
    assert!(refused.complaint().contains("has no messages"), "{refused:?}");

    let rollout =
        harness.root().join(format!("home/.codex/sessions/2026/11/16/rollout-2026-11-16T05-56-34-{CODEX}.jsonl"));
    let said = json!({"type": "response_item", "timestamp": "x",
        "payload": {"type": "message", "role": "assistant", "content": [{"text": "done"}]}});
    let meta = json!({"type": "session_meta", "timestamp": "x", "payload": {"id": CODEX, "cwd": work}});
    write(&rollout, &[meta, said]);
    for (words, why) in [
        (&["adopt", CODEX, "--", "resume", ONE][..], "the conversation is already named"),
        (&["adopt", "-t", CODEX], "-t needs a terminal"),
        (&["adopt", "-t", "--output", "json", CODEX], "--output is for sessions without a terminal"),
        (&["adopt", "--name", "a/b", CODEX], "name"),
        (&["adopt", CODEX, " "], "the message is empty"),
    ] {
        let refused = harness.run(words).exits(2);
        assert!(refused.complaint().contains(why), "{words:?}: {refused:?}");
    }
    let bin = harness.root().join("no agents");
    std::fs::create_dir(&bin).unwrap();
    harness.set("PATH", &bin);
    let refused = harness.run(&["adopt", CODEX]).exits(2);
    assert!(refused.complaint().contains("codex is not installed"), "{refused:?}");
    assert_eq!(sessions(&harness), 0);
    let left = std::fs::read_dir(harness.home().join("sessions")).map_or(0, |entries| entries.count());
    assert_eq!(left, 0, "not even a hidden folder");
}

#[test]
fn a_damaged_transcript_is_repaired_first() {
    let (harness, work) = machine();
    let file = claude(&harness, &work, ONE);
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{whole}{{\"type\":\"assis")).unwrap();
    let adopted = harness.run(&["adopt", ONE]).exits(0);
    assert!(adopted.stderr.contains("ostler: repaired: "), "{adopted:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    let events = harness.run(&["events"]).exits(0).stdout;
    assert!(events.contains(r#""mended""#) && events.contains("\"adopted\""), "{events}");
}

#[test]
fn of_several_adoptions_at_once_one_succeeds_and_the_others_are_refused() {
    let (harness, work) = machine();
    claude(&harness, &work, ONE);
    let started: Vec<Started> = (0..10).map(|_| harness.start(&["adopt", ONE])).collect();
    let outputs: Vec<_> = started.into_iter().map(Started::finish).collect();
    let adopted: Vec<_> = outputs.iter().filter(|output| output.code == Some(0)).collect();
    assert_eq!(adopted.len(), 1, "{outputs:#?}");
    let id = adopted[0].stdout.trim_end();
    for output in outputs.iter().filter(|output| output.code != Some(0)) {
        assert_eq!(output.code, Some(7));
        assert!(
            output.complaint().contains(&format!("this conversation already belongs to session {id}")),
            "{output:?}"
        );
    }
    assert_eq!(sessions(&harness), 1);
}

#[test]
fn a_conversation_whose_agent_fails_is_adopted_and_the_failure_is_reported() {
    let (harness, work) = machine();
    claude(&harness, &work, ONE);
    // The program is found, and exits with an error.
    program(&harness, &harness.root().join("bin"), "claude", "exit 3");
    let output = harness.run(&["adopt", ONE, "go on"]);
    assert_ne!(output.code, Some(0), "{output:?}");
    assert_eq!(sessions(&harness), 1);
    let said = harness.run(&["logs", "@last"]).exits(0).stdout;
    assert!(said.starts_with("› fix the parser"), "{said}");
}

#[test]
fn ids_are_completed_from_the_names_of_files() {
    let (mut harness, work) = machine();
    claude(&harness, &work, ONE);
    harness.set("OSTLER_COMPLETE", "zsh");
    harness.set("_CLAP_COMPLETE_INDEX", "2");
    let offered = harness.run(&["--", "ostler", "adopt", "3f8"]).exits(0).stdout;
    assert!(offered.starts_with(&format!("{ONE}:claude, ")), "{offered}");
}
