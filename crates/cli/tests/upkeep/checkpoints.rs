//! A transcript that is lost or rewritten costs seconds.

use crate::harness;
use ostler_testkit::{Harness, Session};
use serde_json::Value;

fn listed(harness: &Harness, session: &Session<'_>) -> Vec<Value> {
    let lines = harness.run(&["checkpoints", session.id(), "--json"]).exits(0).stdout;
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_transcript_is_copied_while_a_turn_runs_and_at_its_end() {
    let harness = harness();
    harness.configure("autosave = \"50ms\"\n");
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let transcript = session.show().transcript.unwrap();
    // The agent writes late, and so the copy is taken once more after the turn.
    session.until("a copy of all of it", || {
        let whole = std::fs::metadata(&transcript).ok()?.len();
        (listed(&harness, &session).last()?["length"] == whole).then_some(())
    });
    session.stop();
    let copy = std::fs::read(session.path().join("checkpoints/1.copy")).unwrap();
    assert!(copy == std::fs::read(&transcript).unwrap());
}

#[test]
fn a_transcript_that_shrank_is_told_at_the_resume_and_can_be_put_back() {
    let harness = harness();
    let session = harness.detach(&["demo", "say one"]);
    harness.run(&["wait", session.id()]).exits(0);
    let transcript = session.show().transcript.unwrap();
    let whole = std::fs::read(&transcript).unwrap();
    let time = listed(&harness, &session).last().unwrap()["at"].as_str().unwrap().to_owned();
    let stub = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    std::fs::write(&transcript, &whole[..stub]).unwrap();

    let resumed = harness.run(&["resume", session.id(), "say two"]);
    assert!(resumed.stderr.contains("its transcript shrank from"), "{}", resumed.stderr);
    harness.run(&["wait", session.id()]).exits(0);
    let copy = std::fs::read(session.path().join("checkpoints/1.copy")).unwrap();
    assert!(copy == whole, "the longer copy is kept");

    harness.run(&["checkpoints", "restore", session.id(), "yesterday"]).exits(2);
    let restored = harness.run(&["checkpoints", "restore", session.id(), &time]).exits(0);
    assert!(restored.stdout.contains("before-restore"), "{}", restored.stdout);
    assert!(std::fs::read(&transcript).unwrap() == whole);
}

#[test]
fn a_transcript_that_is_being_written_is_not_replaced() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    session.until("a checkpoint", || (!listed(&harness, &session).is_empty()).then_some(()));
    let refused = harness.run(&["checkpoints", "restore", session.id(), "last"]).exits(7);
    assert!(refused.complaint().contains("still runs"));
    session.stop();
}

#[test]
fn no_copy_is_taken_where_none_is_wanted() {
    let harness = harness();
    harness.configure("autosave = \"off\"\n");
    let session = harness.detach(&["demo", "say one"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(listed(&harness, &session).is_empty());
    assert!(!session.path().join("checkpoints").exists());
}
