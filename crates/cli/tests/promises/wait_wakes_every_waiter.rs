//! Any number of processes may wait for one session; its end wakes all of them.

use crate::harness;
use ostler_testkit::{ProcessKind, alone};

#[test]
fn a_hundred_waiters_are_all_woken() {
    let _alone = alone();
    let harness = harness();
    let flag = harness.root().join("flag");
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, &format!("until={}", flag.display()), "exit=0"]);
    let waiters: Vec<_> = (0..100).map(|_| harness.start(&["wait", session.id()])).collect();
    // They also survive the kill of the keeper that they are connected to.
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    assert!(waiters.iter().all(|waiter| waiter.runs()));
    std::fs::write(&flag, "").unwrap();
    for waiter in waiters {
        waiter.finish().exits(0);
    }
}

/// With so many sessions `wait` does not wake their keepers before something has changed.
#[test]
fn a_wait_for_many_is_woken_by_whatever_ends_one_of_them() {
    let harness = harness();
    let sessions: Vec<_> = (0..17).map(|_| harness.detach(&["--", "sleep", "600"])).collect();
    let wait = |more: &[&'static str]| {
        let ids = sessions.iter().map(|session| session.id());
        harness.start(&["wait"].into_iter().chain(more.iter().copied()).chain(ids).collect::<Vec<_>>())
    };
    let (all, any) = (wait(&[]), wait(&["--any"]));
    let before = sessions[0].kill(ProcessKind::Keeper);
    sessions[0].replaced(ProcessKind::Keeper, &before);
    assert!(all.runs() && any.runs(), "nothing has ended");
    // First the helpers are killed, then the agent: no process of ours records its end.
    sessions[1].orphan();
    sessions[1].kill_if_alive(ProcessKind::Agent);
    assert!(any.finish().stdout.contains(sessions[1].id()));
    assert!(all.runs(), "the others live");
    for session in sessions.iter().filter(|session| session.id() != sessions[1].id()) {
        harness.run(&["stop", "--kill", session.id()]).exits(0);
    }
    let told = all.finish().stdout;
    assert!(sessions.iter().all(|session| told.contains(session.id())), "{told}");
}
