//! `ostler search` with the built program: what is found, what continues from there, and that nothing on the disk stops it.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare or read its files has failed")]

mod damage;
mod finding;
mod growing;
mod index;
mod own_sessions;
mod transcripts;

use ostler_testkit::Harness;
use serde_json::Value;

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
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
