//! What opencode prints with `--format json`, line by line.

use super::saved;
use crate::any_json::{AnyJson, tolerantly};
use crate::decoder::{Decoder, explained};
use crate::shared_fields;
use crate::stream_json::{ToolInput, tool_detail, tool_edits};
use ostler_core::fact::{Call, Fact, Tokens, TurnEnd, Verdict};
use ostler_core::outcome::Exit;
use serde::{Deserialize, Serialize};

/// The most parts of one turn that are remembered, the newest ones; a longer mark than `MARK_LENGTH` is not the id of a
/// part.
const MARKS_LIMIT: usize = 10_000;
const MARK_LENGTH: usize = 200;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    #[serde(rename = "sessionID")]
    session_id: AnyJson<'a>,
    part: AnyJson<'a, Part<'a>>,
    error: AnyJson<'a, Problem<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    text: AnyJson<'a>,
    tool: AnyJson<'a>,
    state: AnyJson<'a, ToolState<'a>>,
    tokens: AnyJson<'a, Used<'a>>,
    cost: AnyJson<'a>,
    /// Set on a text that neither the person nor the model wrote: opencode's own text for its model.
    synthetic: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolState<'a> {
    #[serde(borrow)]
    pub(super) status: AnyJson<'a>,
    pub(super) input: AnyJson<'a, ToolInput<'a>>,
    pub(super) output: AnyJson<'a>,
    pub(super) error: AnyJson<'a>,
    metadata: AnyJson<'a, Metadata<'a>>,
}

/// What a tool reports in addition to its output; for a command, its exit code.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    exit: AnyJson<'a>,
}

impl ToolState<'_> {
    /// For a command that failed, the tool itself reports success: it has run the command.
    pub(super) fn failed(&self) -> bool {
        let exit = self.metadata.object().and_then(|metadata| metadata.exit.amount());
        self.status.is("error") || exit.is_some_and(|code| code != 0.0)
    }
}

/// What a step used, each token in one field: `input` does not include cached tokens, `output` does not include
/// thinking.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Used<'a> {
    #[serde(borrow)]
    input: AnyJson<'a>,
    output: AnyJson<'a>,
    reasoning: AnyJson<'a>,
    cache: AnyJson<'a, Cached<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cached<'a> {
    #[serde(borrow)]
    read: AnyJson<'a>,
    write: AnyJson<'a>,
}

impl Used<'_> {
    fn tokens(&self) -> Tokens {
        let sum =
            |counts: &[&AnyJson<'_>]| counts.iter().filter_map(|count| count.count()).fold(0, u64::saturating_add);
        let mut input = vec![&self.input];
        input.extend(self.cache.object().into_iter().flat_map(|cached| [&cached.read, &cached.write]));
        Tokens { input: sum(&input), output: sum(&[&self.output, &self.reasoning]) }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem<'a> {
    #[serde(borrow)]
    name: AnyJson<'a>,
    message: AnyJson<'a>,
    data: AnyJson<'a, shared_fields::Problem<'a>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OpencodeLines {
    text: Option<String>,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
    error: Option<String>,
    /// The error of the last tool, which may be why nothing came after it.
    refusal: Option<String>,
    /// The marks that must be in the database.
    #[serde(serialize_with = "crate::decoder::newest")]
    marks: Vec<String>,
}

impl Decoder for OpencodeLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        tolerantly(line, |line| self.understand(line, facts));
    }

    fn messages_so_far(&self) -> Vec<String> {
        self.marks.clone()
    }

    /// opencode does not report the end of a turn, so a clean exit after an answer is taken as a success.
    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        let answered = self.text.as_ref().is_some_and(|text| !text.trim().is_empty());
        let clean = exit.code == Some(0) && self.error.is_none() && answered;
        let reason = self.error.take().unwrap_or_else(|| match (exit.code, exit.signal) {
            (Some(0), _) => explained("the agent ended its turn without an answer".to_owned(), self.refusal.as_deref()),
            (Some(code), _) => explained(format!("the agent exited with {code}"), complaint),
            (None, _) => "the agent was killed in the middle of its turn".to_owned(),
        });
        TurnEnd {
            verdict: if clean { Verdict::Succeeded } else { Verdict::Failed },
            text: self.text.take(),
            reason: (!clean).then(|| reason.lines().next().unwrap_or_default().to_owned()),
            tokens: self.tokens.take(),
            cost_usd: self.cost_usd.take(),
            messages: std::mem::take(&mut self.marks),
        }
    }

    crate::decoder::remembers_its_turn!();
}

impl OpencodeLines {
    pub(super) fn remember(&mut self, mark: Option<String>) {
        if self.marks.len() >= MARKS_LIMIT {
            self.marks.drain(..MARKS_LIMIT / 2);
        }
        self.marks.extend(mark.filter(|mark| mark.len() <= MARK_LENGTH));
    }

    /// Returns false when the line is not a JSON object.
    pub(super) fn understand(&mut self, line: &[u8], facts: &mut Vec<Fact>) -> bool {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
            return false;
        };
        let Some(kind) = line.kind.text() else {
            return true;
        };
        facts.extend(line.session_id.text().map(|id| Fact::Native { id: id.to_owned() }));
        let none = Part::default();
        let part = line.part.object().unwrap_or(&none);
        match kind {
            "step_start" => facts.push(Fact::TurnStarted),
            // opencode's own prompt after it has compacted the conversation: the text before it was the summary, not an
            // answer.
            "text" if part.synthetic.flag() == Some(true) => self.text = None,
            "text" => {
                self.remember(part.id.text().map(|id| saved::text(id, part.text.text().unwrap_or_default())));
                self.text = Some(part.text.text_or_empty());
                facts.push(Fact::Said { text: part.text.text_or_empty() });
            }
            "tool_use" => {
                self.remember(part.id.text().map(saved::part));
                let none = ToolState::default();
                let state = part.state.object().unwrap_or(&none);
                self.refusal = state.error.text().map(str::to_owned);
                facts.push(Fact::ToolCalled {
                    name: part.tool.text().unwrap_or("tool").to_owned(),
                    detail: tool_detail(&state.input),
                    call: Call { id: part.id.text().map(str::to_owned), edits: tool_edits(&state.input) },
                });
                facts.push(Fact::ToolReturned {
                    text: state.output.text().or(state.error.text()).unwrap_or_default().to_owned(),
                    failed: state.failed(),
                    call: part.id.text().map(str::to_owned),
                });
            }
            "step_finish" => {
                self.remember(part.id.text().map(saved::part));
                if let Some(used) = part.tokens.object() {
                    *self.tokens.get_or_insert_default() += used.tokens();
                }
                self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + part.cost.amount().unwrap_or(0.0));
            }
            "error" => {
                let words = line.error.object().and_then(|error| {
                    let data = error.data.object().and_then(|data| data.message.text());
                    data.or(error.message.text()).or(error.name.text())
                });
                self.error = Some(words.unwrap_or("the turn failed").to_owned());
            }
            other => facts.push(Fact::Unknown { kind: other.to_owned() }),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opencode_tells_its_model_by_itself_is_no_answer_and_needs_no_proof() {
        let mut decoder = OpencodeLines::default();
        let mut facts = Vec::new();
        let text = |id: &str, text: &str, rest: &str| {
            format!(r#"{{"type":"text","part":{{"type":"text","id":"{id}","text":"{text}"{rest}}}}}"#)
        };
        decoder.line(text("a", "summary", "").as_bytes(), &mut facts);
        decoder.line(text("b", "Continue", r#","synthetic":true"#).as_bytes(), &mut facts);
        assert_eq!(facts, [Fact::Said { text: "summary".to_owned() }]);
        let marks = decoder.messages_so_far();
        assert_eq!(marks, [saved::text("a", "summary")]);
        let end = decoder.turn_end_at_exit(Exit { code: Some(0), signal: None }, None);
        assert_eq!((end.verdict, end.text), (Verdict::Failed, None));
    }

    #[test]
    fn every_token_counts_once_cached_and_thought_ones_too() {
        let mut decoder = OpencodeLines::default();
        let step = br#"{"type":"step_finish","part":{"cost":0.25,"tokens":{"input":5,"output":3,"reasoning":2,"cache":{"read":100,"write":10}}}}"#;
        decoder.line(step, &mut Vec::new());
        decoder.line(step, &mut Vec::new());
        let end = decoder.turn_end_at_exit(Exit { code: Some(0), signal: None }, None);
        assert_eq!(end.tokens, Some(Tokens { input: 230, output: 10 }));
        assert_eq!(end.cost_usd, Some(0.5));
    }
}
