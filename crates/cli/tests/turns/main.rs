//! Snapshots of the working tree at every turn: compared, put back, and searched. They are not visible in the user's
//! repository.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod bisect;
mod fixture;
mod killed;
mod not_in_git;
mod odd_files;
#[path = "../git/repo.rs"]
#[expect(dead_code, reason = "shared with tests/git, which uses more of it")]
mod repo;
mod rewind;
mod snapshots;
