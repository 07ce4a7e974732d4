//! What whole-program tests share.
//!
//! * [`Harness`]: a home of its own for one test, the built program in a clean environment, and at the end the proof
//!   that nothing the test started is alive.
//! * [`Session`]: one session under test: what the program says about it, its files, its processes, and killing them.
//! * [`Killer`]: kills processes of all sessions at random, with a seed.
//! * [`Poller`]: looks at a session at full speed while a test injects faults, and remembers every wrong result.
//! * [`patience`]: waits for events, never for time to pass, and fails with a message when they do not come.
//! * [`times`], [`held`]: how often a test repeats its faults, and the result.
//! * [`proves`], [`proves_impossible`]: what a test against a real agent adds to docs/agents.md.
//! * [`recordings`]: recordings of real agents, made by `cargo xtask record`.
//! * [`misbehave`]: a fake agent that does on demand what real agents should not do.
//!
//! A harness that cannot work fails the test with a panic.

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
pub use session::{ProcessKind, Session};
pub use shown::{Outcome, Shown};
pub use small_disk::SmallDisk;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by tests that need the machine for themselves: they kill at precise times or start hundreds of processes.
pub fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    // A test that failed while holding it has already been reported.
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
