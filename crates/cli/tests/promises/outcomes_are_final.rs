//! Once written, an outcome is never overwritten, no matter which process is killed afterwards.

use crate::harness;
use ostler_testkit::ProcessKind;
use rustix::process::Signal;

#[test]
fn an_agent_that_is_killed_after_its_report_has_still_succeeded() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "leave"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    // The agent is killed after it has reported.
    session.kill(ProcessKind::Agent);
    harness.run(&["wait", session.id()]);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().source.as_str()), ("succeeded", "agent"), "{shown:?}");
}

#[test]
fn helpers_that_are_killed_around_the_outcome_change_nothing() {
    let harness = harness();
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let flag = harness.root().join(format!("{who:?}"));
        let misbehave = harness.misbehave();
        let session = harness.detach(&["--", &misbehave, &format!("until={}", flag.display()), "say=done", "exit=0"]);
        let helper = session.living(who);
        std::fs::write(&flag, "").unwrap();
        let outcome = session.run_file("outcome.json");
        session.until("there is an outcome", || outcome.exists().then_some(()));
        let before = std::fs::read(&outcome).unwrap();
        // It may have exited by itself by now; the promise is the same.
        if let Ok(Some(pidfd)) = ostler_sys::process::Pidfd::open(&helper) {
            let _ = pidfd.signal(Signal::KILL);
        }
        harness.run(&["wait", session.id()]).exits(0);
        harness.run(&["stop", session.id()]).exits(0);
        harness.nothing_is_left();
        assert_eq!(std::fs::read(&outcome).unwrap(), before);
        assert_eq!(session.show().outcome().kind, "succeeded");
        assert_eq!(std::fs::read_to_string(session.run_file("out")).unwrap(), "done\n");
    }
}

#[test]
fn helpers_killed_between_exit_and_outcome_lose_neither() {
    let harness = harness();
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let misbehave = harness.misbehave();
        // The process that it leaves behind delays the outcome for the linger time after its exit.
        let session = harness.detach(&["--", &misbehave, "scatter=1", "exit=7"]);
        let exit = session.run_file("exit.json");
        session.until("it has exited", || exit.exists().then_some(()));
        session.kill_if_alive(who);
        harness.run(&["wait", session.id()]).exits(1);
        let shown = session.show();
        let outcome = shown.outcome();
        assert_eq!((outcome.kind.as_str(), outcome.exit_code), ("failed", Some(7)), "{who:?}");
        assert_eq!(outcome.left.len(), 1, "{outcome:?}");
        harness.nothing_is_left();
    }
}
