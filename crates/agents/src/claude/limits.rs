//! Usage limits in claude's last text of a turn in a terminal, where it prints no events. Its hook reports `rate_limit`
//! and the text that a person reads; only that text has the time of the reset.
//!
//! Measured (2.1.197, a subscription): "You've hit your session limit · resets 6:04pm (UTC)", "… · resets 6pm (UTC)".
//! If the reset is more than a day away: "… · resets Nov 20, 6pm (UTC)"; if it is in another year: "… · resets Jan 14,
//! 2027, 6:54pm (UTC)". Seconds are dropped. With a key: "API Error: Request rejected (429) · …".

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use ostler_core::fact::{Local, ResetsAt, UsageLimit};

/// The hook's name for the error.
pub const ERROR: &str = "rate_limit";
/// The words before the time.
const RESETS: &str = " · resets ";

/// The limit that this text reports; `said` is the time of the text.
pub fn limit(words: &str, said: Timestamp) -> UsageLimit {
    let first = words.lines().next().unwrap_or_default();
    match first.split_once(RESETS) {
        Some((_, when)) => UsageLimit { local: local(when, said), ..UsageLimit::new("usage limit") },
        None if first.starts_with("API Error") => UsageLimit::new("rate limit"),
        None => UsageLimit::new("usage limit"),
    }
}

/// `6:04pm (UTC)`, `Nov 20, 6pm (Europe/Berlin)`, `Jan 14, 2027, 6:54pm (UTC)`. Nothing else is accepted: the session
/// would wait for a time that was guessed wrongly.
fn local(when: &str, said: Timestamp) -> Option<Local> {
    let (when, zone) = when.strip_suffix(')')?.split_once(" (")?;
    let parts: Vec<&str> = when.split(", ").collect();
    let at = match parts[..] {
        [at] => ResetsAt::Time(time(at)?),
        [day, at] => {
            // A leap year, so that every day exists.
            let date = Date::strptime("%b %d %Y", format!("{day} 2028")).ok()?;
            ResetsAt::DayOfYear { month: date.month(), day: date.day(), time: time(at)? }
        }
        [day, year, at] => {
            let date = Date::strptime("%b %d %Y", format!("{day} {year}")).ok()?;
            ResetsAt::Day(DateTime::from_parts(date, time(at)?))
        }
        _ => return None,
    };
    Some(Local { at, zone: Some(zone.to_owned()), said: Some(said) })
}

/// `6:04pm` or `6pm`.
fn time(text: &str) -> Option<Time> {
    let format = if text.contains(':') { "%I:%M%p" } else { "%I%p" };
    Time::strptime(format, text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{datetime, time};

    fn at(when: &str) -> Option<ResetsAt> {
        let limit = limit(&format!("You've hit your session limit · resets {when}"), Timestamp::UNIX_EPOCH);
        assert_eq!((limit.what.as_str(), limit.resets_at), ("usage limit", None));
        let local = limit.local?;
        assert_eq!((local.zone.as_deref(), local.said), (Some("Europe/Berlin"), Some(Timestamp::UNIX_EPOCH)));
        Some(local.at)
    }

    #[test]
    fn the_time_of_the_reset_is_read_from_its_words() {
        assert_eq!(at("6:04pm (Europe/Berlin)"), Some(ResetsAt::Time(time(18, 4, 0, 0))));
        assert_eq!(at("6pm (Europe/Berlin)"), Some(ResetsAt::Time(time(18, 0, 0, 0))));
        assert_eq!(at("12am (Europe/Berlin)"), Some(ResetsAt::Time(time(0, 0, 0, 0))));
        let day = ResetsAt::DayOfYear { month: 11, day: 20, time: time(18, 0, 0, 0) };
        assert_eq!(at("Nov 20, 6pm (Europe/Berlin)"), Some(day));
        let year = ResetsAt::Day(datetime(2027, 1, 14, 18, 54, 0, 0));
        assert_eq!(at("Jan 14, 2027, 6:54pm (Europe/Berlin)"), Some(year));
    }

    #[test]
    fn what_is_not_such_a_time_is_a_limit_without_one() {
        for when in [
            "soon",
            "6:04pm",
            "18:04 (UTC)",
            "6:04pm (UTC) or so",
            "Nob 20, 6pm (UTC)",
            "a, b, c, d (UTC)",
            "in 5 minutes (UTC)",
            "",
        ] {
            assert_eq!(at(when), None, "{when}");
        }
        let without = limit("You've hit your usage limit", Timestamp::UNIX_EPOCH);
        assert_eq!((without.what.as_str(), without.local), ("usage limit", None));
        let with_a_key =
            limit("API Error: Request rejected (429) · this may be a temporary issue", Timestamp::UNIX_EPOCH);
        assert_eq!((with_a_key.what.as_str(), with_a_key.local), ("rate limit", None));
    }
}
