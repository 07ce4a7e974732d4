//! What Qwen prints: the lines of [`StreamJson`], with differences (measured, 0.15.10):
//!
//! * Its transcript has other ids for messages than its output, so the proof searches for their texts.
//! * The usage at the end of a turn counts from the beginning of the process and includes side work, so the usage of
//!   the turn's own answers is added up.
//! * An error of the model's server is printed as an answer in brackets that used nothing, and the turn as a success.
//!   The transcript does not have that answer.
//! * Qwen confirms an interrupt and then exits: the confirmation is the end of the turn.

use crate::any_json::{AnyJson, tolerantly};
use crate::decoder::Decoder;
use crate::stream_json::{StreamJson, Usage, first_line, tokens};
use ostler_core::fact::{Fact, Tokens, TurnEnd, Verdict};
use ostler_core::outcome::Exit;
use serde::{Deserialize, Serialize};

/// The most texts of one turn that are remembered, the newest ones: a transcript that has those has the earlier ones
/// too.
const TEXTS_LIMIT: usize = 1000;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct QwenLines {
    lines: StreamJson,
    /// The agent's texts in this turn.
    #[serde(serialize_with = "crate::decoder::newest")]
    texts: Vec<String>,
    used: Option<Tokens>,
    /// The error that came in the place of an answer, unless the agent continued after it.
    error: Option<String>,
    /// A turn is running.
    working: bool,
}

/// The beginning of an answer that is an error of the model's server.
const ERROR: &str = "[API Error: ";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    subtype: AnyJson<'a>,
    parent_tool_use_id: AnyJson<'a>,
    message: AnyJson<'a, Message<'a>>,
    response: AnyJson<'a, Response<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    usage: AnyJson<'a, Usage<'a>>,
}

/// An answer to one of our requests.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    response: AnyJson<'a, Confirmed<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Confirmed<'a> {
    #[serde(borrow)]
    subtype: AnyJson<'a>,
}

/// What a line is, in addition to what [`StreamJson`] makes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// An answer that used no tokens.
    FreeAnswer,
    Interrupted,
    Other,
}

fn interrupted() -> TurnEnd {
    TurnEnd {
        verdict: Verdict::Interrupted,
        text: None,
        reason: Some("the turn was interrupted".to_owned()),
        tokens: None,
        cost_usd: None,
        messages: Vec::new(),
    }
}

impl Decoder for QwenLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        let seen = self.look(line);
        let mut found = Vec::new();
        self.lines.line(line, &mut found);
        if seen == Seen::Interrupted && self.working {
            found.push(Fact::TurnEnded(interrupted()));
        }
        for mut fact in found {
            // The end of the turn reports the error.
            if matches!(&fact, Fact::Saying { text } if text.starts_with(ERROR)) {
                continue;
            }
            if let Fact::Said { text } = &fact {
                self.error = error_in(text).filter(|_| seen == Seen::FreeAnswer);
                if self.error.is_some() {
                    continue;
                }
                self.remember(text);
            }
            if let Fact::TurnEnded(end) = &mut fact {
                let QwenLines { texts, used, error, .. } = std::mem::take(self);
                (end.messages, end.tokens) = (texts, used);
                if error.is_some() {
                    (end.verdict, end.reason, end.text) = (Verdict::Failed, error, None);
                }
            }
            facts.push(fact);
        }
    }

    fn messages_so_far(&self) -> Vec<String> {
        self.texts.clone()
    }

    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        TurnEnd { messages: self.messages_so_far(), ..self.lines.turn_end_at_exit(exit, complaint) }
    }

    crate::decoder::remembers_its_turn!();
}

impl QwenLines {
    /// Adds up what the answers of the main conversation use, and notes whether a turn is running.
    fn look(&mut self, line: &[u8]) -> Seen {
        let mut seen = Seen::Other;
        tolerantly(line, |line| {
            let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
                return false;
            };
            let confirmed = line.response.object().and_then(|response| response.response.object());
            if confirmed.is_some_and(|confirmed| confirmed.subtype.is("interrupt")) {
                seen = Seen::Interrupted;
            }
            // Each turn begins with such a line.
            self.working |= line.kind.is("system") && line.subtype.is("init");
            if line.kind.is("assistant") && line.parent_tool_use_id == AnyJson::Nothing {
                let used = line.message.object().and_then(|message| message.usage.object()).and_then(tokens);
                if let Some(more) = used {
                    *self.used.get_or_insert_default() += more;
                    if more == Tokens::default() {
                        seen = Seen::FreeAnswer;
                    }
                }
            }
            true
        });
        seen
    }

    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.texts.len() >= TEXTS_LIMIT {
            self.texts.drain(..TEXTS_LIMIT / 2);
        }
        self.texts.push(text.to_owned());
    }
}

fn error_in(text: &str) -> Option<String> {
    Some(first_line(text.strip_prefix(ERROR)?.trim_end().trim_end_matches(']')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(decoder: &mut QwenLines, line: &str) -> Vec<Fact> {
        let mut facts = Vec::new();
        decoder.line(line.as_bytes(), &mut facts);
        facts
    }

    fn end(decoder: &mut QwenLines) -> Option<TurnEnd> {
        let line = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"two","usage":{"input_tokens":4000,"output_tokens":40}}"#;
        facts(decoder, line).into_iter().find_map(|fact| match fact {
            Fact::TurnEnded(end) => Some(end),
            _ => None,
        })
    }

    #[test]
    fn a_turn_is_known_by_its_texts_and_counts_its_own_answers() {
        let mut decoder = QwenLines::default();
        for text in ["one", "two"] {
            let line = format!(
                r#"{{"type":"assistant","uuid":"u","parent_tool_use_id":null,"message":{{"content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":1000,"output_tokens":10}}}}}}"#
            );
            facts(&mut decoder, &line);
        }
        let ended = end(&mut decoder).map(|end| (end.messages, end.tokens));
        let both = vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(ended, Some((both, Some(Tokens { input: 2000, output: 20 }))));
        assert_eq!(end(&mut decoder).map(|end| (end.messages, end.tokens)), Some((Vec::new(), None)), "another turn");
    }

    #[test]
    fn an_answer_that_used_nothing_is_an_error_and_the_same_words_of_a_model_are_not() {
        let end_after = |tokens: u32| {
            let mut decoder = QwenLines::default();
            let line = format!(
                r#"{{"type":"assistant","parent_tool_use_id":null,"message":{{"content":[{{"type":"text","text":"[API Error: 400 no]"}}],"usage":{{"input_tokens":{tokens},"output_tokens":0}}}}}}"#
            );
            facts(&mut decoder, &line);
            end(&mut decoder).map(|end| (end.verdict, end.reason, end.messages.len()))
        };
        assert_eq!(end_after(0), Some((Verdict::Failed, Some("400 no".to_owned()), 0)));
        assert_eq!(end_after(10), Some((Verdict::Succeeded, None, 1)));
    }

    #[test]
    fn a_confirmed_interrupt_ends_a_turn_where_one_runs() {
        let confirmed = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"subtype":"interrupt"}}}"#;
        let mut decoder = QwenLines::default();
        assert_eq!(facts(&mut decoder, confirmed), []);
        facts(&mut decoder, r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#);
        assert_eq!(facts(&mut decoder, confirmed), [Fact::TurnEnded(interrupted())]);
        assert_eq!(facts(&mut decoder, confirmed), [], "it is over");
    }
}
