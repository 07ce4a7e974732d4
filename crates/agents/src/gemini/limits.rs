//! Usage limits in gemini's last text of a turn.
//!
//! Measured (0.61.0): at the daily quota it gives up at once with "You have exhausted your daily quota on this model.";
//! at any other HTTP 429 it retries, and repeats the server's text. Neither text has the time of the reset.

use ostler_core::fact::UsageLimit;

/// The limit that this text reports, if it reports one.
pub fn limit(reason: &str) -> Option<UsageLimit> {
    let quota = reason.contains("exhausted your") && reason.contains("quota");
    let rate = reason.contains("429") || reason.contains("RESOURCE_EXHAUSTED");
    (quota || rate).then(|| UsageLimit::new(if quota { "usage limit" } else { "rate limit" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_and_a_rate_are_told_apart_and_other_errors_are_no_limit() {
        let kind = |reason| limit(reason).map(|limit| limit.what);
        assert_eq!(kind("You have exhausted your daily quota on this model.").as_deref(), Some("usage limit"));
        assert_eq!(kind("API error: 429 Too Many Requests").as_deref(), Some("rate limit"));
        assert_eq!(kind("API error: RESOURCE_EXHAUSTED").as_deref(), Some("rate limit"));
        assert_eq!(kind("API error: 400 Bad Request"), None);
    }
}
