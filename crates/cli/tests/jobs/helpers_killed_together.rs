//! Holder and keeper of a job are killed together, and its driver is not. The driver gets new helpers, and the job
//! continues in the same run.

use crate::{children, count, file, gated, harness, lines, open, passes_at, start};
use ostler_testkit::{Harness, ProcessKind, Session, patience};
use rustix::process::Signal;
use std::path::Path;

/// Kills both helpers of a job, and waits for those that replace them.
fn replace_both(session: &Session<'_>) {
    let (holder, keeper) = (session.living(ProcessKind::Holder), session.living(ProcessKind::Keeper));
    session.orphan();
    session.replaced(ProcessKind::Holder, &holder);
    session.replaced(ProcessKind::Keeper, &keeper);
}

/// Waits until there is a child of the job whose key begins with `key`, and the child has made the file `made`.
fn until_child_waits(harness: &Harness, job: &str, key: &str, made: &Path) {
    let folder = harness.session(job).path();
    patience::until(key, &[&folder, made.parent().unwrap()], || {
        (!children(harness, job, key).is_empty() && made.exists()).then_some(())
    });
}

fn no_alarm(session: &Session<'_>) {
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    assert!(!journal.contains(r#""what":"alarm""#) && !journal.contains(r#""what":"left""#), "{journal}");
    assert_eq!(session.show().run, 1, "{journal}");
}

#[test]
fn every_turn_is_taken_once_and_checked_once() {
    let harness = harness();
    let log = file(&harness, "checks");
    let follower = harness.start(&["loop", "demo", &gated(&harness), "--until", &passes_at(&log, 3)]);
    let sessions = harness.home().join("sessions");
    let job = patience::until("it runs", &[harness.root(), &harness.home(), &sessions], || {
        harness.ls().into_iter().find(|one| one.agent == "job").map(|one| one.id)
    });
    let session = harness.session(&job);
    for turn in 1..=3 {
        patience::until("a turn has begun", &[&session.path()], || {
            (children(&harness, &job, "turn").len() >= turn).then_some(())
        });
        let (holder, keeper) = (session.living(ProcessKind::Holder), session.living(ProcessKind::Keeper));
        session.orphan();
        // The driver may print before it has new helpers, but must not exit before it has them.
        if turn < 3 {
            open(&harness, turn);
        }
        session.replaced(ProcessKind::Holder, &holder);
        session.replaced(ProcessKind::Keeper, &keeper);
    }
    open(&harness, 3);
    let said = follower.finish().exits(0).stdout;
    assert_eq!(said.lines().collect::<Vec<_>>(), lines(&harness, &job));
    harness.run(&["wait", &job]).exits(0);
    assert_eq!((children(&harness, &job, "turn").len(), count(&log), said.lines().count()), (3, 3, 4));
    assert!(session.show().outcome().cause.starts_with("the check passes after 3 turns"));
    no_alarm(&session);
    // What the driver printed while no process read its pipe is in its log as well.
    let log = harness.run(&["logs", &job]).exits(0).stdout;
    assert!(said.lines().all(|line| log.contains(line)), "{log}");
    harness.nothing_is_left();
}

#[test]
fn a_job_that_loses_its_helpers_twice_during_a_check_ends_as_usual() {
    let harness = harness();
    let gate = file(&harness, "gate");
    let check = format!("mkfifo {0}; cat {0}; false", gate.display());
    let job = start(&harness, &["demo", "say more", "--until", &check, "--max", "1"]);
    let session = harness.session(&job);
    until_child_waits(&harness, &job, "check", &gate);
    replace_both(&session);
    replace_both(&session);
    std::fs::write(&gate, "go").unwrap();
    harness.run(&["wait", &job]).exits(1);
    assert_eq!((children(&harness, &job, "turn").len(), children(&harness, &job, "check").len()), (1, 1));
    assert!(session.show().outcome().cause.starts_with("the limit of 1 turn was reached"), "{:?}", session.show());
    no_alarm(&session);
    harness.nothing_is_left();
}

#[test]
fn a_question_stays_open_and_the_answer_counts() {
    let harness = harness();
    let prompt = "say <wait-for-user>red or blue?</wait-for-user>";
    harness.run(&["loop", "demo", prompt, "--max", "2", "--name", "colours"]).exits(4);
    let job = harness.ls().into_iter().find(|one| one.agent == "job").unwrap().id;
    let session = harness.session(&job);
    replace_both(&session);
    session.until_look("it asks", |view| view.asking.is_some());
    harness.run(&["answer", "colours", "--text", "blue"]).exits(0);
    patience::until("the next turn begins", &[&session.path()], || {
        (children(&harness, &job, "turn").len() == 2).then_some(())
    });
    harness.run(&["stop", "colours"]).exits(0);
    assert_eq!(session.show().outcome().kind, "stopped");
    no_alarm(&session);
    harness.nothing_is_left();
}

#[test]
fn the_job_can_be_stopped_with_its_children() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(&harness, &["demo", "say more"]);
    let session = harness.session(&job);
    patience::until("a turn has begun", &[&session.path()], || {
        (!children(&harness, &job, "turn").is_empty()).then_some(())
    });
    replace_both(&session);
    harness.run(&["stop", &job]).exits(0);
    assert_eq!(session.show().outcome().kind, "stopped");
    no_alarm(&session);
    harness.nothing_is_left();
}

#[test]
fn the_next_run_begins_in_its_own_session_when_a_command_has_started_the_new_helpers() {
    let harness = harness();
    let gate = file(&harness, "gate");
    let check = format!("test -e {0} || mkfifo {0}; cat {0}", gate.display());
    let job = start(&harness, &["demo", "say more", "--until", &check]);
    let session = harness.session(&job);
    until_child_waits(&harness, &job, "check", &gate);
    // Another command starts the helpers first, because the driver is stopped.
    let driver = session.signal(ProcessKind::Agent, Signal::STOP);
    let keeper = session.living(ProcessKind::Keeper);
    session.orphan();
    harness.run(&["upgrade", &job]).exits(0);
    session.replaced(ProcessKind::Keeper, &keeper);
    session.kill(ProcessKind::Agent);
    session.replaced(ProcessKind::Agent, &driver);
    std::fs::write(&gate, "go").unwrap();
    harness.run(&["wait", &job]).exits(0);
    assert_eq!((children(&harness, &job, "turn").len(), session.show().run), (1, 2));
    harness.nothing_is_left();
}
