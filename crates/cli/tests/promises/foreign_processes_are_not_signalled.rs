//! When a record names a foreign process, that process is not signalled, and the real one is still ended.

use crate::{harness, root_for};
use ostler_sys::process::{Identity, Life, Pidfd};
use ostler_testkit::{Harness, ProcessKind, Session, Started};
use rustix::process::Signal;
use std::path::Path;

/// A process that belongs to no session.
fn foreign(harness: &Harness) -> Started {
    let mut command = harness.command("sleep");
    command.arg("600");
    Started::new(command, None)
}

/// Writes the pid of the foreign process into a record. The start time stays, and does not match that process.
fn falsify(record: &Path, field: Option<&str>, foreign: &Started) {
    let mut value: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    let process = match field {
        Some(field) => &mut value[field],
        None => &mut value,
    };
    assert!(process["pid"].is_number());
    process["pid"] = foreign.process().pid().into();
    std::fs::write(record, value.to_string()).unwrap();
}

fn stops_without_harm(harness: &Harness, session: &Session<'_>, foreign: &Started, agent: &Identity) {
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(0);
    assert!(foreign.runs(), "the foreign process was signalled");
    assert_eq!(agent.look().unwrap(), Life::Gone, "the real agent lives on");
}

#[test]
fn a_foreign_process_in_the_record_of_the_agent_is_spared_and_the_agent_still_ends() {
    let harness = harness();
    let foreign = foreign(&harness);
    let session = harness.detach(&["--", "sleep", "600"]);
    let agent = session.living(ProcessKind::Agent);
    session.living(ProcessKind::Keeper);
    falsify(&session.run_file("run.json"), Some("agent"), &foreign);
    stops_without_harm(&harness, &session, &foreign, &agent);
}

#[test]
fn a_foreign_process_in_the_record_is_spared_by_a_replacement_keeper() {
    let harness = harness();
    let foreign = foreign(&harness);
    let session = harness.detach(&["--", "sleep", "600"]);
    let agent = session.living(ProcessKind::Agent);
    session.living(ProcessKind::Keeper);
    falsify(&session.run_file("run.json"), Some("agent"), &foreign);
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    stops_without_harm(&harness, &session, &foreign, &agent);
}

/// Only the record is left, and the cgroup, which contains only processes that the session started.
#[test]
fn a_foreign_process_in_the_record_is_spared_when_both_helpers_are_gone() {
    let harness = harness();
    let foreign = foreign(&harness);
    for whole in [false, true] {
        let session = harness.detach(&["--", "sleep", "600"]);
        let agent = session.living(ProcessKind::Agent);
        session.orphan();
        let file = session.run_file("run.json");
        if whole {
            let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            record["agent"] = serde_json::to_value(foreign.process()).unwrap();
            std::fs::write(&file, record.to_string()).unwrap();
        } else {
            falsify(&file, Some("agent"), &foreign);
        }
        let is_contained = std::fs::read_to_string(&file).unwrap().contains("\"cgroup\":\"");
        harness.run(&["stop", session.id()]).exits(0);
        assert!(foreign.runs(), "the foreign process was signalled");
        assert_eq!(agent.may_live(), !is_contained, "the real agent lives on");
        if let Some(agent) = Pidfd::open(&agent).unwrap() {
            agent.signal(Signal::KILL).unwrap();
        }
    }
}

#[test]
fn a_child_of_a_foreign_process_in_the_record_is_spared() {
    if !root_for("a mount namespace without cgroups") {
        return;
    }
    let harness = harness();
    // The harness recognises its processes by their environment, so the child of the foreign process must not have it.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "sleep 600 & echo started; wait"]);
    let (foreign, mut lines) = Started::with_lines(command);
    std::io::BufRead::read_line(&mut lines, &mut String::new()).unwrap();
    let all = ostler_sys::tree::Processes::look().unwrap();
    let children = all.below(&[foreign.process().pid()], |_| false);
    assert_eq!(children.len(), 1);

    let session = harness.detach_without_cgroup(&["--", "sleep", "600"]);
    let agent = session.living(ProcessKind::Agent);
    session.living(ProcessKind::Keeper);
    falsify(&session.run_file("run.json"), Some("agent"), &foreign);
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    stops_without_harm(&harness, &session, &foreign, &agent);
    let spared = children[0].look().unwrap();
    let pidfd = ostler_sys::process::Pidfd::open(&children[0]).unwrap();
    if let Some(pidfd) = pidfd {
        pidfd.signal(rustix::process::Signal::KILL).unwrap();
    }
    assert_eq!(spared, Life::Alive, "the foreign process's child was signalled");
}

#[test]
fn a_foreign_process_in_the_record_of_a_helper_is_spared() {
    let harness = harness();
    let foreign = foreign(&harness);
    for record in ["holder.json", "keeper.json"] {
        let session = harness.detach(&["--", "sleep", "600"]);
        let agent = session.living(ProcessKind::Agent);
        // A keeper that starts reads from the record which process is its holder. Here the keeper has read it already.
        let journal = session.path().join("journal.jsonl");
        session.until("its keeper has begun", || {
            std::fs::read_to_string(&journal).ok()?.contains("keeper_started").then_some(())
        });
        falsify(&session.path().join(record), None, &foreign);
        stops_without_harm(&harness, &session, &foreign, &agent);
    }
}

#[test]
fn a_record_with_an_impossible_pid_counts_as_damaged() {
    let harness = harness();
    let good = harness.detach(&["--", "true"]);
    harness.run(&["wait", good.id()]).exits(0);
    let session = harness.detach(&["--", "sleep", "600"]);
    session.living(ProcessKind::Keeper);
    let record = session.run_file("run.json");
    let right = std::fs::read_to_string(&record).unwrap();
    for pid in ["-1", "0", "1"] {
        let mut value: serde_json::Value = serde_json::from_str(&right).unwrap();
        value["agent"]["pid"] = pid.parse::<i64>().unwrap().into();
        std::fs::write(&record, value.to_string()).unwrap();
        let listed = harness.run(&["ls", "--json"]).exits(0).json();
        let words: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|one| one["state"].as_str()).collect();
        assert!(words.contains(&"damaged") && words.contains(&"ended"), "{listed}");
    }
    std::fs::write(&record, right).unwrap();
    session.stop();
}
