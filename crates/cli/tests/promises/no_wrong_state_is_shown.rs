//! From the launch to the end, every reader sees a true state, at any moment and however often it reads.

use crate::harness;
use ostler_core::outcome::Kind;
use ostler_core::view::{Phase, View};
use ostler_testkit::{Poller, ProcessKind, alone};

/// Whether this is a state that a healthy session may have.
fn is_healthy(view: &View) -> bool {
    match view.state {
        Phase::Ended => view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Succeeded) && !view.alive,
        Phase::Starting | Phase::Stopping => view.outcome.is_none(),
        Phase::Waiting => false,
        Phase::Queued | Phase::Working | Phase::Running | Phase::Idle | Phase::Asking => {
            view.outcome.is_none() && view.alive
        }
    }
}

#[test]
fn short_sessions_are_never_seen_lost() {
    let _alone = alone();
    let harness = harness();
    let poller = Poller::start_for_all(&harness.home(), is_healthy);
    for round in 0..8 {
        let sessions = [
            harness.detach(&["--", "true"]),
            harness.detach(&["-t", "--", "true"]),
            harness.detach(&["demo", &format!("say round {round}")]),
        ];
        for session in sessions {
            harness.run(&["wait", session.id()]).exits(0);
        }
    }
    poller.saw_nothing_wrong();
}

#[test]
fn sessions_whose_helpers_are_killed_at_the_end_are_never_seen_lost() {
    let _alone = alone();
    let harness = harness();
    let poller = Poller::start_for_all(&harness.home(), is_healthy);
    for round in 0..6 {
        for who in [ProcessKind::Keeper, ProcessKind::Holder] {
            let flag = harness.root().join(format!("{round} {who:?}"));
            let misbehave = harness.misbehave();
            let words = [&format!("until={}", flag.display()), "say=done", "exit=0"];
            let session = harness.detach(&[&["--", &misbehave], &words[..]].concat());
            session.living(ProcessKind::Keeper);
            std::fs::write(&flag, "").unwrap();
            session.kill_if_alive(who);
            harness.run(&["wait", session.id()]).exits(0);
            assert_eq!(std::fs::read_to_string(session.run_file("out")).unwrap(), "done\n");
        }
    }
    poller.saw_nothing_wrong();
}

#[test]
fn a_turn_can_be_interrupted_right_after_the_launch() {
    let harness = harness();
    for _ in 0..6 {
        let session = harness.detach(&["--keep", "demo", "sleep"]);
        harness.run(&["interrupt", session.id()]).exits(0);
        session.until_look("the turn was interrupted", |view| view.turns == 1 && view.state == Phase::Idle);
        // After that there is nothing to interrupt, and the command says so at once.
        let refused = harness.run(&["interrupt", session.id()]).exits(1).stderr;
        assert!(refused.contains("nothing to interrupt"), "{refused}");
        session.stop();
    }
}

#[test]
fn a_session_that_was_killed_while_it_asked_asks_nothing() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "ask push"]);
    session.until_look("it asks", |view| view.state == Phase::Asking && view.asking.is_some());
    session.kill_together(&[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]);
    let lost: View = serde_json::from_str(&harness.run(&["show", "--json", session.id()]).exits(0).stdout).unwrap();
    assert_eq!((lost.state, &lost.asking), (Phase::Ended, &None));
    assert_eq!(lost.outcome.map(|outcome| outcome.kind), Some(Kind::Lost));
    let refused = harness.run(&["answer", session.id(), "--allow"]).exits(1).stderr;
    assert!(refused.contains("is not asking anything"), "{refused}");
    harness.run(&["wait", session.id()]).exits(5);
}
