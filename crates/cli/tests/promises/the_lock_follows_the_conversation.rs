//! When an agent changes its conversation in the middle of a run, its lock moves to the new one, and the old one is
//! free. If another session uses the new one already, an alarm says so, and neither session is ended.

use crate::harness;
use ostler_testkit::{Harness, Session};

const FIRST: &str = "00000000-0000-4000-8000-000000000001";
const SECOND: &str = "00000000-0000-4000-8000-000000000002";

/// What claude prints when it begins a conversation or changes to one.
fn init(conversation: &str) -> String {
    format!(r#"{{"type":"system","subtype":"init","session_id":"{conversation}"}}"#)
}

/// A fake claude that reports another conversation at its start, and then only reads its input.
fn changing_claude(harness: &mut Harness) {
    let line = init(SECOND);
    scripted_claude(harness, &format!("echo '{line}'\nexec cat >/dev/null\n"));
}

fn scripted_claude(harness: &mut Harness, script: &str) {
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    harness.write_program(&folder.join("claude"), &format!("#!/bin/sh\n{script}"));
    let system = std::env::var("PATH").unwrap();
    harness.set("PATH", format!("{}:{system}", folder.display()));
}

fn locks(harness: &Harness) -> Vec<String> {
    let found = std::fs::read_dir(harness.root().join("state/ostler/writers")).into_iter().flatten();
    found.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok()).collect()
}

fn start_at_first<'a>(harness: &'a Harness) -> Session<'a> {
    harness.detach(&["--keep", "claude", "--", "--resume", FIRST])
}

#[test]
fn the_new_conversation_is_locked_and_the_old_one_free() {
    let mut harness = harness();
    changing_claude(&mut harness);
    let session = start_at_first(&harness);
    session.until("the lock has followed", || {
        let locks = locks(&harness);
        (locks.len() == 1 && locks[0].contains(SECOND)).then_some(())
    });
    let held = harness.run(&["run", "-d", "--keep", "claude", "--", "--resume", SECOND]).exits(7);
    assert!(held.complaint().contains(session.id()), "{held:?}");
    harness.detach(&["--keep", "claude", "--", "--resume", FIRST]);
}

#[test]
fn a_conversation_that_another_session_uses_raises_an_alarm() {
    let mut harness = harness();
    changing_claude(&mut harness);
    let first = start_at_first(&harness);
    first.until("the lock has followed", || locks(&harness).iter().any(|lock| lock.contains(SECOND)).then_some(()));
    let second = start_at_first(&harness);
    let view = second.until_look("there is an alarm", |view| view.alarm.is_some());
    let alarm = view.alarm.unwrap();
    assert!(alarm.contains("another session is using this conversation") && alarm.contains(first.id()), "{alarm}");
    assert!(view.alive && first.look().alive);
}

/// The agent writes late: the file of the first conversation exists only after the change to the second one.
#[test]
fn a_late_transcript_of_the_old_conversation_is_copied() {
    let mut harness = harness();
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    let script = format!(
        "read message; echo '{}'; echo '{result}'\n\
         read message; echo '{}'; echo '{result}'\n\
         read message; echo '{{}}' > \"$OLD\"; echo '{result}'; exec cat > /dev/null\n",
        init(FIRST),
        init(SECOND)
    );
    scripted_claude(&mut harness, &script);
    let folder = harness.root().join("home/.claude/projects").join(
        harness.root().join("home").to_str().unwrap().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"),
    );
    std::fs::create_dir_all(&folder).unwrap();
    let old = folder.join(format!("{FIRST}.jsonl"));
    harness.set("OLD", &old);
    let session = harness.detach(&["--keep", "claude", "say one"]);
    let turn_ends = || harness.run(&["wait", session.id(), "--until", "turn"]);
    turn_ends();
    for message in ["/clear", "say two"] {
        harness.run(&["send", session.id(), message]).exits(0);
        turn_ends();
    }
    assert!(old.exists());
    harness.run(&["stop", session.id()]);
    let copied = std::fs::read_to_string(session.path().join("checkpoints/index.jsonl")).unwrap_or_default();
    assert!(copied.contains(FIRST), "{copied}");
}
