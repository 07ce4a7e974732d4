//! The machine's clock is set hours back or a year ahead while sessions run: nothing is lost, nothing changes its
//! order, and no command waits for a time that does not come.

use crate::harness;
use ostler_testkit::{Harness, Session, Shown};
use serde_json::Value;

const HOUR: i64 = 3600;
const YEAR: i64 = 366 * 24 * HOUR;

fn with_a_clock() -> Harness {
    let mut harness = harness();
    harness.has_own_clock();
    harness
}

/// The prompts, in the order of the transcript.
fn said(transcript: &str) -> Vec<String> {
    let text = std::fs::read_to_string(transcript).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let prompts = lines.filter(|line| line["type"] == "user");
    prompts.filter_map(|line| line["message"]["content"].as_str().map(str::to_owned)).collect()
}

#[test]
fn messages_states_and_durations_are_right_however_the_clock_jumps() {
    let harness = with_a_clock();
    let session = harness.detach(&["--keep", "demo", "say n0"]);
    let mut wanted = vec!["say n0".to_owned()];
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    for (n, shift) in [-5 * HOUR, 72 * HOUR, YEAR, -HOUR, -YEAR, 0].into_iter().enumerate() {
        harness.shift_clock(shift);
        wanted.push(format!("say n{}", n + 1));
        harness.run(&["send", session.id(), wanted.last().unwrap()]).exits(0);
        harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
        let shown = session.show();
        assert_eq!((shown.state.as_str(), shown.alive, shown.queued), ("idle", true, 0), "{shown:?}");
        assert!(shown.quiet_s < 300, "quiet for longer than the session runs: {shown:?}");
        let listed = harness.run(&["ls"]).exits(0).stdout;
        assert!(listed.contains(session.id()) && !listed.contains(" -"), "{listed}");
    }
    session.stop();
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str(), outcome.turns), ("succeeded", "verified", 7));
    assert!(outcome.duration_ms.is_some_and(|ms| ms < 300_000), "{outcome:?}");
    assert_eq!(said(shown.transcript.as_deref().unwrap()), wanted);
}

#[test]
fn the_timeout_of_wait_does_not_depend_on_the_clock() {
    let harness = with_a_clock();
    let session = harness.detach(&["--", "sleep", "600"]);
    let patient = harness.start(&["wait", session.id(), "--timeout", "1h"]);
    harness.shift_clock(YEAR);
    // The first `wait` was running when the clock jumped: another `wait` has started and ended since.
    harness.run(&["wait", session.id(), "--timeout", "100ms"]).exits(124);
    harness.shift_clock(-YEAR);
    harness.run(&["wait", session.id(), "--timeout", "100ms"]).exits(124);
    assert!(patient.runs(), "an hour has not passed");
    session.stop();
    patient.finish().exits(6);
}

#[test]
fn every_session_is_listed_once_and_no_age_is_negative() {
    let harness = with_a_clock();
    let sessions: Vec<Session<'_>> = [0, YEAR, -HOUR]
        .into_iter()
        .map(|shift| {
            harness.shift_clock(shift);
            harness.detach(&["--", "sleep", "600"])
        })
        .collect();
    harness.shift_clock(0);
    let listed: Vec<String> = harness.ls().into_iter().map(|one: Shown| one.id).collect();
    let by_the_clock = [1, 0, 2].map(|n: usize| sessions[n].id().to_owned());
    assert_eq!(listed, by_the_clock, "in the order of the times that are shown");
    let table = harness.run(&["ls"]).exits(0).stdout;
    let of_the_future = table.lines().find(|line| line.contains(sessions[1].id())).unwrap();
    assert!(of_the_future.contains(" 0s "), "{table}");
    sessions.iter().for_each(Session::stop);
}
