//! Two clocks: the wall clock, and one that cannot be set.
//!
//! Whatever has to come in an order, or after a time, follows the second. The first is for people: when something
//! happened. It may jump, hours back or days ahead, when a person sets it or the machine synchronizes it. A test must
//! not set the machine's clock, so our code always reads it through [`now`], and a test shifts that: it names a file in
//! `OSTLER_CLOCK` and writes a number of seconds there, which is read each time. In ordinary use that costs one look at
//! a value in memory, like the points of [`crate::pause`].

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The variable that names the file.
pub const VARIABLE: &str = "OSTLER_CLOCK";

/// The time of the wall clock.
#[must_use]
pub fn now() -> Timestamp {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let now = Timestamp::now();
    match FILE.get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from)) {
        None => now,
        Some(file) => shifted(now, &std::fs::read_to_string(file).unwrap_or_default()),
    }
}

/// Adds this many seconds. A text that is not a number, or a result outside of the calendar, shifts nothing.
fn shifted(now: Timestamp, seconds: &str) -> Timestamp {
    let shift = seconds.trim().parse().map(SignedDuration::from_secs).unwrap_or_default();
    now.checked_add(shift).unwrap_or(now)
}

/// Milliseconds since boot, including sleep. The same for every process until the next boot, so a deadline noted by one
/// keeper means the same to its replacement, whatever happens to the wall clock.
#[must_use]
pub fn since_boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

/// What the wall clock would have shown at boot. Changes only when that clock is set.
#[must_use]
pub fn booted() -> Timestamp {
    let up = SignedDuration::from_millis(i64::try_from(since_boot_ms()).unwrap_or(0));
    now().checked_sub(up).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_shifted_by_whole_seconds_both_ways_and_by_nothing_else() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(shifted(at(1000), "-400\n"), at(600));
        assert_eq!(shifted(at(1000), "86400"), at(87_400));
        for nothing in ["", "soon", "99999999999999"] {
            assert_eq!(shifted(at(1000), nothing), at(1000), "{nothing:?}");
        }
    }

    #[test]
    fn the_moment_of_boot_stays_where_it_is() {
        let moved = booted().as_millisecond() - booted().as_millisecond();
        assert!(moved.abs() < 1000, "{moved} ms");
    }
}
