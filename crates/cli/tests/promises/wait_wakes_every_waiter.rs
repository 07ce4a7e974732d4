//! Any number of waiters on one session, all woken by one end.

use crate::harness;
use ostler_testkit::{Who, alone};

#[test]
fn a_hundred_waiters_are_all_woken() {
    let _alone = alone();
    let harness = harness();
    let flag = harness.root().join("flag");
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, &format!("until={}", flag.display()), "exit=0"]);
    let waiters: Vec<_> = (0..100).map(|_| harness.start(&["wait", session.id()])).collect();
    // They also survive the death of the keeper that they listen to.
    let before = session.kill(Who::Keeper);
    session.replaced(Who::Keeper, &before);
    assert!(waiters.iter().all(|waiter| waiter.runs()));
    std::fs::write(&flag, "").unwrap();
    for waiter in waiters {
        waiter.finish().exits(0);
    }
}

/// So many that keepers are not asked to tell before something has changed.
#[test]
fn a_wait_for_many_is_woken_by_whatever_ends_one_of_them() {
    let harness = harness();
    let sessions: Vec<_> = (0..17).map(|_| harness.detach(&["--", "sleep", "600"])).collect();
    let wait = |more: &[&'static str]| {
        let ids = sessions.iter().map(|session| session.id());
        harness.start(&["wait"].into_iter().chain(more.iter().copied()).chain(ids).collect::<Vec<_>>())
    };
    let (all, any) = (wait(&[]), wait(&["--any"]));
    let before = sessions[0].kill(Who::Keeper);
    sessions[0].replaced(Who::Keeper, &before);
    assert!(all.runs() && any.runs(), "nothing has ended");
    // Its helpers are gone, and then its agent: no process of ours writes that down.
    sessions[1].orphan();
    sessions[1].kill_if_alive(Who::Agent);
    assert!(any.finish().stdout.contains(sessions[1].id()));
    assert!(all.runs(), "the others live");
    for session in sessions.iter().filter(|session| session.id() != sessions[1].id()) {
        harness.run(&["stop", "--kill", session.id()]).exits(0);
    }
    let told = all.finish().stdout;
    assert!(sessions.iter().all(|session| told.contains(session.id())), "{told}");
}
