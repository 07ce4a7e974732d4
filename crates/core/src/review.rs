//! What a review says about the work of a session, and how that is read from the last message of the agent that has
//! reviewed it.

use crate::id::SessionId;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verdict of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    Pass,
    Fail,
    /// Also when there is no valid verdict.
    Unsure,
}

impl ReviewVerdict {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ReviewVerdict::Pass => "pass",
            ReviewVerdict::Fail => "fail",
            ReviewVerdict::Unsure => "unsure",
        }
    }
}

/// Something that a review has found.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The path, from the top of the tree.
    pub file: String,
    /// The line, from 1.
    pub line: std::num::NonZeroU32,
    /// What is wrong there.
    pub text: String,
}

/// A review that is over. `show --json` of a session has the reviews of that session.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Review {
    /// The session that has reviewed.
    pub id: SessionId,
    /// Its agent.
    pub by: String,
    pub verdict: ReviewVerdict,
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The review in one sentence.
    #[serde(default)]
    pub summary: Option<String>,
    /// Why the verdict is `unsure` although the agent did not say that.
    #[serde(default)]
    pub reason: Option<String>,
    pub at: Timestamp,
}

/// What the agent has said.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    pub verdict: ReviewVerdict,
    pub findings: Vec<Finding>,
    #[serde(default)]
    pub summary: Option<String>,
}

/// Only so many bytes at the end of a message are read.
const LONGEST: usize = 256 << 10;

/// The verdict that a message ends with: one JSON object, with a code fence around it or without, and nothing after it.
/// Other fields, a finding without a file or a line, and a second object after it make it invalid.
pub fn parse(text: &str) -> Result<Said, String> {
    let text = text.trim_end();
    let text = match text.strip_suffix("```") {
        Some(before) => before.trim_end(),
        None => text,
    };
    if !text.ends_with('}') {
        return Err("its last message does not end with a verdict".to_owned());
    }
    let from = text.len().saturating_sub(LONGEST);
    let begins = text.match_indices('{').map(|(place, _)| place).filter(|place| *place >= from);
    // The outermost object that ends where the message ends.
    for place in begins {
        match serde_json::from_str::<serde_json::Value>(&text[place..]) {
            Ok(_) => {
                return serde_json::from_str(&text[place..])
                    .map_err(|error| format!("the verdict that its last message ends with is not valid: {error}"));
            }
            Err(_) => continue,
        }
    }
    Err("the verdict that its last message ends with is not JSON".to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_at_the_end_is_read_with_or_without_a_fence() {
        let object = r#"{"verdict": "fail", "findings": [{"file": "src/a.rs", "line": 12, "text": "off by one"}]}"#;
        for text in [
            object.to_owned(),
            format!("I looked {{at}} it.\n\n{object}\n"),
            format!("All of it:\n```json\n{object}\n```\n"),
        ] {
            let said = parse(&text).unwrap();
            assert_eq!(said.verdict, ReviewVerdict::Fail, "{text}");
            assert_eq!(said.findings[0].file, "src/a.rs");
        }
        let said = parse(r#"{"verdict":"pass","findings":[],"summary":"fine"}"#).unwrap();
        assert_eq!((said.verdict, said.summary.as_deref()), (ReviewVerdict::Pass, Some("fine")));
    }

    #[test]
    fn whatever_else_is_no_verdict() {
        for text in [
            "",
            "pass",
            "It passes. {\"verdict\": \"pass\", \"findings\": []} I am sure.",
            r#"{"verdict": "pass"}"#,
            r#"{"verdict": "passed", "findings": []}"#,
            r#"{"verdict": "PASS", "findings": []}"#,
            r#"{"verdict": "pass", "findings": [], "verdict": "pass"}"#,
            r#"{"verdict": "pass", "findings": [], "more": 1}"#,
            r#"{"verdict": "fail", "findings": [{"file": "a"}]}"#,
            r#"{"verdict": "fail", "findings": [{"file": "a", "line": 0, "text": "x"}]}"#,
            r#"{"verdict": "fail", "findings": [{"file": "a", "line": "1", "text": "x"}]}"#,
            r#"{"x": {"verdict": "pass", "findings": []}}"#,
            r#"[{"verdict": "pass", "findings": []}]"#,
            r#"{"verdict": "pass", "findings": []"#,
            r#"verdict": "pass", "findings": []}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
