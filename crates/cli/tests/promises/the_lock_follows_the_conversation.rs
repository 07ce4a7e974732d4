//! An agent that changes its conversation in the middle of a run has the new one from then on, and the old one is free. If
//! somebody else has the new one already, that is said, and nobody is ended for it.

use crate::harness;
use ostler_testkit::{Harness, Session};
use std::os::unix::fs::PermissionsExt;

const FIRST: &str = "00000000-0000-4000-8000-000000000001";
const SECOND: &str = "00000000-0000-4000-8000-000000000002";

/// Claude as far as its first words go: it says that it goes on in another conversation, and then takes what comes.
fn changing_claude(harness: &mut Harness) {
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("claude");
    let line = format!(r#"{{"type":"system","subtype":"init","session_id":"{SECOND}"}}"#);
    std::fs::write(&program, format!("#!/bin/sh\necho '{line}'\nexec cat >/dev/null\n")).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let system = std::env::var("PATH").unwrap();
    harness.set("PATH", format!("{}:{system}", folder.display()));
}

fn locks(harness: &Harness) -> Vec<String> {
    let found = std::fs::read_dir(harness.root().join("state/ostler/writers")).into_iter().flatten();
    found.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok()).collect()
}

fn at_first<'a>(harness: &'a Harness) -> Session<'a> {
    harness.detach(&["--keep", "claude", "--", "--resume", FIRST])
}

#[test]
fn the_new_conversation_is_locked_and_the_old_one_free() {
    let mut harness = harness();
    changing_claude(&mut harness);
    let session = at_first(&harness);
    session.until("the lock has followed", || {
        let locks = locks(&harness);
        (locks.len() == 1 && locks[0].contains(SECOND)).then_some(())
    });
    let held = harness.run(&["run", "-d", "--keep", "claude", "--", "--resume", SECOND]).exits(7);
    assert!(held.complaint().contains(session.id()), "{held:?}");
    harness.detach(&["--keep", "claude", "--", "--resume", FIRST]);
}

#[test]
fn a_conversation_that_another_session_has_is_an_alarm() {
    let mut harness = harness();
    changing_claude(&mut harness);
    let first = at_first(&harness);
    first.until("the lock has followed", || locks(&harness).iter().any(|lock| lock.contains(SECOND)).then_some(()));
    let second = at_first(&harness);
    let view = second.until_look("it is said", |view| view.alarm.is_some());
    let alarm = view.alarm.unwrap();
    assert!(alarm.contains("another session is using this conversation") && alarm.contains(first.id()), "{alarm}");
    assert!(view.alive && first.look().alive);
}
