//! Two clocks: one that people read, and one that no administrator can turn back.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since boot, including sleep. The same for every process until the next boot, so a deadline noted by one
/// keeper means the same to its replacement, whatever happens to the wall clock.
#[must_use]
pub fn since_boot_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}
