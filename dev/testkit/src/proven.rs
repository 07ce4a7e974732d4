//! What has been proven with which real agent. `cargo xtask test` makes docs/agents.md from it, once everything has
//! passed.
//!
//! An ability that begins with "terminal: " or "acp: " was proven in that mode; any other was proven headless.

use std::io::Write;

/// The file in which `cargo xtask test` collects it. A test that is run by hand notes nothing.
const COLLECTED_IN: &str = "OSTLER_TEST_PROVEN";

/// The last line of a test: what it has just proven, in the words of the table's row.
pub fn proves(agent: &str, ability: &str) {
    note(&format!("{agent}\t{ability}\n"));
}

/// The last line of a test in which ostler reported that this is not possible with this agent, and why.
pub fn proves_impossible(agent: &str, ability: &str, why: &str) {
    note(&format!("{agent}\t{ability}\t{why}\n"));
}

fn note(line: &str) {
    let Some(file) = std::env::var_os(COLLECTED_IN) else { return };
    // Many tests at the same time: each appends its line in one write, and the order does not matter.
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).expect("where to note it");
    file.write_all(line.as_bytes()).expect("to note it");
}
