//! A usage limit: the session waits, and continues once at the right time, whatever happens while it waits.

use crate::{kill_both, limited, told};
use ostler_core::view::Phase;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::Session;

fn until_waiting(session: &Session<'_>) -> ostler_core::view::View {
    session.until_look("it waits", |view| view.state == Phase::Waiting)
}

#[test]
fn a_session_waits_until_the_limit_is_reset_and_then_gets_its_messages() {
    // Long enough for everything that this test does while the session waits, also on a busy machine.
    let harness = limited("15\n");
    let session = harness.detach(&["demo", "say hello"]);
    let view = until_waiting(&session);
    assert_eq!(view.waits_for.as_deref(), Some("usage limit"));
    let resumes_at = view.resumes_at.unwrap();
    assert!(harness.run(&["ls"]).exits(0).stdout.contains("usage limit until "));
    harness.run(&["send", session.id(), "say later"]).exits(0);
    kill_both(&session);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(told(&session), ["say hello", "continue", "say later"]);
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    let over: Vec<serde_json::Value> = journal
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|entry: &serde_json::Value| entry["what"] == "wait_over")
        .collect();
    assert_eq!(over.len(), 1);
    assert!(over[0]["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap() >= resumes_at);
}

#[test]
fn a_kept_session_limited_in_the_middle_of_a_turn_continues_in_the_same_process() {
    let harness = limited("8 begun\n");
    let session = harness.detach(&["--keep", "demo", "say hello"]);
    until_waiting(&session);
    session.until_look("it has continued", |view| view.turns == 2 && view.state == Phase::Idle);
    session.stop();
    assert_eq!((told(&session), session.show().run), (vec!["say hello".to_owned(), "continue".to_owned()], 1));
}

#[test]
fn a_session_waits_twice_for_two_limits_in_a_row() {
    let harness = limited("2\n3\n");
    let session = harness.detach(&["demo", "say hello"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(told(&session), ["say hello", "continue", "continue"]);
    assert_eq!(session.show().turns, 3);
}

#[test]
fn a_limit_without_a_time_is_waited_for_and_given_up_after_three_continuations() {
    let harness = limited("-\n-\n-\n-\n");
    let session = harness.detach(&["demo", "say hello"]);
    for turn in 1..=3 {
        let view = session.until_look("it waits", |view| view.state == Phase::Waiting && view.turns == turn);
        assert_eq!(view.waits_for.as_deref(), Some("rate limit"));
        harness.run(&["resume", session.id(), "--now"]).exits(0);
    }
    harness.run(&["wait", session.id()]).exits(1);
    let shown = session.show();
    assert_eq!(shown.turns, 4);
    assert!(shown.outcome().cause.contains("429"), "{shown:?}");
}

#[test]
fn a_followed_run_fails_at_once_unless_it_is_to_wait() {
    let harness = limited("3600\n2\n");
    harness.run(&["run", "demo", "say hello"]).exits(1);
    let output = harness.run(&["run", "--on-limit", "wait", "demo", "say hello"]).exits(0);
    assert!(output.stdout.ends_with("continued\n"), "{output:?}");
}

#[test]
fn a_stop_while_it_waits_is_final() {
    let harness = limited("3600\n");
    let session = harness.detach(&["demo", "say hello"]);
    until_waiting(&session);
    harness.run(&["stop", session.id()]);
    assert_eq!(session.show().state, "ended");
    assert_eq!(told(&session), ["say hello"]);
    harness.nothing_is_left();
}

#[test]
fn a_clock_that_is_set_forward_continues_the_session_once() {
    let mut harness = limited("3600\n");
    harness.has_own_clock();
    let session = harness.detach(&["demo", "say hello"]);
    until_waiting(&session);
    harness.shift_clock(3000);
    harness.run(&["wait", session.id(), "--timeout", "1ms"]).exits(124);
    assert_eq!(session.look().state, Phase::Waiting, "not yet");
    harness.shift_clock(3700);
    // The kernel wakes the keeper when the machine's clock is set. This clock is only a file, so the client of `wait`
    // wakes the keeper.
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(told(&session), ["say hello", "continue"]);
}

#[test]
fn a_keeper_that_is_killed_between_writing_continue_and_noting_it_sends_it_once() {
    let mut harness = limited("2\n");
    let folder = harness.root().join("pause");
    std::fs::create_dir_all(&folder).unwrap();
    harness.set(pause_points::VARIABLE, folder.clone());
    let file = folder.join(format!("{}.kill", pause_points::token(Role::Keeper, Point::ContinuationWritten)));
    std::fs::write(&file, "x").unwrap();
    let session = harness.detach(&["demo", "say hello"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(!file.exists(), "no process passed the point");
    assert_eq!(told(&session), ["say hello", "continue"]);
}

#[test]
fn a_waiting_session_without_helpers_has_not_ended_and_continues_on_request() {
    let harness = limited("3600\n");
    let session = harness.detach(&["demo", "say hello"]);
    until_waiting(&session);
    // The agent's process exits when the session waits already. Until then the alarm is a different one.
    session.until_look("its process is gone", |view| !view.alive);
    session.orphan();
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.kept, shown.ended), ("waiting", false, false), "{shown:?}");
    assert!(shown.alarm.is_some_and(|alarm| alarm.contains("resume")));
    harness.run(&["resume", session.id(), "--now"]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(told(&session), ["say hello", "continue"]);
}
