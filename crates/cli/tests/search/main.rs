//! `ostler search` with the built program: what is found, what continues from there, and that nothing on the disk stops it.

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

/// Gives everything of this home to nobody, whom permissions concern. `None` where that is not possible: only root can.
fn belongs_to_nobody(harness: &Harness) -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "becoming another user needs root");
        return None;
    }
    let program = harness.copied_program("copy");
    let given = harness.command("chown").args(["-R", "65534:65534"]).arg(harness.root()).status().unwrap();
    assert!(given.success());
    Some(program)
}

/// Runs a command as nobody.
fn as_nobody(harness: &Harness, program: &Path, arguments: &[&str]) -> Output {
    let mut command = harness.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program).args(arguments);
    Started::new(command, None).finish()
}

/// The hits of a search, which has to find something.
#[track_caller]
fn hits(harness: &Harness, words: &[&str]) -> Vec<Value> {
    let found = harness.run(&[&["search", "--json"], words].concat()).exits(0).json();
    found.as_array().unwrap().clone()
}

/// The texts of the hits, the newest first; none is a result, too.
#[track_caller]
fn texts(harness: &Harness, words: &[&str]) -> Vec<String> {
    let found = harness.run(&[&["search", "--json"], words].concat());
    assert!(matches!(found.code, Some(0 | 1)), "{found:?}");
    let found = found.json();
    assert_eq!(found.as_array().unwrap().is_empty(), found == Value::Array(Vec::new()));
    found.as_array().unwrap().iter().map(|hit| hit["text"].as_str().unwrap().to_owned()).collect()
}
