//! Gemini reports its retries on its standard error, each in one line before a stack trace (measured, 0.61.0):
//!
//! ```text
//! Attempt 2 failed with status 429. Retrying with backoff... _ApiError: {"error":{"code":429,"message":"…"}}
//! Attempt 1 failed. Retrying with backoff... Error: exception TypeError: fetch failed sending request
//! ```

use crate::codex;
use crate::decoder::Decoder;
use ostler_core::fact::{Fact, Retry};

pub struct ErrorLines;

impl Decoder for ErrorLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        facts.extend(std::str::from_utf8(line).ok().and_then(retry).map(Fact::Retrying));
    }

    fn messages_so_far(&self) -> Vec<String> {
        Vec::new()
    }
}

fn retry(line: &str) -> Option<Retry> {
    let (attempt, rest) = line.trim().strip_prefix("Attempt ")?.split_once(" failed")?;
    let (status, problem) = rest.split_once(". Retrying")?;
    let status = status.strip_prefix(" with status ");
    // After the dots comes the error, with the name of its class in front.
    let thrown = problem.split_once("... ").map(|(_, thrown)| thrown);
    let words = thrown.map(|thrown| thrown.split_once(": ").map_or(thrown, |(_, words)| words));
    let words = words.map(|words| codex::reason(words.trim_start_matches("exception TypeError: ")));
    let reason = match (status, words.filter(|words| !words.is_empty())) {
        (Some(status), Some(words)) if !words.starts_with('{') => format!("HTTP {status}, {words}"),
        (Some(status), _) => format!("HTTP {status}"),
        (None, words) => words.unwrap_or_else(|| "no answer from the server".to_owned()),
    };
    Some(Retry { reason, attempt: attempt.parse().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_that_failed_is_a_retry_with_its_reason_and_a_trace_is_none() {
        let of = |line: &str| retry(line).map(|retry| (retry.attempt, retry.reason));
        let limited = r#"Attempt 2 failed with status 429. Retrying with backoff... _ApiError: {"error":{"code":429,"message":"too many"}}"#;
        assert_eq!(of(limited), Some((Some(2), "HTTP 429, too many".to_owned())));
        let dead =
            "Attempt 1 failed. Retrying with backoff... Error: exception TypeError: fetch failed sending request";
        assert_eq!(of(dead), Some((Some(1), "fetch failed sending request".to_owned())));
        assert_eq!(
            of("Attempt 3 failed with status 503. Retrying with backoff..."),
            Some((Some(3), "HTTP 503".to_owned()))
        );
        assert_eq!(of("    at async retryWithBackoff (file:///x.js:1:2)"), None);
        assert_eq!(of("Attempt to read a file"), None);
    }
}
