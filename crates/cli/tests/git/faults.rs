//! A few random faults, always the same ones. `cargo xtask chaos git` injects any number.

use ostler_chaos::git::operation::Operation;
use ostler_chaos::git::{IN_ONE_WORLD, play};
use std::path::Path;

#[test]
fn no_work_is_lost_whatever_is_killed() {
    let mut injected = 0;
    play(Path::new(env!("CARGO_BIN_EXE_ostler")), &Operation::ALL, 1, IN_ONE_WORLD, &mut |played| {
        injected += u64::from(played.injected)
    });
    assert!(injected > 0, "no fault came in time");
}
