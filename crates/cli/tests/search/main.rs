//! `ostler search` with the built program: what is found, how a hit is continued, and that no file on the disk makes it
//! fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare or read its files has failed")]

mod damage;
mod finding;
mod growing;
mod index;
mod own_sessions;
mod transcripts;

use ostler_testkit::{Harness, Output, Started};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

/// Gives all files of this home to the user `nobody`, for whom permissions apply (root ignores them). `None` when this
/// is not possible: only root can do it.
fn belongs_to_other_user(harness: &Harness) -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "becoming another user needs root");
        return None;
    }
    let program = harness.copied_program("copy");
    let given = harness.command("chown").args(["-R", "65534:65534"]).arg(harness.root()).status().unwrap();
    assert!(given.success());
    Some(program)
}

/// Runs a command as the user `nobody`.
fn as_other_user(harness: &Harness, program: &Path, arguments: &[&str]) -> Output {
    let mut command = harness.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program).args(arguments);
    Started::new(command, None).finish()
}

/// The hits of a search; fails when there are none.
#[track_caller]
fn hits(harness: &Harness, words: &[&str]) -> Vec<Value> {
    let found = harness.run(&[&["search", "--json"], words].concat()).exits(0).json();
    found.as_array().unwrap().clone()
}

/// The texts of the hits, the newest first; there may be none.
#[track_caller]
fn texts(harness: &Harness, words: &[&str]) -> Vec<String> {
    let found = harness.run(&[&["search", "--json"], words].concat());
    let json = found.json();
    let hits = json.as_array().unwrap();
    assert_eq!(found.code, Some(i32::from(hits.is_empty())), "{found:?}");
    hits.iter().map(|hit| hit["text"].as_str().unwrap().to_owned()).collect()
}
