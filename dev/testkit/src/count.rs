//! How often a test does its worst: a few times in the suite, and at full count when `cargo xtask counts` asks for the figures
//! of docs/reliability.md.

/// Set by `cargo xtask counts`.
const FULL: &str = "OSTLER_TEST_FULL";

/// How often to do it.
#[must_use]
pub fn times(in_the_suite: usize, at_full_count: usize) -> usize {
    if full() { at_full_count } else { in_the_suite }
}

/// The last line of such a test: a row of the table, once it has held every time.
pub fn held(what: &str, times: usize, seen: &str) {
    if full() {
        // Not through the test's captured output: it is what the run is for.
        println!("| {what} | {times} | {seen} |");
    }
}

fn full() -> bool {
    std::env::var_os(FULL).is_some()
}
