//! `--timeout`, `--turn-timeout`, `--budget`, `--max-turns`: each takes effect once, by a proper stop or interrupt, and
//! the cause names it.

use crate::{harness, kill_both};
use ostler_core::view::Phase;
use ostler_testkit::{ProcessKind, patience};
use std::time::Duration;

#[test]
fn a_timeout_during_a_tool_stops_with_proof() {
    let harness = harness();
    // Long enough: on a busy machine it takes seconds until the tool runs.
    let session = harness.detach(&["--timeout", "12s", "demo", "sleep"]);
    session.until_look("it works", |view| view.state == Phase::Working);
    harness.run(&["wait", session.id()]).exits(6);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("stopped", "verified"), "{outcome:?}");
    assert!(outcome.cause.contains("its time limit of 12s has passed"), "{outcome:?}");
    harness.nothing_is_left();
}

#[test]
fn a_timeout_comes_on_time_although_both_helpers_were_killed() {
    let harness = harness();
    // Long enough that both helpers are replaced before it is reached, also on a busy machine.
    let session = harness.detach(&["--timeout", "15s", "--", "sleep", "600"]);
    kill_both(&session);
    harness.run(&["wait", session.id()]).exits(6);
    let shown = session.show();
    let outcome = shown.outcome();
    assert!(outcome.cause.contains("its time limit of 15s has passed"), "{outcome:?}");
    assert!(outcome.duration_ms.is_some_and(|ms| ms >= 15_000), "{outcome:?}");
}

#[test]
fn a_turn_that_takes_too_long_is_interrupted_and_the_session_stays() {
    let harness = harness();
    let session = harness.detach(&["--keep", "--turn-timeout", "1s", "demo", "sleep"]);
    let idle = session.until_look("the turn is interrupted", |view| view.turns == 1 && view.state == Phase::Idle);
    let reason = idle.last_turn.unwrap().reason.unwrap();
    assert!(reason.contains("the turn passed its time limit of 1s"), "{reason}");
    harness.run(&["send", session.id(), "say still there"]).exits(0);
    session.until_look("the next turn", |view| view.turns == 2);
    session.stop();
}

#[test]
fn a_budget_that_is_used_up_ends_the_session_before_the_next_turn() {
    let harness = harness();
    let session = harness.detach(&["--keep", "--budget", "0.05", "demo", "sleep"]);
    session.until_look("it works", |view| view.state == Phase::Working);
    for message in ["spend 0.03 one", "spend 0.03 two", "say never"] {
        harness.run(&["send", session.id(), message]).exits(0);
    }
    harness.run(&["interrupt", session.id()]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    let shown = session.show();
    let outcome = shown.outcome();
    assert!(outcome.cause.contains("its budget of $0.05 is used up ($0.06)"), "{outcome:?}");
    assert_eq!((shown.turns, shown.queued, outcome.saved.as_str()), (3, 1, "verified"));
    assert_eq!(crate::told(&session).last().map(String::as_str), Some("spend 0.03 two"));
}

#[test]
fn no_turn_begins_after_the_turn_limit() {
    let harness = harness();
    harness.configure("[agents.demo]\nmax_turns = 2\n");
    let session = harness.detach(&["--keep", "demo", "sleep"]);
    session.until_look("it works", |view| view.state == Phase::Working);
    for message in ["say two", "say three"] {
        harness.run(&["send", session.id(), message]).exits(0);
    }
    harness.run(&["interrupt", session.id()]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    let shown = session.show();
    assert!(shown.outcome().cause.contains("its limit of 2 turns is reached"), "{shown:?}");
    assert_eq!((shown.turns, shown.queued), (2, 1));
    // A limit that is given with `resume` counts from zero.
    harness.run(&["resume", session.id(), "--max-turns", "1"]).exits(0);
    assert_eq!(session.show().outcome().text.as_deref(), Some("three"));
}

#[test]
fn a_resumed_session_keeps_its_turn_limit_and_its_count_until_it_gets_a_new_limit() {
    let harness = harness();
    harness.run(&["run", "--name", "it", "--max-turns", "2", "--timeout", "1h", "demo", "say one"]).exits(0);
    let session = harness.session(&harness.ls()[0].id);
    harness.run(&["resume", "it", "say two"]).exits(0);
    let refused = harness.run(&["resume", "it", "say three"]).exits(2);
    let words = format!(
        "its limit of 2 turns is reached; give it a new one that counts from now: ostler resume {} --max-turns N",
        session.id()
    );
    assert!(refused.complaint().contains(&words), "{refused:?}");
    let shown = session.show();
    assert_eq!((shown.run, shown.turns, shown.queued), (2, 2, 0), "nothing was started, and nothing waits");
    harness.run(&["resume", "it", "--max-turns", "1", "say three"]).exits(0);
    harness.run(&["resume", "it", "say four"]).exits(2);
    harness.run(&["resume", "it", "--max-turns", "none", "say four"]).exits(0);
    harness.run(&["resume", "it", "say five"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.turns, shown.outcome().text.as_deref()), (5, Some("five")));
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(session.run_file("run.json")).unwrap()).unwrap();
    assert_eq!(record["plan"]["rules"]["timeout_ms"], 3_600_000, "{record}");
}

#[test]
fn what_a_resumed_session_has_spent_still_counts_until_it_gets_a_new_budget() {
    let harness = harness();
    let session = harness.detach(&["--keep", "--budget", "0.05", "demo", "sleep"]);
    session.until_look("it works", |view| view.state == Phase::Working);
    for message in ["spend 0.03 one", "spend 0.03 two", "say later"] {
        harness.run(&["send", session.id(), message]).exits(0);
    }
    harness.run(&["interrupt", session.id()]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    let before = session.show();
    assert!(before.outcome().cause.contains("is used up"), "{before:?}");
    for words in [
        &["resume", session.id()][..],
        &["resume", "-d", "--keep", session.id()],
        &["resume", session.id(), "say more"],
    ] {
        let refused = harness.run(words).exits(2);
        assert!(refused.complaint().contains("its budget of $0.05 is used up ($0.06)"), "{refused:?}");
        assert!(refused.complaint().contains(&format!("ostler resume {} --budget USD", session.id())), "{refused:?}");
    }
    assert_eq!((session.show().run, session.show().turns), (before.run, before.turns));
    // The new budget counts from here, over all later runs.
    harness.run(&["resume", session.id(), "--budget", "0.05"]).exits(0);
    harness.run(&["resume", session.id(), "spend 0.03 three"]).exits(0);
    harness.run(&["resume", session.id(), "spend 0.03 four"]).exits(0);
    harness.run(&["resume", session.id(), "spend 0.03 five"]).exits(2);
    assert_eq!(session.show().turns, before.turns + 3);
}

#[test]
fn using_the_only_allowed_turn_is_not_reported_as_a_limit() {
    let harness = harness();
    let output = harness.run(&["run", "--max-turns", "1", "--budget", "5", "demo", "say done"]).exits(0);
    assert_eq!(output.stdout, "done\n");
    assert!(!harness.session(&harness.ls()[0].id).show().outcome().cause.contains("limit"));
}

#[test]
fn limits_that_cannot_be_enforced_are_refused_and_no_session_is_left() {
    let harness = harness();
    for words in [
        &["run", "--budget", "1", "codex", "say x"][..],
        &["run", "--budget", "1", "--", "true"],
        &["run", "-t", "--budget", "1", "demo"],
        &["run", "-t", "--max-turns", "1", "demo", "say x"],
        &["run", "-t", "--turn-timeout", "1m", "demo", "say x"],
        &["run", "--max-turns", "1", "--", "true"],
        &["run", "--turn-timeout", "1m", "--", "true"],
        &["run", "--on-limit", "wait", "--", "true"],
        &["run", "--on-limit", "codex", "demo", "say x"],
        &["run", "--on-limit", "nosuch", "demo", "say x"],
        &["run", "--on-limit", "", "demo", "say x"],
        &["run", "--timeout", "0", "--", "true"],
        &["run", "--timeout", "soon", "--", "true"],
        &["run", "--budget", "-1", "demo", "say x"],
        &["run", "--max-turns", "0", "demo", "say x"],
        &["run", "--restart", "always", "--", "true"],
    ] {
        let output = harness.run(words).exits(2);
        assert_eq!((output.stdout.as_str(), output.stderr.lines().count()), ("", 1), "{words:?}: {output:?}");
    }
    assert_eq!(harness.ls(), []);
}

/// How often the process has gone to sleep since its start.
fn sleeps(process: &ostler_sys::process::Identity) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn a_limit_that_is_not_due_wakes_no_helper() {
    let harness = harness();
    let session = harness.detach(&["--timeout", "1h", "--", "sleep", "600"]);
    let helpers = [session.living(ProcessKind::Holder), session.living(ProcessKind::Keeper)];
    let all = || helpers.iter().map(sleeps).collect::<Vec<u64>>();
    let mut before = all();
    patience::until("the helpers are idle", &[], || {
        assert!(!patience::ends_within(&helpers[0], Duration::from_secs(2)));
        let last = std::mem::replace(&mut before, all());
        (last == before).then_some(())
    });
    assert!(!patience::ends_within(&helpers[0], Duration::from_secs(10)));
    assert_eq!(all(), before, "a helper woke up");
    session.stop();
}
