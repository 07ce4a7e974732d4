//! A usage limit as each maker's server reports it: HTTP 429, and the time of the reset where the server says it.

use crate::protocol::Protocol;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A refusal because of a usage limit that is reset in this many seconds: its headers and its body.
pub(crate) fn refusal(protocol: Protocol, seconds: u64) -> (Vec<(&'static str, String)>, Value) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let resets_at = now + seconds;
    match protocol {
        // As for a subscription.
        Protocol::Messages => (
            vec![
                ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
                ("anthropic-ratelimit-unified-reset", resets_at.to_string()),
                ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
            ],
            json!({"type": "error", "error": {"type": "rate_limit_error", "message": "scripted usage limit"}}),
        ),
        // As for a plan.
        Protocol::Responses => (
            vec![],
            json!({"error": {
                "type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
                "resets_at": resets_at, "resets_in_seconds": seconds,
            }}),
        ),
        Protocol::Chat => (
            vec![("retry-after", seconds.to_string())],
            json!({"error": {"message": "scripted usage limit", "type": "rate_limit_exceeded", "param": null, "code": "rate_limit_exceeded"}}),
        ),
        // As for a daily quota.
        Protocol::Gemini => (
            vec![],
            json!({"error": {
                "code": 429, "status": "RESOURCE_EXHAUSTED", "message": format!("You exceeded your current quota. Please retry in {seconds}s."),
                "details": [
                    {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
                        "quotaMetric": "generativelanguage.googleapis.com/generate_requests",
                        "quotaId": "GenerateRequestsPerDayPerProjectPerModel",
                    }]},
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")},
                ],
            }}),
        ),
    }
}
