//! `--at` and `--after`.

use crate::{harness, log, said};
use ostler_testkit::{Harness, ProcessKind, Session};

/// Starts a session with these options, whose program writes this word.
fn later<'a>(harness: &'a Harness, options: &[&str], word: &str) -> Session<'a> {
    let file = log(harness);
    let command = ["--", "sh", "-c", "echo \"$2\" >> \"$1\"", "sh", file.to_str().unwrap(), word];
    harness.detach(&[options, &command[..]].concat())
}

#[test]
fn a_session_starts_after_the_required_outcome_of_another_and_otherwise_never_runs() {
    let harness = harness();
    let other = harness.detach(&["--", "sleep", "600"]);
    let succeeded = later(&harness, &["--after", other.id()], "after success");
    let stopped = later(&harness, &["--after", &format!("{}=stopped", other.id())], "after stop");
    let ended = later(&harness, &["--after", &format!("{}=ended", other.id())], "after end");
    // A chain: a session that waits for one that never runs does not run either.
    let chained = later(&harness, &["--after", succeeded.id()], "chained");
    let after_two = later(&harness, &["--after", stopped.id(), "--after", ended.id()], "after two");
    for session in [&succeeded, &stopped, &ended, &chained, &after_two] {
        assert_eq!(session.show().state, "queued");
    }
    let text = harness.run(&["show", succeeded.id()]).exits(0).stdout;
    assert!(text.contains(&format!("waits for {}", other.id())), "{text}");
    // The helpers of the session that is waited for may be replaced in the meantime.
    let keeper = other.kill(ProcessKind::Keeper);
    other.replaced(ProcessKind::Keeper, &keeper);
    let holder = other.kill(ProcessKind::Holder);
    other.replaced(ProcessKind::Holder, &holder);
    other.stop();
    for session in [&stopped, &ended, &after_two] {
        harness.run(&["wait", session.id()]).exits(0);
    }
    harness.run(&["wait", succeeded.id(), chained.id()]);
    for session in [&succeeded, &chained] {
        let shown = session.show();
        let outcome = shown.outcome();
        assert_eq!(outcome.kind, "stopped", "{outcome:?}");
        assert!(outcome.cause.contains("which it waited for, is stopped, not succeeded"), "{outcome:?}");
        assert!(outcome.cause.contains("nothing ran"), "{outcome:?}");
    }
    let mut said = said(&harness);
    assert_eq!(said.pop().as_deref(), Some("after two"));
    said.sort_unstable();
    assert_eq!(said, ["after end", "after stop"]);
}

#[test]
fn a_session_that_waits_for_a_failed_one_fails_and_an_ended_one_is_not_waited_for() {
    let harness = harness();
    let fails = harness.detach(&["--", "false"]);
    let waits = later(&harness, &["--after", fails.id()], "never");
    harness.run(&["wait", waits.id()]).exits(1);
    let shown = waits.show();
    assert!(shown.outcome().cause.contains("is failed, not succeeded: the program exited with 1"), "{shown:?}");
    // A followed run reports this on standard error; standard output stays empty.
    let followed = harness.run(&["run", "--after", fails.id(), "--", "echo", "never"]).exits(1);
    assert_eq!(followed.stdout, "");
    assert!(followed.stderr.contains("is failed, not succeeded: the program exited with 1"), "{followed:?}");
    let works = later(&harness, &["--after", &format!("{}=failed", fails.id())], "cleaned up");
    harness.run(&["wait", works.id()]).exits(0);
    assert_eq!(said(&harness), ["cleaned up"]);
}

#[test]
fn a_session_starts_at_its_time_also_when_both_helpers_are_gone() {
    let harness = harness();
    let past = later(&harness, &["--at", "2020-01-01T00:00"], "past");
    harness.run(&["wait", past.id()]).exits(0);
    let tomorrow = later(&harness, &["--at", "tomorrow 9:00"], "tomorrow");
    // Long enough that its helpers are killed before that, also on a busy machine.
    let soon = later(&harness, &["--at", "+15s"], "soon");
    assert_eq!((soon.show().state.as_str(), tomorrow.show().state.as_str()), ("queued", "queued"));
    assert_eq!(said(&harness), ["past"]);
    soon.orphan();
    let waiting = soon.recorded(ProcessKind::Agent).unwrap();
    ostler_testkit::patience::ended(&waiting);
    assert_eq!(said(&harness), ["past", "soon"]);
    let text = harness.run(&["ls"]).exits(0).stdout;
    assert!(text.contains("starts at "), "{text}");
    harness.run(&["stop", tomorrow.id()]).exits(0);
    assert_eq!(tomorrow.show().outcome().kind, "stopped");
    assert_eq!(said(&harness), ["past", "soon"]);
}

#[test]
fn a_time_is_in_the_time_zone_that_is_set() {
    let mut harness = harness();
    harness.set("TZ", "Asia/Tokyo");
    let tomorrow = later(&harness, &["--at", "tomorrow 09:30"], "tomorrow");
    let at = harness.run(&["show", "--json", tomorrow.id()]).exits(0).json()["waits"]["at"].to_string();
    assert!(at.contains("T00:30:00Z"), "half past nine in Tokyo: {at}");
    harness.run(&["stop", tomorrow.id()]).exits(0);
}
