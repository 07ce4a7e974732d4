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
