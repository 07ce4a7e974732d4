//! Whether the clock can be trusted when something is to be deleted by its age.
//!
//! If the clock is a year ahead for a second, everything seems a year old. The clock alone does not show this. So each
//! sweep records what the clock shows, and what it would have shown at boot: that value changes only when the clock is
//! set. Something may be deleted only when the look before was at least an hour ago, in the same boot, and the clock
//! has not been set since. So a clock that jumps causes a delay, but no session is lost. A clock that keeps its new
//! setting is trusted again.

use jiff::{SignedDuration, Timestamp};
use ostler_sys::clock;
use ostler_sys::process::boot_id;
use serde::{Deserialize, Serialize};

/// The minimum time between two looks.
pub const EVERY: SignedDuration = SignedDuration::from_hours(1);

/// Clocks that are synchronized drift, and are corrected, by seconds.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(10);

/// What the clocks showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    at: Timestamp,
    boot: String,
    /// When the machine was started, calculated from what the clock shows now.
    booted: Timestamp,
}

impl Look {
    pub fn now() -> Look {
        Look { at: clock::now(), boot: boot_id().to_owned(), booted: clock::booted() }
    }

    /// Whether this look comes too soon after the one before. If that one is in the future, the clock was set
    /// meanwhile, and this look is not too soon.
    pub fn is_soon_after(&self, before: &Look) -> bool {
        let passed = self.at.duration_since(before.at);
        !passed.is_negative() && passed < EVERY
    }

    /// Whether that look was long enough ago, and the clock has not been set since.
    pub fn agrees_with(&self, before: &Look) -> bool {
        let set_by = self.booted.duration_since(before.booted).abs();
        self.boot == before.boot && set_by <= TOLERANCE && self.at.duration_since(before.at) >= EVERY
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn look(boot: &str, at: i64, booted: i64) -> Look {
        let time = |second| Timestamp::from_second(second).unwrap();
        Look { at: time(at), boot: boot.to_owned(), booted: time(booted) }
    }

    #[test]
    fn only_a_clock_that_was_not_set_for_an_hour_is_trusted() {
        let before = look("a", 10_000, 5_000);
        assert!(look("a", 13_600, 5_002).agrees_with(&before), "an hour later, pulled by two seconds");
        assert!(!look("a", 13_599, 5_000).agrees_with(&before), "too soon");
        assert!(!look("a", 10_000 + 31_536_000, 5_000 + 31_536_000).agrees_with(&before), "a year ahead");
        assert!(!look("a", 9_000, 4_000).agrees_with(&before), "set back");
        assert!(!look("b", 20_000, 15_000).agrees_with(&before), "another boot");
        assert!(look("a", 10_001, 5_000).is_soon_after(&before) && !look("a", 9_000, 4_000).is_soon_after(&before));
    }
}
