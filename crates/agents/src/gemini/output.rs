//! What gemini prints, and how a turn's result is decided.
//!
//! Gemini's own result of a turn is not enough: it reports success for a turn that it aborted itself (a loop of the
//! same tool call), and the reason of a failure may be in an earlier line than the result. So a turn has succeeded when
//! there is an answer and no error came after it.

use super::limits;
use crate::any_json::{AnyJson, tolerantly};
use crate::codex;
use crate::decoder::{Decoder, cut_off};
use crate::lines::LINE_LIMIT;
use crate::shared_fields::{Problem, Usage};
use crate::stream_json::{ToolInput, first_line, tool_detail, tool_edits};
use ostler_core::fact::{Call, Fact, TurnEnd, Verdict};
use ostler_core::outcome::Exit;
use serde::{Deserialize, Serialize};

/// The most texts of one turn that are remembered, the newest ones: a transcript that has those has the earlier ones
/// too.
const TEXTS_LIMIT: usize = 1000;

/// What replaces the output of a shell command that failed and printed nothing. A command that failed after it had
/// printed something shows only its output, and is reported as a success.
const COMMAND_FAILED: [&str; 3] = ["Command exited with code: ", "Command terminated by signal: ", "Command failed: "];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    session_id: AnyJson<'a>,
    role: AnyJson<'a>,
    content: AnyJson<'a>,
    model: AnyJson<'a>,
    tool_name: AnyJson<'a>,
    tool_id: AnyJson<'a>,
    parameters: AnyJson<'a, ToolInput<'a>>,
    output: AnyJson<'a>,
    status: AnyJson<'a>,
    stats: AnyJson<'a, Usage<'a>>,
    error: AnyJson<'a, Problem<'a>>,
    message: AnyJson<'a>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct GeminiLines {
    /// The text since the last tool; not longer than a line may be.
    text: String,
    /// The texts before that, each complete.
    #[serde(serialize_with = "crate::decoder::newest")]
    complete: Vec<String>,
    /// The last error that it reported, unless it continued after it.
    error: Option<String>,
}

impl Decoder for GeminiLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        tolerantly(line, |line| self.understand(line, facts));
    }

    /// A text whose end has not been seen is not in the transcript: gemini writes a text when it is complete.
    fn messages_so_far(&self) -> Vec<String> {
        self.complete.clone()
    }

    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        let told = self.error.take();
        TurnEnd { messages: self.messages_so_far(), ..cut_off(exit, told.as_deref().or(complaint)) }
    }

    crate::decoder::remembers_its_turn!();
}

impl GeminiLines {
    /// Returns false when the line is not a JSON object.
    fn understand(&mut self, line: &[u8], facts: &mut Vec<Fact>) -> bool {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
            return false;
        };
        match line.kind.text() {
            Some("init") => {
                facts.extend(line.session_id.text().map(|id| Fact::Native { id: id.to_owned() }));
                facts.extend(line.model.text().map(|name| Fact::Model { name: name.to_owned() }));
            }
            Some("message") if line.role.is("assistant") => {
                self.error = None;
                let text = line.content.text_or_empty();
                if self.text.len() + text.len() > LINE_LIMIT {
                    // A text that is too long is shown in parts, and is not searched for in a transcript.
                    self.say(facts);
                }
                self.text.push_str(&text);
                facts.push(Fact::Saying { text });
            }
            Some("message") => {}
            Some("tool_use") => {
                self.error = None;
                self.remember();
                self.say(facts);
                facts.push(Fact::ToolCalled {
                    name: line.tool_name.text_or_empty(),
                    detail: tool_detail(&line.parameters),
                    call: Call { id: line.tool_id.text().map(str::to_owned), edits: tool_edits(&line.parameters) },
                });
            }
            Some("tool_result") => {
                let text = line.output.text_or_empty();
                let failed = line.status.text().is_some_and(|status| status != "success")
                    || COMMAND_FAILED.iter().any(|words| text.starts_with(words));
                facts.push(Fact::ToolReturned { text, failed, call: line.tool_id.text().map(str::to_owned) });
            }
            Some("error") => self.error = line.message.text().map(reason).or(self.error.take()),
            Some("result") => {
                let end = self.turn_end(&line);
                facts.extend(end.reason.as_deref().and_then(limits::limit).map(Fact::Limited));
                self.say(facts);
                facts.push(Fact::TurnEnded(end));
            }
            Some(other) => facts.push(Fact::Unknown { kind: other.to_owned() }),
            None => {}
        }
        true
    }

    /// Adds the text that came in pieces, as one.
    fn say(&mut self, facts: &mut Vec<Fact>) {
        if !self.text.is_empty() {
            facts.push(Fact::Said { text: std::mem::take(&mut self.text) });
        }
    }

    /// A text that is complete must be in the transcript.
    fn remember(&mut self) {
        if self.text.trim().is_empty() {
            return;
        }
        if self.complete.len() >= TEXTS_LIMIT {
            self.complete.drain(..TEXTS_LIMIT / 2);
        }
        self.complete.push(self.text.clone());
    }

    fn turn_end(&mut self, line: &Line<'_>) -> TurnEnd {
        let told = line.error.object().and_then(|error| error.message.text()).or(line.error.text()).map(reason);
        let told = told.or(self.error.take());
        let answered = !self.text.trim().is_empty();
        let reason = match (line.status.is("success"), told) {
            (true, None) if answered => None,
            (true, None) => Some("the agent ended its turn without an answer".to_owned()),
            (true | false, Some(told)) => Some(told),
            (false, None) => Some("the turn failed".to_owned()),
        };
        if reason.is_none() {
            self.remember();
        }
        TurnEnd {
            verdict: if reason.is_none() { Verdict::Succeeded } else { Verdict::Failed },
            text: Some(self.text.clone()).filter(|_| answered),
            reason,
            tokens: line.stats.object().and_then(Usage::tokens),
            cost_usd: None,
            messages: std::mem::take(&mut self.complete),
        }
    }
}

/// An API error arrives as JSON between brackets; a person needs only the sentence in it.
fn reason(message: &str) -> String {
    let inner = message.strip_prefix("[API Error: ").and_then(|rest| rest.trim_end().strip_suffix(']'));
    inner.map_or_else(|| first_line(message), |inner| format!("API error: {}", codex::reason(inner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = r#"{"type":"message","role":"assistant","content":"hello","delta":true}"#;
    const CALLED: &str = r#"{"type":"tool_use","tool_name":"sh","parameters":{"command":"id"}}"#;
    const LOOP: &str = r#"{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}"#;
    const SUCCESS: &str = r#"{"type":"result","status":"success"}"#;

    fn end_of(lines: &[&str]) -> TurnEnd {
        let mut decoder = GeminiLines::default();
        let mut facts = Vec::new();
        lines.iter().for_each(|line| decoder.line(line.as_bytes(), &mut facts));
        let end = facts.into_iter().find_map(|fact| if let Fact::TurnEnded(end) = fact { Some(end) } else { None });
        end.unwrap_or_else(|| decoder.turn_end_at_exit(Exit { code: Some(130), signal: None }, None))
    }

    #[test]
    fn a_turn_that_gemini_broke_off_is_no_success_and_neither_is_one_without_an_answer() {
        for (lines, reason) in [
            (&[SAID, SUCCESS][..], None),
            (&[CALLED, LOOP, SUCCESS], Some("Loop detected, stopping execution")),
            (&[CALLED, SAID, LOOP, SUCCESS], Some("Loop detected, stopping execution")),
            (&[LOOP, SAID, SUCCESS], None),
            (&[SAID, CALLED, SUCCESS], Some("the agent ended its turn without an answer")),
            (&[LOOP, r#"{"type":"result","status":"error"}"#], Some("Loop detected, stopping execution")),
            (
                &[SAID, r#"{"type":"result","status":"error","error":{"message":"[API Error: terminated]"}}"#],
                Some("API error: terminated"),
            ),
        ] {
            let end = end_of(lines);
            assert_eq!(end.reason.as_deref(), reason, "{lines:?}");
            assert_eq!(end.verdict == Verdict::Succeeded, reason.is_none(), "{lines:?}");
        }
    }

    #[test]
    fn only_texts_that_were_seen_complete_must_be_saved() {
        assert_eq!(end_of(&[SAID, SUCCESS]).messages, ["hello"]);
        assert_eq!(end_of(&[SAID, CALLED, SAID, SUCCESS]).messages, ["hello", "hello"]);
        assert_eq!(end_of(&[SAID, CALLED, SAID]).messages, ["hello"], "the second one was cut off");
        assert_eq!(end_of(&[SAID, r#"{"type":"result","status":"error"}"#]).messages, [""; 0]);
    }

    #[test]
    fn a_command_that_failed_without_a_word_is_known_by_the_words_in_its_place() {
        let failed = |output: &str| {
            let line = format!(r#"{{"type":"tool_result","status":"success","output":"{output}"}}"#);
            let mut facts = Vec::new();
            GeminiLines::default().line(line.as_bytes(), &mut facts);
            matches!(facts[..], [Fact::ToolReturned { failed: true, .. }])
        };
        assert!(failed("Command exited with code: 3"));
        assert!(failed("Command terminated by signal: 9"));
        assert!(!failed("3"));
    }
}
