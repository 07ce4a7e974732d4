//! Upkeep of sessions: archiving, deleting, diagnosing, events, upgrading. One binary, because linking takes longer
//! than running.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

mod archiving;
mod checkpoints;
mod counting;
mod disk_usage;
mod doctoring;
mod listening;
mod purging;
mod repairing;
mod sweeping;
mod upgrading;

use ostler_testkit::Harness;

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}
