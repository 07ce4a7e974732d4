//! What `codex exec --json` prints, line by line.

use super::limits;
use crate::any_json::{AnyJson, tolerantly};
use crate::decoder::Decoder;
use crate::shared_fields::{Problem, Usage};
use ostler_core::fact::{Call, Fact, Retry, Tokens, TurnEnd, Verdict};
use serde::{Deserialize, Serialize};

/// A line of the output.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    thread_id: AnyJson<'a>,
    item: AnyJson<'a, Item<'a>>,
    error: AnyJson<'a, Problem<'a>>,
    message: AnyJson<'a>,
    usage: AnyJson<'a, Usage<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    id: AnyJson<'a>,
    text: AnyJson<'a>,
    command: AnyJson<'a>,
    aggregated_output: AnyJson<'a>,
    exit_code: AnyJson<'a>,
    status: AnyJson<'a>,
    changes: AnyJson<'a, Change<'a>>,
}

/// The change to one file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Change<'a> {
    #[serde(borrow)]
    path: AnyJson<'a>,
    kind: AnyJson<'a>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CodexLines {
    text: Option<String>,
    used_before: Tokens,
}

impl Decoder for CodexLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        tolerantly(line, |line| self.understand(line, facts));
    }

    fn used_before(&mut self, tokens: Tokens) {
        self.used_before = tokens;
    }

    fn messages_so_far(&self) -> Vec<String> {
        self.text.iter().cloned().collect()
    }

    crate::decoder::remembers_its_turn!();
}

impl CodexLines {
    /// Returns false when the line is not a JSON object.
    fn understand(&mut self, line: &[u8], facts: &mut Vec<Fact>) -> bool {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
            return false;
        };
        match line.kind.text() {
            Some("thread.started") => {
                facts.extend(line.thread_id.text().map(|id| Fact::Native { id: id.to_owned() }));
            }
            Some("turn.started") => facts.push(Fact::TurnStarted),
            Some("item.started") => facts.extend(line.item.object().and_then(called)),
            Some("item.completed") => facts.extend(line.item.object().and_then(|item| self.completed(item))),
            // Codex reports a turn as completed even if the model said nothing.
            Some("turn.completed") if self.text.as_ref().is_none_or(|text| text.trim().is_empty()) => {
                let reason = Some("the agent ended its turn without an answer".to_owned());
                facts.push(Fact::TurnEnded(self.turn_end(&line, Verdict::Failed, reason)));
            }
            Some("turn.completed") => facts.push(Fact::TurnEnded(self.turn_end(&line, Verdict::Succeeded, None))),
            Some("turn.failed") => {
                let words = line.error.object().and_then(|error| error.message.text());
                facts.extend(words.and_then(limits::limit).map(Fact::Limited));
                let reason = reason(words.unwrap_or("the turn failed"));
                facts.push(Fact::TurnEnded(self.turn_end(&line, Verdict::Failed, Some(reason))));
            }
            // `turn.failed` repeats every other error.
            Some("error") => facts.extend(line.message.text().and_then(retry).map(Fact::Retrying)),
            Some("item.updated") => {}
            Some(other) => facts.push(Fact::Unknown { kind: other.to_owned() }),
            None => {}
        }
        true
    }

    fn completed(&mut self, item: &Item<'_>) -> Option<Fact> {
        match item.kind.text() {
            Some("agent_message") => {
                self.text = Some(item.text.text_or_empty());
                Some(Fact::Said { text: item.text.text_or_empty() })
            }
            Some("reasoning") => Some(Fact::Thought { text: item.text.text_or_empty() }),
            Some("command_execution") => Some(Fact::ToolReturned {
                text: item.aggregated_output.text_or_empty(),
                failed: item.exit_code.amount().is_some_and(|code| code != 0.0),
                call: item.id.text().map(str::to_owned),
            }),
            Some("file_change") => Some(Fact::ToolReturned {
                text: String::new(),
                failed: item.status.is("failed"),
                call: item.id.text().map(str::to_owned),
            }),
            Some(_) | None => None,
        }
    }

    /// Codex counts from the beginning of the thread.
    fn turn_end(&mut self, line: &Line<'_>, verdict: Verdict, reason: Option<String>) -> TurnEnd {
        let before = self.used_before;
        let all = line.usage.object().and_then(Usage::tokens);
        let tokens = all.map(|all| Tokens {
            input: all.input.saturating_sub(before.input),
            output: all.output.saturating_sub(before.output),
        });
        let text = self.text.take();
        TurnEnd { verdict, reason, tokens, cost_usd: None, messages: text.iter().cloned().collect(), text }
    }
}

fn called(item: &Item<'_>) -> Option<Fact> {
    let (name, detail) = match item.kind.text()? {
        "command_execution" => ("shell", item.command.text_or_empty()),
        "file_change" => ("edit", item.changes.list().iter().map(changed).collect::<Vec<_>>().join(", ")),
        _ => return None,
    };
    let call = Call { id: item.id.text().map(str::to_owned), edits: Vec::new() };
    Some(Fact::ToolCalled { name: name.to_owned(), detail, call })
}

/// The file, and the kind of change unless it is an update.
fn changed(change: &Change<'_>) -> String {
    let path = change.path.text_or_empty();
    match change.kind.text() {
        None | Some("update") => path,
        Some(kind) => format!("{path} ({kind})"),
    }
}

/// `Reconnecting... 2/5 (why)`, and without a server `Reconnecting... waiting for network (why)`.
fn retry(message: &str) -> Option<Retry> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let (count, why) = rest.split_once('(').map_or((rest, None), |(count, why)| (count, why.strip_suffix(')')));
    let attempt = count.split_once('/').and_then(|(attempt, _)| attempt.trim().parse().ok());
    Some(Retry { reason: reason(why.unwrap_or(rest)), attempt })
}

/// An API error arrives as JSON in a text; a person needs only the sentence in it.
pub(crate) fn reason(message: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Inner<'a> {
        #[serde(borrow)]
        error: AnyJson<'a, Problem<'a>>,
    }
    let inner = serde_json::from_str::<Inner<'_>>(message).ok();
    let words = inner.as_ref().and_then(|inner| inner.error.object()?.message.text()).unwrap_or(message);
    words.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_files_are_tools_that_may_fail() {
        let line = |event: &str, status: &str| {
            format!(
                r#"{{"type":"item.{event}","item":{{"type":"file_change","status":"{status}",
                    "changes":[{{"path":"/a","kind":"update"}},{{"path":"/b","kind":"add"}}]}}}}"#
            )
        };
        let mut decoder = CodexLines::default();
        let mut facts = Vec::new();
        for line in [line("started", "in_progress"), line("completed", "failed")] {
            decoder.line(line.as_bytes(), &mut facts);
        }
        let called =
            Fact::ToolCalled { name: "edit".to_owned(), detail: "/a, /b (add)".to_owned(), call: Call::default() };
        assert_eq!(facts, [called, Fact::ToolReturned { text: String::new(), failed: true, call: None }]);
    }

    #[test]
    fn a_complete_turn_without_an_answer_has_failed() {
        let mut decoder = CodexLines::default();
        let mut facts = Vec::new();
        decoder.line(br#"{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":1}}"#, &mut facts);
        let [Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
        assert_eq!(end.verdict, Verdict::Failed);
        assert_eq!(end.reason.as_deref(), Some("the agent ended its turn without an answer"));
    }

    #[test]
    fn a_reconnection_is_a_retry_and_any_other_error_is_not() {
        let retries = |message: &str| {
            let mut facts = Vec::new();
            let line = serde_json::json!({ "type": "error", "message": message }).to_string();
            CodexLines::default().line(line.as_bytes(), &mut facts);
            facts
        };
        let retry = |reason: &str, attempt| [Fact::Retrying(Retry { reason: reason.to_owned(), attempt })];
        assert_eq!(retries("Reconnecting... 2/5 (unexpected status 529)"), retry("unexpected status 529", Some(2)));
        let waits = "Reconnecting... waiting for network (Connection failed: error sending request)";
        assert_eq!(retries(waits), retry("Connection failed: error sending request", None));
        assert_eq!(retries("exceeded retry limit, last status: 429 Too Many Requests"), []);
    }

    #[test]
    fn what_earlier_runs_used_is_not_counted_again() {
        let mut decoder = CodexLines::default();
        decoder.used_before(Tokens { input: 2000, output: 20 });
        let mut facts = Vec::new();
        decoder.line(br#"{"type":"turn.completed","usage":{"input_tokens":3000,"output_tokens":30}}"#, &mut facts);
        let counted: Vec<_> =
            facts.iter().map(|fact| if let Fact::TurnEnded(end) = fact { end.tokens } else { None }).collect();
        assert_eq!(counted, [Some(Tokens { input: 1000, output: 10 })]);
    }
}
