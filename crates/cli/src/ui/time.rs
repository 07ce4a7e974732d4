//! Durations and sizes as people read them.

pub use ostler_core::limits::size;
pub use ostler_engine::units::{parse_duration, parse_since};

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
