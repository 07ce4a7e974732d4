//! Usage limits in codex's last text of a turn. It gives the time of the reset as text for people, in the time zone of
//! its process, to the minute; with the day if that is another day.
//!
//! Measured (0.166.0, HTTP 429 with `usage_limit_reached`): it gives up at once, and `turn.failed` has "You’ve hit your
//! usage limit. Upgrade to Pro (…), visit … to purchase more credits or try again at 4:57 AM."

use jiff::civil::{Date, DateTime, Time};
use ostler_core::fact::{ResetsAt, UsageLimit};

/// The words before the time.
const AT: &str = "try again at ";

/// The limit that this text reports, if it reports one.
pub fn limit(message: &str) -> Option<UsageLimit> {
    if message.contains("usage limit") {
        let local =
            message.split_once(AT).and_then(|(_, rest)| local(rest.trim_end().trim_end_matches('.'))).map(Into::into);
        return Some(UsageLimit { local, ..UsageLimit::new("usage limit") });
    }
    // Reported after codex's own retries.
    message.contains("429 Too Many Requests").then(|| UsageLimit::new("rate limit"))
}

/// `4:57 AM`, or `Nov 20th, 2026 4:57 AM`.
fn local(text: &str) -> Option<ResetsAt> {
    if let Ok(time) = Time::strptime("%I:%M %p", text) {
        return Some(ResetsAt::Time(time));
    }
    let (day, rest) = text.split_once(',')?;
    let day = day.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let (year, time) = rest.trim().split_once(' ')?;
    let date = Date::strptime("%b %d %Y", format!("{day} {year}")).ok()?;
    let time = Time::strptime("%I:%M %p", time).ok()?;
    Some(ResetsAt::Day(DateTime::from_parts(date, time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{datetime, time};

    #[test]
    fn the_time_of_the_reset_is_read_from_its_words() {
        let words = |at: &str| format!("You’ve hit your usage limit. Upgrade to Pro (x) or try again at {at}.");
        let local = |at: &str| limit(&words(at)).and_then(|limit| limit.local).map(|local| local.at);
        assert_eq!(local("4:57 AM"), Some(ResetsAt::Time(time(4, 57, 0, 0))));
        assert_eq!(local("12:05 PM"), Some(ResetsAt::Time(time(12, 5, 0, 0))));
        assert_eq!(local("Nov 20th, 2026 4:57 PM"), Some(ResetsAt::Day(datetime(2026, 11, 20, 16, 57, 0, 0))));
        assert_eq!(local("noon"), None);
        assert!(limit("You've hit your usage limit. Try again later.").is_some());
        assert!(
            limit("exceeded retry limit, last status: 429 Too Many Requests")
                .is_some_and(|limit| limit.local.is_none())
        );
        assert_eq!(limit("stream disconnected"), None);
    }
}
