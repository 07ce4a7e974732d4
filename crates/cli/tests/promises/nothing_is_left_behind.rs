//! After `stop` no process of a session is alive, even when its tools have detached themselves.

use crate::{harness, root_for};
use ostler_sys::cgroup;
use ostler_sys::process::Identity;
use ostler_testkit::{Harness, ProcessKind, Session, alone, patience};

/// Starts a program that leaves fifty double-forked processes, each in its own process session, and keeps running.
fn scattered(harness: &Harness) -> Session<'_> {
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "scatter=50", "forever"]);
    session.until_printed("scattered 50");
    // Processes that only start others may take a moment to exit.
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
fn fifty_processes_are_gone_after_stop_when_the_helpers_were_replaced() {
    let _alone = alone();
    let harness = harness();
    let session = scattered(&harness);
    for who in [ProcessKind::Holder, ProcessKind::Keeper] {
        let before = session.kill(who);
        session.replaced(who, &before);
    }
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(0);
    harness.nothing_is_left();
}

#[test]
fn fifty_processes_are_gone_after_stop_without_a_cgroup() {
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
fn processes_that_a_program_leaves_at_its_exit_are_ended_and_named() {
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

/// Agents close what their tools would inherit, so nothing but the cgroup shows where a tool belongs.
#[test]
fn a_tool_of_a_lost_session_is_ended_and_named_by_stop_archive_and_purge() {
    if cgroup::base().is_none() {
        return;
    }
    for ends_it in [&["stop", "--kill"][..], &["stop"], &["archive"], &["purge"]] {
        let harness = harness();
        let tool = "for fd in 3 4 5 6 7 8 9; do eval \"exec $fd>&-\"; done; echo $$; exec sleep 1000";
        let session = harness.detach(&["--", "sh", "-c", "(sh -c \"$0\") & wait", tool]);
        let printed = session.until("the tool runs", || {
            let out = std::fs::read_to_string(session.run_file("out")).ok()?;
            out.strip_suffix('\n').map(str::to_owned)
        });
        let tool = Identity::of(printed.parse().unwrap()).unwrap().unwrap();
        session.kill_together(&[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]);
        assert!(tool.may_live());
        let ended = harness.run(&[ends_it, &[session.id()]].concat()).exits(0);
        let named = format!("ended a process that it had left running: {printed} sleep 1000");
        assert!(ended.stderr.contains(&named), "{ends_it:?}: {ended:?}");
        assert!(!tool.may_live(), "{ends_it:?}: {ended:?}");
        harness.nothing_is_left();
    }
}

#[test]
fn the_cgroup_is_gone_when_the_folder_of_a_running_session_was_deleted() {
    let _alone = alone();
    let harness = harness();
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "scatter=5", "forever"]);
    session.until_printed("scattered 5");
    session.until_look("a keeper", |view| view.kept);
    let record = std::fs::read(session.run_file("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let agent = session.living(ProcessKind::Agent);
    std::fs::remove_dir_all(session.path()).unwrap();
    let pidfd = ostler_sys::process::Pidfd::open(&agent).unwrap().unwrap();
    pidfd.signal(rustix::process::Signal::KILL).unwrap();
    harness.nothing_is_left();
    if let Some(group) = record["cgroup"].as_str() {
        assert!(!std::path::Path::new(group).exists(), "{group} is still there");
    }
}
