//! Codex. One process per turn: `codex exec` takes the prompt from its input, and a further message resumes the thread.

mod installed;
mod ownership;
mod recorded;
mod repair;
mod screen;
mod server;
mod stored;

use crate::any_json::{AnyJson, tolerantly};
use crate::content::{self, Content};
use crate::recorded::Recording;
use crate::shapes::{Problem, Usage};
use crate::{Agent, Decoder, Launch, Launching, Location, named, one_turn, prompt, silent_terminal};
use ostler_core::fact::{Call, Fact, Retry, Tokens, TurnEnd, Verdict};
use ostler_core::record::Mode;
use serde::{Deserialize, Serialize};

pub struct Codex;

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["codex".to_owned()];
        let terminal = session.mode == Mode::Terminal;
        if terminal && (request.knows)(server::NOT_USED) {
            argv.push(server::NOT_USED.to_owned());
        }
        let model = session.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]);
        if terminal {
            if request.resume {
                argv.extend(["resume".to_owned(), request.native_id.to_owned()]);
            } else if let Some(origin) = request.forks() {
                argv.extend(["fork".to_owned(), origin.native_id.clone()]);
            }
            argv.extend(model.chain(server::without_the_option(&session.arguments)));
            return silent_terminal(argv, request);
        }
        argv.push("exec".to_owned());
        let known = match request.forks() {
            Some(origin) => Some(("fork", origin.native_id.as_str())),
            None => request.resume.then_some(("resume", request.native_id)),
        };
        argv.extend(known.map(|(word, _)| word.to_owned()));
        argv.extend(["--json".to_owned(), "--skip-git-repo-check".to_owned()]);
        argv.extend(model.chain(session.arguments.iter().cloned()));
        argv.extend(known.map(|(_, id)| id.to_owned()));
        // The prompt comes over standard input: as an argument it could not be long.
        argv.push("-".to_owned());
        one_turn(argv, request)
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        named::behind(arguments, &["resume"], "fork", named::is_uuid)
    }

    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let newest = arguments.iter().any(|word| word == "resume") && arguments.iter().any(|word| word == "--last");
        let which = "which conversation? For one of ostler: ostler resume ID; for another: -- resume ID with another";
        server::conflict(arguments).or_else(|| newest.then_some(which))
    }

    fn works_behind(&self, argv: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let home = self.conversations_folder(variable)?;
        server::may_be_used(argv).then(|| server::socket(&home))
    }

    fn in_force(&self, argv: &[String]) -> Option<&'static str> {
        server::in_force(argv)
    }

    fn shared_by_many(&self, argv: &[String]) -> Option<&'static str> {
        server::is_one(argv).then_some(server::HOW_TO_END)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(CodexLines::default())
    }

    fn message(&self, message: &crate::Message<'_>) -> Vec<u8> {
        message.text.as_bytes().to_vec()
    }
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        set("CODEX_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.codex")))
    }

    fn prompt(&self) -> Option<fn(&prompt::Screen<'_>) -> prompt::Seen> {
        Some(screen::look)
    }

    /// Escape. A signal would end it.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        Some(b"\x1b".to_vec())
    }

    fn transcript(&self, native_id: &str, _cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
        let home = self.conversations_folder(variable)?;
        Some(Location::Below { folder: format!("{home}/sessions"), name_ends_with: format!("-{native_id}.jsonl") })
    }

    /// Its own ids for messages are not in its output, so the text itself is looked for.
    fn mark(&self, _id: &str, text: &str) -> String {
        text.to_owned()
    }

    fn recording(&self) -> Option<Box<dyn Recording>> {
        Some(Box::new(recorded::Transcript))
    }

    fn said_in(&self, line: &[u8]) -> Option<String> {
        let line = serde_json::from_slice::<Recorded<'_>>(line).ok()?;
        let payload = line.payload.object().filter(|payload| payload.role.is("assistant"))?;
        Some(content::texts(&payload.content).collect::<Vec<_>>().join("\n")).filter(|text| !text.trim().is_empty())
    }

    fn strike(&self, line: &[u8], wanted: &mut Vec<&str>) {
        tolerantly(line, |line| {
            let Ok(line) = serde_json::from_slice::<Recorded<'_>>(line) else {
                return false;
            };
            if let Some(payload) = line.payload.object() {
                content::strike(&payload.content, wanted);
            }
            true
        });
    }
}

/// What the thread has used so far, by a line of its transcript that tells.
#[must_use]
pub fn used_by_thread(line: &[u8]) -> Option<Tokens> {
    memchr::memmem::find(line, b"total_token_usage")?;
    let record: serde_json::Value = serde_json::from_slice(line).ok()?;
    let used = &record["payload"]["info"]["total_token_usage"];
    Some(Tokens { input: used["input_tokens"].as_u64()?, output: used["output_tokens"].as_u64()? })
}

/// A line of the transcript.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded<'a> {
    #[serde(borrow)]
    payload: AnyJson<'a, Payload<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload<'a> {
    #[serde(borrow)]
    role: AnyJson<'a>,
    content: Content<'a>,
}

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

/// What it does to one file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Change<'a> {
    #[serde(borrow)]
    path: AnyJson<'a>,
    kind: AnyJson<'a>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct CodexLines {
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

    crate::remembers_its_turn!();
}

impl CodexLines {
    /// False when it is not a JSON object.
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
            // It calls a turn complete in which the model said nothing.
            Some("turn.completed") if self.text.as_ref().is_none_or(|text| text.trim().is_empty()) => {
                let reason = Some("the agent ended its turn without an answer".to_owned());
                facts.push(Fact::TurnEnded(self.turn_end(&line, Verdict::Failed, reason)));
            }
            Some("turn.completed") => facts.push(Fact::TurnEnded(self.turn_end(&line, Verdict::Succeeded, None))),
            Some("turn.failed") => {
                let words = line.error.object().and_then(|error| error.message.text());
                let reason = reason(words.unwrap_or("the turn failed"));
                facts.push(Fact::TurnEnded(self.turn_end(&line, Verdict::Failed, Some(reason))));
            }
            // Every other error is said again by `turn.failed`.
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

    /// It counts from the beginning of the thread.
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

/// The file, and what is done to it where it is not simply changed.
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

/// An API error arrives as JSON in a text; a person wants the sentence in it.
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
    fn what_it_said_is_read_from_its_transcript() {
        let line = |role: &str| {
            format!(
                r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}",
                    "content":[{{"type":"output_text","text":"the end"}}]}}}}"#
            )
        };
        assert_eq!(Codex.said_in(line("assistant").as_bytes()).as_deref(), Some("the end"));
        assert_eq!(Codex.said_in(line("user").as_bytes()), None);
    }

    #[test]
    fn changes_of_files_are_tools_that_may_fail() {
        let line = |event: &str, status: &str| {
            format!(
                r#"{{"type":"item.{event}","item":{{"type":"file_change","status":"{status}",
                    "changes":[{{"path":"/a","kind":"update"}},{{"path":"/b","kind":"add"}}]}}}}"#
            )
        };
        let mut decoder = Codex.decoder();
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
        let mut decoder = Codex.decoder();
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
            Codex.decoder().line(line.as_bytes(), &mut facts);
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
        let mut decoder = Codex.decoder();
        decoder.used_before(Tokens { input: 2000, output: 20 });
        let mut facts = Vec::new();
        decoder.line(br#"{"type":"turn.completed","usage":{"input_tokens":3000,"output_tokens":30}}"#, &mut facts);
        let counted: Vec<_> =
            facts.iter().map(|fact| if let Fact::TurnEnded(end) = fact { end.tokens } else { None }).collect();
        assert_eq!(counted, [Some(Tokens { input: 1000, output: 10 })]);
    }
}
