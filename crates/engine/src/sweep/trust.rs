//! Whether the clock may be believed when something is to be deleted by its age.
//!
//! A clock that is a year ahead for a second makes everything a year old. Nobody can see that from the clock alone, so
//! each sweep notes what it showed, and what it would have shown at boot: that moves only when the clock is set. Something
//! may be deleted when the look before was at least an hour ago, since the same boot, and the clock has not been set in
//! between. So a clock that jumps costs a delay and no session; one that stays where it was set is believed.

use jiff::{SignedDuration, Timestamp};
use ostler_sys::clock;
use ostler_sys::process::boot_id;
use serde::{Deserialize, Serialize};

/// Between two looks at least.
pub const EVERY: SignedDuration = SignedDuration::from_hours(1);

/// Clocks that are kept right drift, and are pulled back, by seconds.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(10);

/// What the clocks showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    at: Timestamp,
    boot: String,
    /// When the machine was started, by what the clock shows now.
    booted: Timestamp,
}

impl Look {
    pub fn now() -> Look {
        Look { at: clock::now(), boot: boot_id().to_owned(), booted: clock::booted() }
    }

    /// Whether this look comes too soon after one. A look in the future is one of another clock.
    pub fn is_soon_after(&self, before: &Look) -> bool {
        let passed = self.at.duration_since(before.at);
        !passed.is_negative() && passed < EVERY
    }

    /// Whether the clock was the same one all the time since that look.
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
    fn only_a_clock_that_nobody_set_for_an_hour_is_believed() {
        let before = look("a", 10_000, 5_000);
        assert!(look("a", 13_600, 5_002).agrees_with(&before), "an hour later, pulled by two seconds");
        assert!(!look("a", 13_599, 5_000).agrees_with(&before), "too soon");
        assert!(!look("a", 10_000 + 31_536_000, 5_000 + 31_536_000).agrees_with(&before), "a year ahead");
        assert!(!look("a", 9_000, 4_000).agrees_with(&before), "set back");
        assert!(!look("b", 20_000, 15_000).agrees_with(&before), "another boot");
        assert!(look("a", 10_001, 5_000).is_soon_after(&before) && !look("a", 9_000, 4_000).is_soon_after(&before));
    }
}
