//! Durations and sizes as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
pub use ostler_core::limits::size;
use ostler_core::view::Phase;
pub use ostler_engine::quantities::{parse_duration, parse_since};
use std::time::Duration;

/// `4.2s`, `3m 5s`, `2h 10m`, `5d 3h`.
pub fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..=9 => format!("{}.{}s", seconds, milliseconds % 1000 / 100),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..=86399 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

/// How long a time that is shown beside a state stays correct; `None`: until the next event. At rest it says since
/// when, which stays correct as time passes.
pub fn stays_true(state: Phase, since: Timestamp, now: Timestamp) -> Option<Duration> {
    let millis = u64::try_from(now.duration_since(since).as_millis()).unwrap_or(0);
    let step = match state {
        Phase::Idle | Phase::Waiting | Phase::Ended => return None,
        Phase::Asking | Phase::Queued if millis >= 60_000 => 60_000,
        Phase::Queued | Phase::Asking | Phase::Starting | Phase::Working | Phase::Running | Phase::Stopping
            if millis < 3_600_000 =>
        {
            1000
        }
        Phase::Queued | Phase::Asking | Phase::Starting | Phase::Working | Phase::Running | Phase::Stopping => 60_000,
    };
    Some(Duration::from_millis(step - millis % step))
}

/// Since when, for a session at rest: the time of day, or the day when that was most of a day ago.
pub fn clock(since: Timestamp, now: Timestamp) -> String {
    let format = if now.duration_since(since).as_secs() < 20 * 3600 { "%H:%M" } else { "%-d %b" };
    since.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// A future time: the time of day, with the date unless it is today.
pub fn start_time(at: Timestamp, now: Timestamp) -> String {
    let zoned = at.to_zoned(TimeZone::system());
    let today = now.to_zoned(TimeZone::system()).date() == zoned.date();
    zoned.strftime(if today { "%H:%M" } else { "%Y-%m-%d %H:%M" }).to_string()
}

/// How long ago, in one unit: `12s`, `4m`, `3h`, `9d`.
pub fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m", seconds / 60),
        3600..=86399 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let shown: Vec<String> = [0, 4250, 59_000, 185_000, 7_800_000, 500_000_000].into_iter().map(duration).collect();
        assert_eq!(shown, ["0.0s", "4.2s", "59s", "3m 5s", "2h 10m", "5d 18h"]);
    }
}
