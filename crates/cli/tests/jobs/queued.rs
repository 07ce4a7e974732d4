//! The turns of a loop wait in a queue.

use crate::{children, file, harness, start};
use ostler_testkit::patience;

#[test]
fn each_turn_waits_for_a_slot_and_gives_it_back() {
    let harness = harness();
    harness.configure("[queues.q]\nslots = 1\n");
    let (gate, log) = (file(&harness, "gate"), file(&harness, "log"));
    assert!(harness.command("mkfifo").arg(&gate).status().unwrap().success());
    let block = ["--queue=q", "--", "sh", "-c", "read -r _ < \"$1\"", "sh", gate.to_str().unwrap()];
    let blocker = harness.detach(&block);
    let prompt = format!("run-command echo turn >> {}", log.display());
    let until = format!("test $(grep -c turn {}) -ge 2", log.display());
    let job = start(&harness, &["demo", &prompt, "--until", &until, "--queue", "q"]);
    let sessions = harness.home().join("sessions");
    let child = patience::until("a turn is queued", &[&sessions, &sessions.join(&job)], || {
        let child = children(&harness, &job, "turn").pop()?;
        let session = harness.session(&child);
        (session.path().exists() && session.look().status == "queued").then_some(child)
    });
    assert_eq!(harness.session(&job).look().status, "running", "the loop itself has no slot");
    // This session runs after the first turn and before the second: the slot is free in between.
    let between = format!("echo between >> {}", log.display());
    let other = harness.detach(&["--queue=q", "--", "sh", "-c", &between]);
    assert!(!log.exists());
    std::fs::write(&gate, "go\n").unwrap();
    harness.run(&["wait", &job, other.id(), blocker.id(), &child]).exits(0);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "turn\nbetween\nturn\n");
}
