//! After `stop` nothing of a session is alive, however well its tools have hidden.

use crate::{harness, root_for};
use ostler_testkit::{Harness, Session, Who, alone, patience};

/// Starts a program that leaves fifty double-forked processes in sessions of their own, and goes on.
fn scattered(harness: &Harness) -> Session<'_> {
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "scatter=50", "forever"]);
    session.until_printed("scattered 50");
    // What only helps to start others may take a moment to be gone.
    patience::until("there are agent, holder, keeper and fifty others", &[], || {
        (harness.alive().len() == 53).then_some(())
    });
    session
}

#[test]
fn fifty_double_forked_processes_are_gone_after_stop() {
    let _alone = alone();
    let harness = harness();
    let session = scattered(&harness);
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(0);
    harness.nothing_is_left();
    let record = std::fs::read(session.run_file("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    if let Some(group) = record["cgroup"].as_str() {
        assert!(!std::path::Path::new(group).exists(), "{group} is still there");
    }
}

#[test]
fn they_are_gone_too_when_keeper_and_holder_were_replaced() {
    let _alone = alone();
    let harness = harness();
    let session = scattered(&harness);
    for who in [Who::Holder, Who::Keeper] {
        let before = session.kill(who);
        session.replaced(who, &before);
    }
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(0);
    harness.nothing_is_left();
}

#[test]
fn they_are_gone_too_where_no_cgroup_can_be_made() {
    if !root_for("a mount namespace without cgroups") {
        return;
    }
    let _alone = alone();
    let harness = harness();
    let misbehave = harness.misbehave();
    let session = harness.detach_without_cgroup(&["--", &misbehave, "scatter=50", "forever"]);
    session.until_printed("scattered 50");
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(0);
    harness.nothing_is_left();
}

#[test]
fn what_a_program_leaves_at_its_natural_end_is_ended_and_named() {
    let harness = harness();
    harness.configure("linger = \"200ms\"\n");
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "scatter=3", "exit=0"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.nothing_is_left();
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().left.len()), ("succeeded", 3), "{shown:?}");
}

#[test]
fn a_tool_that_an_agent_left_running_is_gone_after_stop() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "leave"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    session.stop();
    harness.nothing_is_left();
}

#[test]
fn the_cgroup_is_gone_too_when_the_folder_was_deleted_under_a_session() {
    let _alone = alone();
    let harness = harness();
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "scatter=5", "forever"]);
    session.until_printed("scattered 5");
    session.until_look("a keeper", |view| view.kept);
    let record = std::fs::read(session.run_file("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let agent = session.living(Who::Agent);
    std::fs::remove_dir_all(session.path()).unwrap();
    let pidfd = ostler_sys::process::Pidfd::open(&agent).unwrap().unwrap();
    pidfd.signal(rustix::process::Signal::KILL).unwrap();
    harness.nothing_is_left();
    if let Some(group) = record["cgroup"].as_str() {
        assert!(!std::path::Path::new(group).exists(), "{group} is still there");
    }
}
