//! From the launch to the end, a look at any moment and however often shows a true state.

use crate::harness;
use ostler_core::outcome::Kind;
use ostler_core::view::{Phase, View};
use ostler_testkit::{Poller, Who, alone};

/// What a healthy session may look like, at any moment.
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
fn sessions_that_come_and_go_are_never_seen_lost() {
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
fn nor_are_those_whose_helpers_die_while_they_end() {
    let _alone = alone();
    let harness = harness();
    let poller = Poller::start_for_all(&harness.home(), is_healthy);
    for round in 0..6 {
        for who in [Who::Keeper, Who::Holder] {
            let flag = harness.root().join(format!("{round} {who:?}"));
            let misbehave = harness.misbehave();
            let words = [&format!("until={}", flag.display()), "say=done", "exit=0"];
            let session = harness.detach(&[&["--", &misbehave], &words[..]].concat());
            session.living(Who::Keeper);
            std::fs::write(&flag, "").unwrap();
            session.kill_if_alive(who);
            harness.run(&["wait", session.id()]).exits(0);
            assert_eq!(std::fs::read_to_string(session.run_file("out")).unwrap(), "done\n");
        }
    }
    poller.saw_nothing_wrong();
}

#[test]
fn what_is_said_to_work_can_be_interrupted_also_in_its_first_moment() {
    let harness = harness();
    for _ in 0..6 {
        let session = harness.detach(&["--keep", "demo", "sleep"]);
        harness.run(&["interrupt", session.id()]).exits(0);
        session.until_look("the turn was interrupted", |view| view.turns == 1 && view.state == Phase::Idle);
        // Then there is nothing to interrupt, which is said at once.
        let refused = harness.run(&["interrupt", session.id()]).exits(1).stderr;
        assert!(refused.contains("nothing to interrupt"), "{refused}");
        session.stop();
    }
}
