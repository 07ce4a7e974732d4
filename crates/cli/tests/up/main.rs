//! A file of jobs: each runs once, as soon as the jobs that it needs have succeeded, whichever process is killed.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod examples;
mod kills;
mod mistakes;
#[path = "../git/repo.rs"]
mod repo;
mod running;

use crate::repo::Repo;
use serde_json::Value;

/// A repository in which commands find `ostler` in their PATH.
pub fn repo() -> Repo {
    let mut repo = Repo::new();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_ostler"));
    let path = std::env::var("PATH").unwrap();
    repo.harness.set("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    repo
}

/// All sessions.
#[track_caller]
pub fn sessions(repo: &Repo) -> Vec<Value> {
    repo.ostler(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().clone()
}

/// The sessions with this name.
#[track_caller]
pub fn named(repo: &Repo, name: &str) -> Vec<Value> {
    sessions(repo).into_iter().filter(|one| one["name"] == name).collect()
}
