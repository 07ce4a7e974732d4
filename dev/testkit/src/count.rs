//! How often a test repeats its faults: a few times in the suite, and at full count when `cargo xtask counts` asks for
//! the figures of docs/reliability.md.

/// Set by `cargo xtask counts`.
const FULL: &str = "OSTLER_TEST_FULL";

/// How often to repeat a test.
#[must_use]
pub fn times(in_the_suite: usize, at_full_count: usize) -> usize {
    if full() { at_full_count } else { in_the_suite }
}

/// The last line of such a test: a row of the table, once it has passed every time.
pub fn held(what: &str, times: usize, seen: &str) {
    if full() {
        // Not captured like other output of tests: these rows are the result of the run.
        println!("| {what} | {times} | {seen} |");
    }
}

fn full() -> bool {
    std::env::var_os(FULL).is_some()
}
