//! A program that ignores the request to exit is killed at the end of the grace, and the outcome says so.

use crate::harness;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::ProcessKind;
use rustix::process::Signal;
use std::time::{Duration, Instant};

#[test]
fn a_program_that_ignores_every_request_is_killed_after_the_grace() {
    let harness = harness();
    for terminal in [&[][..], &["-t"]] {
        let misbehave = harness.misbehave();
        let session = harness.detach(&[terminal, &["--", &misbehave, "deaf", "say=deaf", "forever"]].concat());
        session.until_printed("deaf");
        let started = Instant::now();
        harness.run(&["stop", "--grace", "600ms", session.id()]).exits(0);
        assert!(started.elapsed() >= Duration::from_millis(600), "only {:?}", started.elapsed());
        harness.nothing_is_left();
        let shown = session.show();
        let outcome = shown.outcome();
        assert_eq!((outcome.kind.as_str(), outcome.signal, outcome.source.as_str()), ("stopped", Some(9), "ostler"));
        assert!(
            outcome.cause.contains("tester") && outcome.cause.contains("killed at the end of the grace"),
            "{outcome:?}"
        );
    }
}

#[test]
fn stop_returns_as_soon_as_the_program_exits() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let started = Instant::now();
    harness.run(&["stop", "--grace", "2m", session.id()]).exits(0);
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().signal), ("stopped", Some(15)));
    assert!(!shown.outcome().cause.contains("killed"), "{shown:?}");
}

#[test]
fn a_stopped_process_is_continued_so_that_it_can_exit() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.signal(ProcessKind::Agent, Signal::STOP);
    let started = Instant::now();
    harness.run(&["stop", "--grace", "2m", session.id()]).exits(0);
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
}

#[test]
fn a_second_more_urgent_stop_takes_effect_while_the_first_waits() {
    let harness = harness();
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "deaf", "say=deaf", "forever"]);
    session.until_printed("deaf");
    let patient = harness.start(&["stop", "--grace", "25s", session.id()]);
    session.until_look("it is stopping", |view| view.state == ostler_core::view::Phase::Stopping);
    harness.run(&["stop", "--kill", session.id()]).exits(0);
    patient.finish().exits(0);
    assert_eq!(session.show().outcome().kind, "stopped");
}

#[test]
fn a_program_that_exited_in_time_is_not_called_killed_when_its_exit_is_noticed_late() {
    let mut harness = harness();
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(pause_points::VARIABLE, &pauses);
    // The holder is stopped after the program has exited, before it reports that.
    std::fs::write(pauses.join(format!("{}.stop", pause_points::token(Role::Holder, Point::ExitSeen))), "x").unwrap();
    let session = harness.detach(&["--", "sleep", "600"]);
    let noted = |what: &str, signal: Option<i64>| {
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap_or_default();
        let mut lines = journal.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.any(|line| line["what"] == what && line["signal"].as_i64() == signal).then_some(())
    };
    let stopping = harness.start(&["stop", "--grace", "100ms", session.id()]);
    session.until("the stop is noted", || noted("stop_wanted", None));
    // A command that waits for a stopped holder continues it.
    drop(stopping);
    session.until("SIGKILL is sent at the end of the grace", || noted("signalled", Some(9)));
    session.signal(ProcessKind::Holder, Signal::CONT);
    harness.run(&["wait", session.id()]).exits(6);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.signal), ("stopped", Some(15)), "{outcome:?}");
    assert!(!outcome.cause.contains("killed"), "{outcome:?}");
}
