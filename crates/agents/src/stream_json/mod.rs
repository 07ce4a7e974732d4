//! The JSON lines of Claude Code ("stream-json"), both ways. The demo agent speaks them too.
//!
//! A decoder tolerates what it does not know: an unknown event is a [`Fact::Unknown`], an unknown field is ignored, a
//! field of another type counts as absent, a line that is not JSON is skipped. Agents change monthly; what we rely on
//! is tested with the real ones.

mod input;
pub mod recorded;
mod transcript_lines;

pub use input::{answer, interrupt, longer, message};
pub use transcript_lines::{ends_with_answer, folder_name, is_message, remove_found, transcript};

use crate::any_json::{AnyJson, tolerantly};
use crate::content::{Content, Part, texts};
use crate::decoder::Decoder;
use crate::unsaved_on_exit;
use ostler_core::fact::{Ask, Call, Edit, Fact, Retry, Tokens, TurnEnd, UsageLimit, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The most messages of one turn that are remembered, the newest ones: a transcript that has those has the earlier ones
/// too.
const MESSAGES_LIMIT: usize = 10_000;

/// A longer text is not the id of a message.
const NAME_LIMIT: usize = 200;

/// Reads the lines. Remembers the messages of the running turn, because the line that ends the turn does not name them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StreamJson {
    #[serde(serialize_with = "crate::decoder::newest")]
    messages: Vec<String>,
    /// Messages that may be about the end of the process, unless the turn continues after them.
    unsaved_on_exit: Vec<String>,
    /// The usage limit that was reached.
    #[serde(default)]
    limit: Option<UsageLimit>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    subtype: AnyJson<'a>,
    session_id: AnyJson<'a>,
    model: AnyJson<'a>,
    uuid: AnyJson<'a>,
    /// Set on the lines of a subagent, which are not part of the main conversation.
    parent_tool_use_id: AnyJson<'a>,
    message: AnyJson<'a, Message<'a>>,
    request_id: AnyJson<'a>,
    request: Option<&'a RawValue>,
    event: AnyJson<'a, StreamEvent<'a>>,
    is_error: AnyJson<'a>,
    result: AnyJson<'a>,
    total_cost_usd: AnyJson<'a>,
    usage: AnyJson<'a, Usage<'a>>,
    api_error_status: AnyJson<'a>,
    /// Set on a message that reports an error of the model's server.
    error: AnyJson<'a>,
    attempt: AnyJson<'a>,
    error_status: AnyJson<'a>,
    num_turns: AnyJson<'a>,
    terminal_reason: AnyJson<'a>,
    errors: Option<&'a RawValue>,
    task_id: AnyJson<'a>,
    patch: AnyJson<'a, Patch<'a>>,
    rate_limit_info: AnyJson<'a, RateLimit<'a>>,
}

impl Line<'_> {
    /// At the end of a turn: the model was not asked. Claude has carried out a command itself (`/clear`, `/cost`).
    fn is_without_model(&self) -> bool {
        self.num_turns.count() == Some(0)
    }

    /// At the end of a turn: nothing was done, and the line has no reason for the end. After an interrupt it has one.
    fn never_began(&self) -> bool {
        self.num_turns.count() == Some(0) && self.terminal_reason == AnyJson::Nothing
    }
}

/// What the model's server says about the limits of an account.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RateLimit<'a> {
    #[serde(borrow)]
    status: AnyJson<'a>,
    #[serde(rename = "resetsAt")]
    resets_at: AnyJson<'a>,
}

/// A limit that is reached; a warning before that does not count.
fn rejected(info: &RateLimit<'_>) -> Option<UsageLimit> {
    let resets_at = info.resets_at.count().and_then(|second| i64::try_from(second).ok());
    info.status.is("rejected").then(|| UsageLimit { resets_at, ..UsageLimit::new("usage limit") })
}

/// With a key there is no event, and the time of the reset is unknown.
fn refused_for_rate(line: &Line<'_>) -> Option<UsageLimit> {
    (line.api_error_status.count() == Some(429)).then(|| UsageLimit::new("rate limit"))
}

/// The change of a task.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Patch<'a> {
    #[serde(borrow)]
    status: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: AnyJson<'a, Block<'a>>,
}

/// A part of a message, of any kind.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    text: AnyJson<'a>,
    thinking: AnyJson<'a>,
    id: AnyJson<'a>,
    tool_use_id: AnyJson<'a>,
    name: AnyJson<'a>,
    input: AnyJson<'a, ToolInput<'a>>,
    content: Content<'a>,
    is_error: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StreamEvent<'a> {
    #[serde(borrow)]
    delta: AnyJson<'a, Part<'a>>,
}

/// What an answer used, in the fields of the model's own protocol.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Usage<'a> {
    #[serde(borrow)]
    input_tokens: AnyJson<'a>,
    cache_creation_input_tokens: AnyJson<'a>,
    cache_read_input_tokens: AnyJson<'a>,
    output_tokens: AnyJson<'a>,
}

/// The arguments of a tool that show a person what the call does.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolInput<'a> {
    #[serde(borrow)]
    command: AnyJson<'a>,
    file_path: AnyJson<'a>,
    /// `file_path` in opencode's spelling.
    #[serde(rename = "filePath")]
    camel_file_path: AnyJson<'a>,
    path: AnyJson<'a>,
    pattern: AnyJson<'a>,
    query: AnyJson<'a>,
    url: AnyJson<'a>,
    description: AnyJson<'a>,
    prompt: AnyJson<'a>,
    /// For a tool that has only a text.
    text: AnyJson<'a>,
    questions: AnyJson<'a, Question<'a>>,
    old_string: AnyJson<'a>,
    new_string: AnyJson<'a>,
    /// The same two, as opencode spells them.
    #[serde(rename = "oldString")]
    camel_old: AnyJson<'a>,
    #[serde(rename = "newString")]
    camel_new: AnyJson<'a>,
    /// The content of a file that is written completely.
    content: AnyJson<'a>,
    edits: AnyJson<'a, Change<'a>>,
}

/// One of several edits of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Change<'a> {
    #[serde(borrow)]
    old_string: AnyJson<'a>,
    new_string: AnyJson<'a>,
}

/// For a tool that is itself a question.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Question<'a> {
    #[serde(borrow)]
    question: AnyJson<'a>,
}

/// A task that was put into the background, or its end.
fn background(line: &Line<'_>) -> Option<Fact> {
    let runs = match line.subtype.text()? {
        "task_started" => true,
        "task_notification" => false,
        "task_updated" => ["pending", "running"].contains(&line.patch.object()?.status.text()?),
        _ => return None,
    };
    Some(Fact::Background { task: line.task_id.text()?.to_owned(), runs })
}

/// Without a status there was no answer at all, and claude calls the error unknown.
fn retry(line: &Line<'_>) -> Retry {
    let kind = line.error.text().filter(|kind| *kind != "unknown").map(|kind| kind.replace('_', " "));
    let reason = match (status(&line.error_status), kind) {
        (Some(status), Some(kind)) => format!("HTTP {status}, {kind}"),
        (Some(status), None) => format!("HTTP {status}"),
        (None, Some(kind)) => kind,
        (None, None) => "no answer from the server".to_owned(),
    };
    Retry { reason: first_line(&reason), attempt: line.attempt.count().and_then(|count| u32::try_from(count).ok()) }
}

/// The first line of the argument that describes the call; empty when there is none.
#[must_use]
pub fn tool_detail(input: &AnyJson<'_, ToolInput<'_>>) -> String {
    let Some(input) = input.object() else {
        return String::new();
    };
    let ToolInput {
        command,
        file_path,
        camel_file_path,
        path,
        pattern,
        query,
        url,
        description,
        prompt,
        text,
        questions,
        ..
    } = input;
    [command, file_path, camel_file_path, path, pattern, query, url, description, prompt, text]
        .iter()
        .find_map(|argument| argument.text())
        .or_else(|| questions.list().first().and_then(|first| first.question.text()))
        .map(first_line)
        .unwrap_or_default()
}

/// What the call changes in files.
#[must_use]
pub fn tool_edits(input: &AnyJson<'_, ToolInput<'_>>) -> Vec<Edit> {
    let Some(input) = input.object() else {
        return Vec::new();
    };
    let Some(path) = input.file_path.text().or(input.camel_file_path.text()).or(input.path.text()) else {
        return Vec::new();
    };
    let edit = |old: Option<&str>, new: Option<&str>| {
        Some(Edit { path: path.to_owned(), old: old.unwrap_or_default().to_owned(), new: new?.to_owned() })
    };
    let one = edit(
        input.old_string.text().or(input.camel_old.text()),
        input.new_string.text().or(input.camel_new.text()).or(input.content.text()),
    );
    let several = input.edits.list().iter().filter_map(|one| edit(one.old_string.text(), one.new_string.text()));
    several.chain(one).collect()
}

/// [`tool_detail`] for arguments that were kept as a JSON value.
#[must_use]
pub fn detail_of(input: &Value) -> String {
    AnyJson::deserialize(input).map(|input| tool_detail(&input)).unwrap_or_default()
}

impl Decoder for StreamJson {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        if !tolerantly(line, |line| self.understand(line, facts)) && !line.iter().all(u8::is_ascii_whitespace) {
            facts.push(Fact::Unknown { kind: "a line that is not a JSON object".to_owned() });
        }
    }

    fn messages_so_far(&self) -> Vec<String> {
        self.messages
            .iter()
            .cloned()
            .chain(self.unsaved_on_exit.iter().map(|name| unsaved_on_exit::word(name)))
            .collect()
    }

    crate::decoder::remembers_its_turn!();
}

impl StreamJson {
    /// Returns false when the line is not a JSON object.
    fn understand(&mut self, line: &[u8], facts: &mut Vec<Fact>) -> bool {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
            return false;
        };
        let main = line.parent_tool_use_id == AnyJson::Nothing;
        match line.kind.text().unwrap_or("an object without a type") {
            "stream_event" if main => {
                let delta = line.event.object().and_then(|event| event.delta.object());
                let text = delta.and_then(|delta| delta.text.text());
                facts.extend(text.map(|text| Fact::Saying { text: text.to_owned() }));
            }
            "system" if line.subtype.is("init") => {
                facts.extend(line.session_id.text().map(|id| Fact::Native { id: id.to_owned() }));
                facts.extend(line.model.text().map(|name| Fact::Model { name: name.to_owned() }));
            }
            "assistant" if main => {
                self.remember(&line.uuid);
                // The end of the turn repeats this error, and it is not the model's text.
                if line.error == AnyJson::Nothing {
                    blocks(&line.message, facts);
                }
            }
            "user" if main => {
                let mut found = Vec::new();
                results(&line.message, &mut found);
                if found.iter().any(|fact| matches!(fact, Fact::ToolReturned { failed: false, .. })) {
                    self.remember(&line.uuid);
                } else if self.unsaved_on_exit.len() < MESSAGES_LIMIT {
                    self.unsaved_on_exit.extend(name(&line.uuid));
                }
                facts.append(&mut found);
            }
            "control_request" => facts.extend(asked(&line)),
            "control_cancel_request" => {
                facts.extend(line.request_id.text().map(|request| Fact::AskClosed { request: request.to_owned() }));
            }
            "rate_limit_event" => self.limit = line.rate_limit_info.object().and_then(rejected).or(self.limit.take()),
            "result" => {
                let limit = self.limit.take().or_else(|| refused_for_rate(&line));
                let end = self.turn_end(&line);
                facts.extend(limit.filter(|_| end.verdict == Verdict::Failed).map(Fact::Limited));
                facts.push(Fact::TurnEnded(end));
            }
            "assistant" => below(&line.message, blocks, facts),
            "user" => below(&line.message, results, facts),
            "system" if line.subtype.is("api_retry") => facts.push(Fact::Retrying(retry(&line))),
            "system" => facts.extend(background(&line)),
            "stream_event" | "control_response" => {}
            other => facts.push(Fact::Unknown { kind: other.to_owned() }),
        }
        true
    }

    /// A message after which the turn continues, so the messages before it were not about the end of the process.
    fn remember(&mut self, uuid: &AnyJson<'_>) {
        self.messages.append(&mut self.unsaved_on_exit);
        if self.messages.len() >= MESSAGES_LIMIT {
            self.messages.drain(..MESSAGES_LIMIT / 2);
        }
        self.messages.extend(name(uuid));
    }

    /// An API error arrives as "success" with `is_error`, so the subtype alone proves nothing.
    fn turn_end(&mut self, line: &Line<'_>) -> TurnEnd {
        let text = line.result.text();
        let subtype = line.subtype.text().unwrap_or("");
        let silent = text.is_some_and(|text| text.trim().is_empty());
        let verdict = match (subtype, line.is_error.flag()) {
            // Claude reports success when the model says nothing, even after claude has asked it to.
            ("success", None | Some(false)) if silent && !line.is_without_model() => Verdict::Failed,
            ("success", None | Some(false)) => Verdict::Succeeded,
            // When claude is told to resume a conversation that does not exist, it reports the same for a turn that
            // never began.
            ("error_during_execution", _) if !line.never_began() => Verdict::Interrupted,
            _ => Verdict::Failed,
        };
        let reason = match verdict {
            Verdict::Succeeded => None,
            Verdict::Interrupted => Some("the turn was interrupted".to_owned()),
            Verdict::Failed => Some(match (status(&line.api_error_status), text.filter(|text| !text.is_empty())) {
                (None, Some(text)) => first_line(text),
                (Some(status), Some(text)) if text.contains(&status) => first_line(text),
                (Some(status), Some(text)) => format!("API error {status}: {}", first_line(text)),
                (None, None) if subtype == "success" => "the agent ended its turn without an answer".to_owned(),
                (None, None) => first_error(line.errors).unwrap_or_else(|| subtype.to_owned()),
                (Some(status), None) => format!("API error {status}"),
            }),
        };
        // What claude itself prints for a command is not in the transcript under the id that it has here.
        let local = verdict == Verdict::Succeeded && line.is_without_model();
        let messages = if local { Vec::new() } else { self.messages_so_far() };
        *self = StreamJson::default();
        TurnEnd {
            verdict,
            text: text.map(str::to_owned),
            reason,
            tokens: line.usage.object().and_then(tokens),
            cost_usd: line.total_cost_usd.amount(),
            messages,
        }
    }
}

fn name(uuid: &AnyJson<'_>) -> Option<String> {
    uuid.text().filter(|name| name.len() <= NAME_LIMIT).map(str::to_owned)
}

fn first_error(errors: Option<&RawValue>) -> Option<String> {
    let errors: Vec<String> = serde_json::from_str(errors?.get()).ok()?;
    errors.first().map(|error| first_line(error))
}

/// A number, or a text instead of it.
fn status(status: &AnyJson<'_>) -> Option<String> {
    status.count().map(|number| number.to_string()).or_else(|| status.text().map(str::to_owned))
}

pub(crate) fn tokens(usage: &Usage<'_>) -> Option<Tokens> {
    let Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = usage;
    let read = [input_tokens, cache_creation_input_tokens, cache_read_input_tokens];
    Some(Tokens {
        input: read.iter().filter_map(|count| count.count()).fold(0, u64::saturating_add),
        output: output_tokens.count()?,
    })
}

pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The parts of an assistant's message.
fn blocks(message: &AnyJson<'_, Message<'_>>, facts: &mut Vec<Fact>) {
    for block in message.object().map_or(&[][..], |message| message.content.list()) {
        match block.kind.text() {
            Some("text") => facts.extend(block.text.text().map(|text| Fact::Said { text: text.to_owned() })),
            Some("thinking") => {
                facts.extend(block.thinking.text().map(|text| Fact::Thought { text: text.to_owned() }));
            }
            Some("tool_use") => facts.push(Fact::ToolCalled {
                name: block.name.text().unwrap_or("tool").to_owned(),
                detail: tool_detail(&block.input),
                call: Call { id: block.id.text().map(str::to_owned), edits: tool_edits(&block.input) },
            }),
            Some(_) | None => {}
        }
    }
}

/// The facts of a subagent's message.
fn below(
    message: &AnyJson<'_, Message<'_>>,
    read: fn(&AnyJson<'_, Message<'_>>, &mut Vec<Fact>),
    facts: &mut Vec<Fact>,
) {
    let mut found = Vec::new();
    read(message, &mut found);
    facts.extend(found.into_iter().map(|fact| Fact::Subagent(Box::new(fact))));
}

/// The results of tools.
fn results(message: &AnyJson<'_, Message<'_>>, facts: &mut Vec<Fact>) {
    for block in message.object().map_or(&[][..], |message| message.content.list()) {
        if block.kind.is("tool_result") {
            facts.push(Fact::ToolReturned {
                text: texts(&block.content).collect::<Vec<_>>().join("\n"),
                failed: block.is_error.flag().unwrap_or(false),
                call: block.tool_use_id.text().map(str::to_owned),
            });
        }
    }
}

fn asked(line: &Line<'_>) -> Option<Fact> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Request<'a> {
        #[serde(borrow)]
        subtype: AnyJson<'a>,
        tool_name: AnyJson<'a>,
        description: AnyJson<'a>,
        input: Option<&'a RawValue>,
        permission_suggestions: Option<&'a RawValue>,
    }
    let request: Request<'_> = serde_json::from_str(line.request?.get()).ok()?;
    if !request.subtype.is("can_use_tool") {
        return None;
    }
    let raw = |value: Option<&RawValue>| -> Value {
        value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
    };
    let detail = || request.input.and_then(|input| serde_json::from_str(input.get()).ok()).unwrap_or_default();
    let words = request.description.text().filter(|text| !text.is_empty());
    Some(Fact::Asked(Ask {
        request: line.request_id.text()?.to_owned(),
        tool: request.tool_name.text().map(str::to_owned),
        input: raw(request.input),
        text: words.map_or_else(|| tool_detail(&detail()), str::to_owned),
        suggestions: raw(request.permission_suggestions),
        details: Value::Null,
    }))
}

#[cfg(test)]
mod tests;
