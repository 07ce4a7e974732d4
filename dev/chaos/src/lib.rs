//! Faults on purpose: real processes are killed, stopped, deprived of resources and given wrong data. After each fault
//! everything that was promised is checked against the kernel, the agent's own transcript and the model's record.
//!
//! * [`fixture`]: one session, the simulated people that use it, and what must hold in the end.
//! * [`agents`]: the agents: the demo, one with a process per message, and the real claude where it is installed.
//! * [`witness`]: looks on all the time: no wrong status, never two writers.
//! * [`fault`], [`inject`], [`round`]: the faults, how they are injected, and one fault from the seed to the verdict.
//! * [`power`]: cuts the power at every moment of a session's life.
//! * [`git`]: faults while ostler works with git.
//! * [`points`]: kills at every pause point in turn, by every kind of process.
//!
//! Only processes that a run itself started are ever signalled, by identity. A broken promise is a panic, as in any
//! test; the runner catches it and prints which fault and which seed it was.

#![expect(clippy::expect_used, clippy::panic, reason = "what is promised and does not hold fails the run")]

mod adopting;
pub mod agents;
mod another_build;
mod archiving;
pub mod fault;
pub mod fixture;
pub mod git;
pub mod inject;
pub mod points;
pub mod power;
pub mod random;
pub mod reused;
pub mod round;
pub mod witness;

/// Does something that may find a broken promise. The error says which.
pub fn attempt<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
    })
}
