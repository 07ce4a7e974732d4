//! The request to stop is on disk before any signal is sent: no matter which process is killed afterwards, the session
//! ends, and stays ended.

use crate::harness;
use ostler_core::view::Phase;
use ostler_sys::process::{Identity, Pidfd};
use ostler_testkit::{Harness, ProcessKind, Session, patience};
use rustix::process::Signal;

/// A session whose program ignores requests to exit and has to be killed.
fn deaf(harness: &Harness) -> Session<'_> {
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "deaf", "say=deaf", "forever"]);
    session.until_printed("deaf");
    session
}

/// Kills a helper and waits for its replacement. `false`: the grace was over before that, and no helper is left.
fn replace(session: &Session<'_>, who: ProcessKind) -> bool {
    let living = |not: Option<&Identity>| {
        session.until(&format!("a {who:?} lives, or it has ended"), || {
            let living = session.recorded_if_there(who).filter(|now| Some(now) != not).filter(Identity::may_live);
            living.map(Some).or_else(|| session.look().ended.then_some(None))
        })
    };
    let Some(before) = living(None) else { return false };
    if let Some(pidfd) = Pidfd::open(&before).unwrap() {
        pidfd.signal(Signal::KILL).unwrap();
        patience::ended(&before);
    }
    living(Some(&before)).is_some()
}

#[test]
fn a_stop_is_completed_although_helpers_are_killed_in_the_middle() {
    let harness = harness();
    for who in [
        &[ProcessKind::Keeper][..],
        &[ProcessKind::Holder],
        &[ProcessKind::Keeper, ProcessKind::Holder, ProcessKind::Keeper],
    ] {
        let session = deaf(&harness);
        let stopper = harness.start(&["stop", "--grace", "3s", session.id()]);
        session.until_look("it is stopping", |view| view.state == Phase::Stopping);
        // On a busy machine the grace may be over before all of them are killed.
        _ = who.iter().all(|&who| replace(&session, who));
        stopper.finish().exits(0);
        harness.nothing_is_left();
        let shown = session.show();
        assert_eq!((shown.outcome().kind.as_str(), shown.state.as_str()), ("stopped", "ended"));
        assert!(shown.outcome().cause.contains("tester"), "{shown:?}");
    }
}

/// A loop resumes its conversation as soon as a person has stopped it.
#[test]
fn a_stopper_returns_with_the_end_that_it_asked_for_although_the_session_was_resumed_at_once() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "sleep"]);
    session.until_look("the tool runs", |view| view.last.as_deref().is_some_and(|last| last.contains("sleep 1000")));
    let stopper = harness.start(&["stop", "--after-turn", session.id()]);
    session.until_look("it is stopping", |view| view.state == Phase::Stopping);
    let stopped = Pidfd::open(stopper.process()).unwrap().unwrap();
    stopped.signal(Signal::STOP).unwrap();
    harness.run(&["interrupt", session.id()]).exits(0);
    harness.run(&["wait", session.id()]).exits(6);
    harness.run(&["resume", "-d", "--keep", session.id(), "sleep"]).exits(0);
    session.until_look("it runs again", |view| view.run == 2 && view.kept);
    stopped.signal(Signal::CONT).unwrap();
    let output = stopper.finish().exits(0);
    assert!(output.stdout.contains(": stopped"), "{output:?}");
    assert!(session.show().alive);
    session.stop();
}

#[test]
fn a_stopper_that_is_killed_has_still_stopped_it() {
    let harness = harness();
    let session = deaf(&harness);
    // Long enough that the state is seen, also on a busy machine.
    let stopper = harness.start(&["stop", "--grace", "5s", session.id()]);
    session.until_look("it is stopping", |view| view.state == Phase::Stopping);
    stopper.kill();
    harness.run(&["wait", session.id()]).exits(6);
}

#[test]
fn a_stop_ends_an_agent_that_has_lost_both_helpers() {
    let harness = harness();
    let session = deaf(&harness);
    session.orphan();
    harness.run(&["stop", "--grace", "500ms", session.id()]).exits(0);
    harness.nothing_is_left();
    assert_eq!(session.show().outcome().kind, "stopped");
}

#[test]
fn a_machine_that_shuts_down_stops_the_session_properly() {
    let harness = harness();
    for who in [ProcessKind::Holder, ProcessKind::Keeper] {
        let session = harness.detach(&["--keep", "demo", "say before the end"]);
        harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
        let helper = session.living(who);
        Pidfd::open(&helper).unwrap().unwrap().signal(Signal::TERM).unwrap();
        harness.run(&["wait", session.id()]).exits(0);
        let shown = session.show();
        let outcome = shown.outcome();
        assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("succeeded", "verified"), "{who:?}");
        assert!(outcome.cause.contains("SIGTERM"), "{outcome:?}");
        harness.nothing_is_left();
    }
}

#[test]
fn a_running_turn_is_interrupted_and_saved_or_finished_as_requested() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "sleep"]);
    session.until_look("the tool runs", |view| view.last.as_deref().is_some_and(|last| last.contains("sleep 1000")));
    harness.run(&["send", session.id(), "say never"]).exits(0);
    session.stop();
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("stopped", "verified"), "{outcome:?}");
    assert_eq!((shown.queued, shown.turns), (1, 1), "a waiting message is not delivered any more");
    harness.nothing_is_left();

    let session = harness.detach(&["--keep", "demo", "ask on?"]);
    harness.run(&["wait", "--until", "asking", session.id()]).exits(4);
    let stopper = harness.start(&["stop", "--after-turn", session.id()]);
    session.until_look("it will stop", |view| view.state == Phase::Stopping);
    assert!(stopper.runs());
    let sent = harness.run(&["send", session.id(), "say later"]).exits(0);
    let words =
        format!("accepted; the session is stopping, send it when it has stopped: ostler resume {}", session.id());
    assert!(sent.stdout.contains(&words), "{sent:?}");
    harness.run(&["answer", "--allow", session.id()]).exits(0);
    stopper.finish().exits(0);
    let shown = session.show();
    assert_eq!(shown.queued, 1, "it goes out with the next resume");
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().text.as_deref()), ("succeeded", Some("allowed: on?")));
}

#[test]
fn stopping_what_has_ended_is_no_failure_and_changes_nothing() {
    let harness = harness();
    let session = harness.detach(&["--", "false"]);
    harness.run(&["wait", session.id()]).exits(1);
    let before = std::fs::read(session.run_file("outcome.json")).unwrap();
    harness.run(&["stop", session.id()]).exits(0);
    harness.run(&["stop", "--kill", session.id()]).exits(0);
    assert_eq!(std::fs::read(session.run_file("outcome.json")).unwrap(), before);
}

#[test]
fn several_sessions_are_stopped_by_one_command() {
    let harness = harness();
    let sessions = [harness.detach(&["--", "sleep", "600"]), harness.detach(&["-t", "--", "bash", "--norc"])];
    harness.run(&["stop", sessions[0].id(), sessions[1].id()]).exits(0);
    assert!(sessions.iter().all(|session| session.show().ended));
}

#[test]
fn stop_after_turn_says_that_the_session_asks_first() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "ask may I?"]);
    harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let stop = harness.start(&["stop", "--after-turn", session.id()]);
    session.until_look("the request to stop", |view| view.state.word() == "stopping");
    harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    harness.run(&["answer", session.id(), "--allow"]).exits(0);
    let stopped = stop.finish().exits(0);
    assert!(stopped.stderr.contains("asks first"), "{stopped:?}");
    assert_eq!(session.show().outcome().kind, "succeeded");
}

/// When no variable has the user's name (a service, a container), it is taken from the machine's list of users.
#[test]
fn the_user_who_stopped_a_session_is_named_without_the_environment() {
    let mut harness = harness();
    harness.set("USER", "");
    let session = harness.detach(&["--", "sleep", "1000"]);
    harness.run(&["stop", session.id()]);
    let known = std::process::Command::new("id").arg("-un").output().unwrap();
    let known = String::from_utf8(known.stdout).unwrap();
    let cause = session.show().outcome().cause.clone();
    assert!(cause.starts_with(&format!("stopped by {} (pid ", known.trim())), "{cause}");
}

#[test]
fn stop_here_and_stop_all_stop_the_right_sessions() {
    let harness = harness();
    let folder = harness.root().join("work");
    std::fs::create_dir(&folder).unwrap();
    let [here, below] = [folder.clone(), folder.join("below")].map(|cwd| {
        std::fs::create_dir_all(&cwd).unwrap();
        harness.detach(&["--cwd", cwd.to_str().unwrap(), "--", "sleep", "600"])
    });
    let elsewhere = harness.detach(&["--", "sleep", "600"]);
    let ended = harness.detach(&["--", "true"]);
    harness.run(&["wait", ended.id()]).exits(0);
    harness.run(&["stop"]).exits(2).complaint();
    harness.run(&["stop", "--all", here.id()]).exits(2).complaint();

    let mut command = harness.command(harness.program());
    let output = command.args(["stop", "--here"]).current_dir(&folder).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains(here.id()) && told.contains(below.id()), "{output:?}");
    assert!(!told.contains(elsewhere.id()) && elsewhere.look().alive, "{told}");

    let told = harness.run(&["stop", "--all"]).exits(0).stdout;
    assert!(told.starts_with(elsewhere.id()) && told.lines().count() == 1, "{told}");
    assert!(harness.run(&["stop", "--all"]).exits(0).stderr.contains("no session is running"));
}

#[test]
fn stop_all_from_inside_a_session_leaves_that_session_running() {
    let harness = harness();
    let other = harness.detach(&["--", "sleep", "600"]);
    let script = format!("{:?} stop --all", harness.program());
    let inner = harness.detach(&["--", "sh", "-c", &script]);
    harness.run(&["wait", inner.id()]).exits(0);
    assert!(other.look().ended);
    let told = harness.run(&["logs", inner.id()]).exits(0);
    assert!(told.stderr.contains("left running") || told.stdout.contains("left running"), "{told:?}");
}
