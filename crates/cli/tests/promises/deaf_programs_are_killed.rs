//! A program that does not listen is killed at the end of the grace, and the outcome says so.

use crate::harness;
use ostler_testkit::Who;
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
fn one_that_listens_is_not_kept_waiting() {
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
fn a_stopped_process_is_woken_to_hear_that_it_should_leave() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.signal(Who::Agent, rustix::process::Signal::STOP);
    let started = Instant::now();
    harness.run(&["stop", "--grace", "2m", session.id()]).exits(0);
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
}

#[test]
fn a_second_more_urgent_stop_is_heard_while_the_first_waits() {
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
fn one_that_listened_was_not_killed_though_nobody_collected_it_in_time() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.living(Who::Keeper);
    // The process that collects it now takes longer than the grace.
    let holder = session.kill(Who::Holder);
    session.replaced(Who::Holder, &holder);
    harness.run(&["stop", "--grace", "100ms", session.id()]).exits(0);
    let shown = session.show();
    let outcome = shown.outcome();
    assert!(outcome.signal != Some(15) || !outcome.cause.contains("killed"), "{outcome:?}");
}
