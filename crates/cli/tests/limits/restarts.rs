//! `--restart on-failure`: the next run begins by itself, as often as requested, and never after a stop.

use crate::{harness, kill_both};
use ostler_core::view::Phase;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::{Poller, ProcessKind};

#[test]
fn a_command_that_fails_is_restarted_as_often_as_asked_and_never_shown_as_ended_in_between() {
    let harness = harness();
    let file = harness.root().join("starts");
    let poller = Poller::start_for_all(&harness.home(), |view| !view.ended || view.run == 3);
    let command = format!("echo started >> {}; exit 3", file.display());
    let session = harness.detach(&["--restart", "on-failure:2", "--", "sh", "-c", &command]);
    let waiting = session.until_look("it pauses", |view| view.state == Phase::Waiting);
    assert_eq!(waiting.waits_for.as_deref(), Some("restart"));
    assert!(waiting.resumes_at.is_some() && !waiting.ended && waiting.outcome.is_none());
    harness.run(&["wait", session.id()]).exits(1);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 3);
    let shown = session.show();
    assert_eq!((shown.run, shown.outcome().kind.as_str(), shown.outcome().exit_code), (3, "failed", Some(3)));
    poller.saw_nothing_wrong();
}

#[test]
fn helpers_killed_in_the_pause_are_replaced_and_the_command_restarts_once() {
    let harness = harness();
    let (file, gate) = (harness.root().join("starts"), harness.root().join("gate"));
    // The last run of the command does not end before the helpers are replaced.
    let command = format!(
        "echo started >> {0}; test $(wc -l < {0}) -ge 5 || exit 1; until test -e {1}; do sleep 0.05; done",
        file.display(),
        gate.display()
    );
    let session = harness.detach(&["--restart", "on-failure:4", "--", "sh", "-c", &command]);
    // Later pauses are longer: there is time for both kills.
    session.until_look("it pauses for the fourth time", |view| view.state == Phase::Waiting && view.run == 4);
    kill_both(&session);
    std::fs::write(&gate, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 5);
    assert_eq!(session.show().run, 5);
}

#[test]
fn a_stop_in_the_pause_is_final() {
    let harness = harness();
    let session = harness.detach(&["--restart", "on-failure:50", "--", "false"]);
    // Later pauses are longer: there is time for the stop.
    session.until_look("it pauses for the fourth time", |view| view.state == Phase::Waiting && view.run == 4);
    harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.run, shown.state.as_str()), (4, "ended"));
    assert!(shown.outcome().cause.contains("stopped by"), "{:?}", shown.outcome());
    harness.nothing_is_left();
    assert_eq!(session.show().run, 4);
}

#[test]
fn resume_now_ends_the_pause() {
    let harness = harness();
    let file = harness.root().join("fails");
    std::fs::write(&file, "").unwrap();
    let command = format!("! test -e {}", file.display());
    let session = harness.detach(&["--restart", "on-failure:50", "--", "sh", "-c", &command]);
    session.until_look("it pauses for the fourth time", |view| view.state == Phase::Waiting && view.run == 4);
    std::fs::remove_file(&file).unwrap();
    harness.run(&["resume", session.id(), "--now"]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(session.show().run, 5);
    harness.run(&["resume", session.id(), "--now"]).exits(2);
}

#[test]
fn an_agent_that_is_killed_continues_its_conversation() {
    let harness = harness();
    let session = harness.detach(&["--keep", "--restart", "on-failure", "demo", "say one"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let native = session.show().native_id;
    // An agent that is killed before it has written its transcript has no conversation to resume.
    session.until_look("its turn is saved", |_| crate::told(&session) == ["say one"]);
    session.kill(ProcessKind::Agent);
    session.until_look("it is started again", |view| view.run == 2 && view.alive);
    harness.run(&["send", session.id(), "say two"]).exits(0);
    session.until_look("the second answer", |view| view.turns == 2 && view.state == Phase::Idle);
    assert_eq!(session.show().native_id, native);
    session.stop();
    assert_eq!(crate::told(&session), ["say one", "say two"]);
}

#[test]
fn an_agent_that_fails_its_turn_is_told_to_continue_after_the_pause() {
    let harness = harness();
    let session = harness.detach(&["--restart", "on-failure:1", "demo", "fail the server is down"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(crate::told(&session), ["fail the server is down", "continue"]);
    assert_eq!(session.show().run, 2);
}

#[test]
fn the_next_run_begins_once_although_a_process_is_killed_while_preparing_it() {
    for (role, point) in [(Role::Keeper, Point::PreparingStarted), (Role::Preparer, Point::Prepared)] {
        let mut harness = harness();
        let folder = harness.root().join("pause");
        std::fs::create_dir_all(&folder).unwrap();
        harness.set(pause_points::VARIABLE, folder.clone());
        let trap = folder.join(format!("{}.kill", pause_points::token(role, point)));
        std::fs::write(&trap, "x").unwrap();
        let session = harness.detach(&["--restart", "on-failure:1", "demo", "fail the server is down"]);
        harness.run(&["wait", session.id()]).exits(0);
        assert!(!trap.exists(), "no process passed {point:?}");
        assert_eq!(crate::told(&session), ["fail the server is down", "continue"]);
        assert_eq!(session.show().run, 2);
        harness.nothing_is_left();
    }
}

#[test]
fn a_stop_while_the_next_run_is_prepared_is_final() {
    let mut harness = harness();
    let folder = harness.root().join("pause");
    std::fs::create_dir_all(&folder).unwrap();
    harness.set(pause_points::VARIABLE, folder.clone());
    let trap = folder.join(format!("{}.stop", pause_points::token(Role::Preparer, Point::Prepared)));
    std::fs::write(&trap, "x").unwrap();
    let session = harness.detach(&["--restart", "on-failure:1", "demo", "fail the server is down"]);
    ostler_testkit::patience::until("the process that prepares it is stopped", &[&folder], || {
        (!trap.exists()).then_some(())
    });
    harness.run(&["stop", session.id()]).exits(0);
    assert_eq!((session.show().run, session.show().ended), (1, true));
    harness.nothing_is_left();
}
