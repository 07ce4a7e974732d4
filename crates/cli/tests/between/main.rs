//! Between agents: an agent continues, reviews or divides the work of another.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod fanning;
mod handing_over;
#[path = "../git/repo.rs"]
mod repo;
mod reviewing;
mod working;

use crate::repo::Repo;
use serde_json::Value;

/// The output of `show --json`.
#[track_caller]
pub fn shown(repo: &Repo, id: &str) -> Value {
    repo.ostler(&["show", "--json", id]).exits(0).json()
}

/// The messages that a session got.
#[track_caller]
pub fn told(repo: &Repo, id: &str) -> Vec<String> {
    let log = repo.ostler(&["logs", "--json", id]).exits(0).stdout;
    let items = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    items.filter(|item| item["kind"] == "told").map(|item| item["text"].as_str().unwrap().to_owned()).collect()
}
