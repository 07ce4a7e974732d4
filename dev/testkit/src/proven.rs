//! What has been proven with which real agent. `cargo xtask test` makes docs/agents.md of it, once everything has passed.
//!
//! An ability that begins with "terminal: " or "acp: " was proven in that mode; any other was proven headless.

use std::io::Write;

/// Where `cargo xtask test` collects it. A test that is run by hand proves something too, but not for the record.
const COLLECTED_IN: &str = "OSTLER_TEST_PROVEN";

/// The last line of a test: what it has just proven, as a row of the table says it.
pub fn proves(agent: &str, ability: &str) {
    note(&format!("{agent}\t{ability}\n"));
}

/// The last line of a test that has seen ostler say that this is not possible with this agent, and why.
pub fn proves_impossible(agent: &str, ability: &str, why: &str) {
    note(&format!("{agent}\t{ability}\t{why}\n"));
}

fn note(line: &str) {
    let Some(file) = std::env::var_os(COLLECTED_IN) else { return };
    // Many tests at once: each adds its line as a whole, and the order means nothing.
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).expect("where to note it");
    file.write_all(line.as_bytes()).expect("to note it");
}
