//! The outcome is what the agent reported; without a report, how its process ended; without either, "lost".

use crate::harness;
use ostler_testkit::{ProcessKind, Session, patience};

/// Kills both helpers, then the agent. An agent that reads its input may have exited already, at the end of that input.
fn kill_unobserved(session: &Session<'_>) {
    let agent = session.living(ProcessKind::Agent);
    session.orphan();
    if let Some(pidfd) = ostler_sys::process::Pidfd::open(&agent).unwrap() {
        pidfd.signal(rustix::process::Signal::KILL).unwrap();
    }
    patience::ended(&agent);
}

#[test]
fn a_killed_agent_has_failed_by_signal_9() {
    let harness = harness();
    for arguments in [&["--", "sleep", "600"][..], &["--keep", "demo"], &["-t", "--", "sleep", "600"]] {
        let session = harness.detach(arguments);
        let waiter = harness.start(&["wait", session.id()]);
        session.kill(ProcessKind::Agent);
        waiter.finish().exits(1);
        let shown = session.show();
        let outcome = shown.outcome();
        assert_eq!(
            (outcome.kind.as_str(), outcome.signal, outcome.exit_code),
            ("failed", Some(9), None),
            "{arguments:?}"
        );
        assert_eq!((outcome.source.as_str(), shown.state.as_str(), shown.alive), ("exit", "ended", false));
    }
}

#[test]
fn an_agent_whose_exit_was_not_observed_is_lost_and_never_a_success() {
    let harness = harness();
    for arguments in [&["--", "sleep", "600"][..], &["--keep", "demo"], &["-t", "--", "sleep", "600"]] {
        let session = harness.detach(arguments);
        let waiter = harness.start(&["wait", session.id()]);
        kill_unobserved(&session);
        waiter.finish().exits(5);
        let shown = session.show();
        let outcome = shown.outcome();
        assert_eq!((outcome.kind.as_str(), outcome.source.as_str()), ("lost", "none"), "{arguments:?}");
        assert_eq!((outcome.exit_code, outcome.signal), (None, None));
        harness.run(&["wait", session.id()]).exits(5);
        // Only commands that can work are offered.
        let (read, goes_on) = (format!("read: ostler logs {}", session.id()), shown.agent == "demo");
        for command in ["show", "ls"] {
            let told = harness.run(&[command, session.id()][..if command == "ls" { 1 } else { 2 }]).exits(0).stdout;
            assert!(told.contains(&read), "{told}");
            assert!(!told.contains("()"), "{told}");
            assert_eq!(told.contains(&format!("continue: ostler resume {}", session.id())), goes_on, "{told}");
        }
    }
}

#[test]
fn what_the_agent_reported_counts_even_when_its_exit_was_not_observed() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say all done"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    kill_unobserved(&session);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.source.as_str()), ("succeeded", "agent"));
    assert_eq!(outcome.text.as_deref(), Some("all done"));
    assert_eq!((shown.state.as_str(), shown.turns), ("ended", 1));
}

#[test]
fn a_failure_that_the_agent_calls_a_success_is_a_failure() {
    let harness = harness();
    let session = harness.detach(&["demo", "fail API Error: 500"]);
    harness.run(&["wait", session.id()]).exits(1);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().source.as_str()), ("failed", "agent"));
}

#[test]
fn an_agent_that_ends_in_the_middle_of_its_turn_has_failed() {
    let harness = harness();
    let session = harness.detach(&["demo", "crash"]);
    harness.run(&["wait", session.id()]).exits(1);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.exit_code, outcome.source.as_str()), ("failed", Some(3), "exit"));
}

#[test]
fn a_finished_turn_is_proven_saved() {
    let harness = harness();
    let session = harness.detach(&["demo", "say saved"]);
    harness.run(&["wait", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!(shown.outcome().saved, "verified");
    let transcript = std::fs::read_to_string(shown.transcript.unwrap()).unwrap();
    assert!(transcript.contains("saved"), "{transcript}");
}

#[test]
fn what_an_agent_writes_only_when_it_exits_is_proven_saved_too() {
    let mut harness = harness();
    harness.configure("linger = \"300ms\"\n");
    harness.set("OSTLER_DEMO_LATE", "600000");
    let session = harness.detach(&["demo", "say late"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");
}
