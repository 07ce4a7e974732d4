//! Groups: several sessions for one task, compared, and the work of one of them taken.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod comparing;
mod killed;
mod queued;
#[path = "../git/repo.rs"]
#[expect(dead_code, reason = "the tests of worktrees use the rest")]
mod repo;
mod starting;
