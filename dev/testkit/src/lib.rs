//! What whole-program tests share.
//!
//! * [`Harness`]: a home of its own for one test, the built program in a clean environment, and at the end the proof that
//!   nothing the test started is alive.
//! * [`Session`]: one session under test: what the program says about it, its files, its processes, and killing them.
//! * [`Killer`]: kills processes of all sessions at random, with a seed.
//! * [`Poller`]: looks at a session at full speed while a test does its worst, and remembers every wrong word.
//! * [`patience`]: waiting for events, never for time to pass, and failing loudly when they do not come.
//! * [`times`], [`held`]: how often a test does its worst, and what came of it.
//! * [`proves`], [`proves_impossible`]: what a test against a real agent adds to docs/agents.md.
//! * [`recordings`]: what real agents said, as `cargo xtask record` wrote it down.
//! * [`misbehave`]: a fake agent that does on demand what real ones should not.
//!
//! A harness that cannot do its work fails the test with a panic: that is what a test's failure is.

#![expect(clippy::expect_used, clippy::panic, reason = "a harness that cannot go on fails the test")]

mod count;
mod harness;
mod kills;
mod leftovers;
pub mod misbehave;
mod output;
pub mod patience;
mod poller;
mod proven;
pub mod recordings;
mod session;
mod shown;
mod small_disk;

pub use count::{held, times};
pub use harness::Harness;
pub use kills::{Killed, Killer};
pub use leftovers::alive as alive_below;
pub use output::{Output, Started};
pub use poller::{Poller, Seen};
pub use proven::{proves, proves_impossible};
pub use session::{Session, Who};
pub use shown::{Outcome, Shown};
pub use small_disk::SmallDisk;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by tests that need the machine for themselves: they kill by the clock or start processes by the hundred.
pub fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    // A test that failed while holding it has already said so.
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
