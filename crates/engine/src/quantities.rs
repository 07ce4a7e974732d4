//! Durations, times and sizes as people write them.

use crate::queues::StartTime;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// `90s`, `10m`, `1h30m`, `250ms`, or a plain number of seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration (examples: 90s, 10m, 1h30m)");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit.trim() {
            "ms" => 0.001,
            "s" => 1.0,
            "" if rest == text.trim() => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = after;
    }
    Ok(total)
}

/// A moment, as a person writes it: an age (`10m`), `now`, a day, or a time with or without a time zone. A time without
/// one is local.
pub fn parse_since(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let text = text.trim();
    let wrong = || {
        format!(
            "{text:?} is not a time; write an age such as 10m, a time such as 2026-11-16 or 2026-11-16T08:30, or now"
        )
    };
    if text == "now" {
        return Ok(now);
    }
    // A bare number would be an age in seconds elsewhere; here it could as well be a year or a Unix time.
    if !text.ends_with(|last: char| last.is_ascii_digit())
        && let Ok(back) = parse_duration(text)
    {
        let back = SignedDuration::try_from(back).map_err(|_| wrong())?;
        return Ok(now.saturating_sub(back).unwrap_or(Timestamp::MIN));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let civil = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(|date| date.at(0, 0, 0, 0)));
    let zoned = civil.and_then(|civil| civil.to_zoned(TimeZone::system()));
    zoned.map(|zoned| zoned.timestamp()).map_err(|_| wrong())
}

/// A time to start at, as a person writes it: `+2h`, `15:00` (today, or tomorrow when that is over), `tomorrow 9:00`, a
/// day with or without a time, RFC 3339. A time without a time zone is local.
pub fn parse_start_time(text: &str, now: Timestamp) -> Result<StartTime, String> {
    let text = text.trim();
    let wrong =
        || format!("{text:?} is not a time to start at (examples: 15:00, tomorrow 9:00, 2026-11-18T09:00, +2h)");
    if let Some(duration) = text.strip_prefix('+') {
        return parse_duration(duration).map(StartTime::In).map_err(|_| wrong());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(StartTime::At(time));
    }
    let here = TimeZone::system();
    let today = now.to_zoned(here.clone()).date();
    let time_of = |text: &str| {
        let padded = if text.find(':') == Some(1) { format!("0{text}") } else { text.to_owned() };
        (padded.contains(':') && !padded.contains('-')).then(|| padded.parse::<Time>().ok()).flatten()
    };
    let on = |date: Date, time: Time| date.to_datetime(time).to_zoned(here.clone()).map(|zoned| zoned.timestamp());
    let found = if let Some(time) = time_of(text) {
        let first = on(today, time).map_err(|_| wrong())?;
        if first > now { Ok(first) } else { today.tomorrow().and_then(|date| on(date, time)) }
    } else if let Some(rest) = text.strip_prefix("tomorrow") {
        let time = if rest.is_empty() { Some(Time::midnight()) } else { time_of(rest.trim()) }.ok_or_else(wrong)?;
        today.tomorrow().and_then(|date| on(date, time))
    } else {
        let civil = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(|date| date.at(0, 0, 0, 0)));
        civil.and_then(|civil| civil.to_zoned(here)).map(|zoned| zoned.timestamp())
    };
    found.map(StartTime::At).map_err(|_| wrong())
}

/// A time that is exact enough to name one checkpoint, also among later ones.
#[must_use]
pub fn to_the_millisecond(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// `64MiB`, `1GB`, `4096`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size (example: 64MiB)");
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, ms) in
            [("90s", 90_000), ("10m", 600_000), ("1h30m", 5_400_000), ("250ms", 250), ("5", 5000), ("0.5s", 500)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "x", "5x", "s", "-1s", "1h30", "1e400s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_to_start_at_are_read_as_people_write_them() {
        let zone = TimeZone::system();
        let local = |text: &str| text.parse::<DateTime>().unwrap().to_zoned(zone.clone()).unwrap().timestamp();
        let now = local("2026-11-17T14:30");
        let read = |text: &str| parse_start_time(text, now);
        for (text, wanted) in [
            ("15:00", "2026-11-17T15:00"),
            ("9:05", "2026-11-18T09:05"),
            ("14:30", "2026-11-18T14:30"),
            ("15:00:30", "2026-11-17T15:00:30"),
            ("tomorrow 9:00", "2026-11-18T09:00"),
            ("tomorrow", "2026-11-18T00:00"),
            ("2020-01-01T00:00", "2020-01-01T00:00"),
            ("2026-12-24 18:00", "2026-12-24T18:00"),
            ("2026-12-24", "2026-12-24T00:00"),
        ] {
            assert_eq!(read(text), Ok(StartTime::At(local(wanted))), "{text}");
        }
        assert_eq!(read("2026-11-17T15:00:00Z"), Ok(StartTime::At("2026-11-17T15:00:00Z".parse().unwrap())));
        assert_eq!(read("+2h"), Ok(StartTime::In(Duration::from_secs(7200))));
        for text in ["", "2h", "+", "+soon", "25:00", "tomorrow noon", "noon", "9", "tomorrows 9:00"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("4096"), Ok(4096));
        assert!(parse_size("many").is_err());
        assert!(parse_size("99999999999999G").is_err());
    }

    #[test]
    fn a_moment_is_an_age_a_day_a_time_or_now() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let at = |text: &str| parse_since(text, now).map(|time| time.to_string());
        assert_eq!(at("now").as_deref(), Ok("2026-11-16T12:00:00Z"));
        assert_eq!(at("1h30m").as_deref(), Ok("2026-11-16T10:30:00Z"));
        assert_eq!(at("2026-11-15T08:00:00+02:00").as_deref(), Ok("2026-11-15T06:00:00Z"));
        let local = |text: &str| text.parse::<DateTime>().unwrap().to_zoned(TimeZone::system()).unwrap().timestamp();
        assert_eq!(parse_since("2026-11-15", now), Ok(local("2026-11-15T00:00")));
        assert_eq!(parse_since("2026-11-15 08:30", now), Ok(local("2026-11-15T08:30")));
        for wrong in ["", "yesterday", "10", "-5m", "2026-13-01"] {
            assert!(parse_since(wrong, now).is_err(), "{wrong}");
        }
    }
}
