//! What an agent's lines mean.
//!
//! Texts come in pieces, and only the following line shows that a text is complete. When a conversation is resumed, the
//! agent first repeats it in the same form as a new turn: everything between the answer to `initialize` and the answer
//! to our question after `session/load` is history. (The answer to `session/load` itself is too early: gemini 0.61
//! sends most of the history after it.) A reader that begins after that point needs neither answer.

use super::adapters;
use super::wire::{self, Happening, Line, Permission, PromptResult, Question, Status, ToolCall};
use crate::decoder::Decoder;
use crate::stream_json::detail_of;
use ostler_core::MESSAGE_LIMIT;
use ostler_core::fact::{self, Ask, Fact, Tokens, TurnEnd, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most tool calls that may be open at a time; beyond that the oldest are dropped.
const OPEN_CALLS: usize = 256;
/// For this many calls the announcement is kept, for a question about the call, if its line is not longer than
/// `KEPT_BYTES`.
const KEPT_CALLS: usize = 16;
const KEPT_BYTES: usize = 256 * 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AcpLines {
    /// The lines that come now repeat an earlier run.
    history: bool,
    recalled: Recalled,
    /// This agent has sent the complete history when it answers `session/load`.
    history_first: bool,
    /// Some of the agent's text is notices of the program.
    mixes_in_notices: bool,
    text: String,
    /// The id of the message that the text belongs to, if it has one, and in how many pieces the text has come.
    message: Option<String>,
    pieces: usize,
    thought: String,
    /// The last whole text of the turn.
    answer: Option<String>,
    calls: Vec<Call>,
    line_bytes: usize,
}

/// What is kept of the repeated history: the last message of a person.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Recalled {
    /// The id of the last message, if it has one: then the message may come in pieces.
    id: Option<String>,
    last: String,
    /// How many times the message came in a row.
    times: u64,
}

impl Recalled {
    /// A message, or a further piece of one.
    fn hear(&mut self, text: &str, id: Option<String>) {
        if id.is_some() && id == self.id {
            append(&mut self.last, text);
            self.times = 1;
        } else if !text.trim().is_empty() {
            self.times = if text.trim() == self.last.trim() { self.times + 1 } else { 1 };
            self.last = String::new();
            append(&mut self.last, text);
            self.id = id;
        }
    }
}

/// A tool call that has not returned.
#[derive(Debug, Serialize, Deserialize)]
struct Call {
    id: String,
    name: String,
    detail: String,
    shown: bool,
    /// Everything that was reported about the call so far, because a question about it may contain only what is new.
    told: Option<Box<ToolCall>>,
}

impl Decoder for AcpLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        self.line_bytes = line.len();
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            if !line.iter().all(u8::is_ascii_whitespace) {
                facts.push(Fact::Unknown { kind: "a line that is not a JSON object".to_owned() });
            }
            return;
        };
        match (&line.method, &line.id) {
            (Some(method), Some(id)) => self.requested(method, id, line.params, facts),
            (Some(method), None) if method == "session/update" => self.told(line.params, facts),
            (Some(method), None) => facts.push(Fact::Unknown { kind: method.clone() }),
            (None, Some(id)) => match Question::of(id) {
                Some(question) => self.answered(&question, &line, facts),
                None => facts.push(Fact::Unknown { kind: "an answer to nothing".to_owned() }),
            },
            (None, None) => facts.push(Fact::Unknown { kind: "a line that is not a message".to_owned() }),
        }
    }

    /// The protocol has no ids for messages, and does not say where they are stored.
    fn messages_so_far(&self) -> Vec<String> {
        Vec::new()
    }

    crate::decoder::remembers_its_turn!();
}

impl AcpLines {
    fn answered(&mut self, question: &Question, line: &Line, facts: &mut Vec<Fact>) {
        let result = &line.result;
        match (question, &line.error) {
            (Question::Prompt, error) => {
                self.end_texts(facts);
                let end = match error {
                    Some(error) => self.turn_end(Verdict::Failed, Some(error.reason()), None),
                    None => self.reported_end(result),
                };
                facts.push(Fact::TurnEnded(end));
            }
            // An error is an answer too: the agent does not know the question.
            (Question::Ready, _) => self.open(None, facts),
            (Question::Initialize | Question::New | Question::Load, Some(error)) => {
                facts.push(Fact::NotOpened { reason: error.reason() });
            }
            (Question::Initialize, None) => {
                self.history = true;
                let info = result["agentInfo"]["name"].as_str();
                if let Some(agent) = info.and_then(adapters::named) {
                    self.history_first = agent.repeats_history_first();
                    self.mixes_in_notices = agent.mixes_in_notices();
                    facts.push(Fact::Behind { agent: agent.name().to_owned() });
                }
                let version = &result["protocolVersion"];
                if version.as_u64() != Some(wire::VERSION) {
                    let reason =
                        format!("it uses version {version} of the protocol; ostler needs version {}", wire::VERSION);
                    facts.push(Fact::NotOpened { reason });
                }
            }
            (Question::New, None) => match result["sessionId"].as_str() {
                Some(id) => self.open(Some(id.to_owned()), facts),
                None => facts.push(Fact::NotOpened { reason: "it does not name the conversation".to_owned() }),
            },
            (Question::Load, None) if self.history_first => self.open(None, facts),
            (Question::Load, None) => {
                facts.push(Fact::ReplyDue { name: wire::READY.to_owned(), line: wire::ready() });
            }
        }
    }

    fn open(&mut self, native_id: Option<String>, facts: &mut Vec<Fact>) {
        self.history = false;
        let recalled = std::mem::take(&mut self.recalled);
        if recalled.times > 0 {
            facts.push(Fact::Recalled { last: recalled.last, times: recalled.times });
        }
        facts.push(Fact::Opened { native_id });
    }

    /// A request of the agent: a permission, which a person decides, or something that we have said we cannot do.
    fn requested(&mut self, method: &str, id: &Value, params: Value, facts: &mut Vec<Fact>) {
        let permission = match method {
            "session/request_permission" => serde_json::from_value::<Permission>(params).ok(),
            _ => None,
        };
        let Some(Permission { tool_call, options }) = permission else {
            facts.push(Fact::ReplyDue { name: format!("declined-{id}"), line: wire::method_not_found(id, method) });
            return;
        };
        self.end_texts(facts);
        let call = self.noted(&tool_call);
        let (name, detail) = (call.name.clone(), call.detail.clone());
        let told = call.told.take().map_or(ToolCall::default(), |told| *told).and(tool_call);
        facts.push(Fact::Asked(Ask {
            request: id.to_string(),
            tool: Some(name),
            text: told.title.clone().unwrap_or(detail),
            details: told.details(),
            input: told.raw_input,
            suggestions: options,
        }));
    }

    fn told(&mut self, mut params: Value, facts: &mut Vec<Fact>) {
        let update = params.get_mut("update").map(Value::take).unwrap_or_default();
        let happening = serde_json::from_value::<Happening>(update);
        if self.history {
            if let Ok(Happening::UserMessageChunk { content, message_id }) = happening {
                self.recalled.hear(content["text"].as_str().unwrap_or_default(), message_id);
            }
            return;
        }
        match happening {
            Ok(Happening::AgentMessageChunk { content, message_id }) => {
                self.end_thought(facts);
                if let Some(text) = content["text"].as_str().filter(|text| !text.is_empty()) {
                    self.hear(text, message_id, facts);
                }
            }
            Ok(Happening::AgentThoughtChunk { content }) => {
                self.end_text(facts);
                append(&mut self.thought, content["text"].as_str().unwrap_or_default());
            }
            Ok(Happening::ToolCall(call) | Happening::ToolCallUpdate(call)) => {
                self.end_texts(facts);
                self.worked(&call, facts);
            }
            Ok(Happening::UserMessageChunk { .. } | Happening::Other) => {}
            Err(_) => facts.push(Fact::Unknown { kind: "session/update".to_owned() }),
        }
    }

    /// A piece of a text, which may be the first piece of another text.
    fn hear(&mut self, text: &str, message: Option<String>, facts: &mut Vec<Fact>) {
        if self.mixes_in_notices && text.starts_with(NOTICE) {
            self.end_text(facts);
            facts.push(Fact::Thought { text: text.to_owned() });
            return;
        }
        if self.message.is_some() && message.is_some() && self.message != message {
            self.end_text(facts);
        } else if self.mixes_in_notices && self.pieces == 1 && is_glued(&self.text, text) {
            // The notice is shown, and is not part of the answer.
            facts.push(Fact::Said { text: std::mem::take(&mut self.text) });
            self.pieces = 0;
        }
        self.message = message;
        self.pieces += 1;
        append(&mut self.text, text);
        facts.push(Fact::Saying { text: text.to_owned() });
    }

    /// The first line about a call often only announces it; the call is shown at the second line, or when it runs.
    fn worked(&mut self, call: &ToolCall, facts: &mut Vec<Fact>) {
        let first = !self.calls.iter().any(|open| open.id == call.tool_call_id);
        let announced = first && matches!(call.status, None | Some(Status::Pending));
        self.keep(call);
        let known = self.noted(call);
        if !announced && !std::mem::replace(&mut known.shown, true) {
            let edits = known.told.as_ref().map(|told| diffs(&told.content)).unwrap_or_default();
            let call = fact::Call { id: Some(known.id.clone()), edits };
            facts.push(Fact::ToolCalled { name: known.name.clone(), detail: known.detail.clone(), call });
        }
        if matches!(call.status, Some(Status::Completed | Status::Failed)) {
            let failed = call.status == Some(Status::Failed) || exit_code(call).is_some_and(|code| code != 0);
            let id = Some(call.tool_call_id.clone());
            facts.push(Fact::ToolReturned { text: output(call), failed, call: id });
            self.calls.retain(|open| open.id != call.tool_call_id);
        }
    }

    /// What is known about a call, including what this line adds.
    fn noted(&mut self, call: &ToolCall) -> &mut Call {
        let place = self.calls.iter().position(|open| open.id == call.tool_call_id).unwrap_or_else(|| {
            if self.calls.len() >= OPEN_CALLS {
                self.calls.remove(0);
            }
            let id = call.tool_call_id.clone();
            self.calls.push(Call { id, name: "tool".to_owned(), detail: String::new(), shown: false, told: None });
            self.calls.len() - 1
        });
        let known = &mut self.calls[place];
        let own_name = call.name.as_deref().or(call.meta["claudeCode"]["toolName"].as_str());
        if let Some(name) = own_name.or(call.kind.as_deref()) {
            name.clone_into(&mut known.name);
        }
        let argument = Some(detail_of(&call.raw_input)).filter(|detail| !detail.is_empty());
        if let Some(detail) = argument.or(call.title.clone()) {
            known.detail = detail;
        }
        known
    }

    /// Keeps what is reported about a call until a question about it comes.
    fn keep(&mut self, call: &ToolCall) {
        let short = self.line_bytes <= KEPT_BYTES;
        let known = self.noted(call);
        known.told =
            short.then(|| Box::new(known.told.take().map_or(ToolCall::default(), |told| *told).and(call.clone())));
        let kept = self.calls.iter().filter(|call| call.told.is_some()).count();
        if kept > KEPT_CALLS {
            self.calls.iter_mut().find_map(|call| call.told.take());
        }
    }

    fn reported_end(&mut self, result: &Value) -> TurnEnd {
        let Ok(end) = PromptResult::deserialize(result) else {
            return self.turn_end(Verdict::Failed, Some("it did not report how its turn ended".to_owned()), None);
        };
        let (verdict, reason) = match end.stop_reason.as_str() {
            "end_turn" if self.answer.is_some() => (Verdict::Succeeded, None),
            // Agents report `end_turn` also when the model's answer was cut off or empty.
            "end_turn" => (Verdict::Failed, Some("the agent ended its turn without an answer".to_owned())),
            "cancelled" => (Verdict::Interrupted, Some("the turn was interrupted".to_owned())),
            "refusal" => (Verdict::Failed, Some("the agent refused to continue".to_owned())),
            "max_tokens" => (Verdict::Failed, Some("the answer reached its token limit".to_owned())),
            "max_turn_requests" => (Verdict::Failed, Some("the turn reached its request limit".to_owned())),
            other => (Verdict::Failed, Some(format!("the turn ended with {other:?}"))),
        };
        self.turn_end(verdict, reason, tokens(&end))
    }

    fn turn_end(&mut self, verdict: Verdict, reason: Option<String>, tokens: Option<Tokens>) -> TurnEnd {
        self.calls.clear();
        TurnEnd { verdict, text: self.answer.take(), reason, tokens, cost_usd: None, messages: Vec::new() }
    }

    fn end_texts(&mut self, facts: &mut Vec<Fact>) {
        self.end_thought(facts);
        self.end_text(facts);
    }

    fn end_text(&mut self, facts: &mut Vec<Fact>) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            (self.message, self.pieces) = (None, 0);
            self.answer = Some(text.clone());
            facts.push(Fact::Said { text });
        }
    }

    fn end_thought(&mut self, facts: &mut Vec<Fact>) {
        if !self.thought.is_empty() {
            facts.push(Fact::Thought { text: std::mem::take(&mut self.thought) });
        }
    }
}

/// What a call changes in files, as far as the protocol shows it.
fn diffs(content: &Value) -> Vec<fact::Edit> {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let diff = |part: &Value| {
        let text = |name: &str| part[name].as_str().map(str::to_owned);
        let old = text("oldText").unwrap_or_default();
        (part["type"] == "diff").then(|| Some(fact::Edit { path: text("path")?, old, new: text("newText")? }))?
    };
    parts.iter().filter_map(diff).collect()
}

/// The beginning of a notice that codex-acp prints before every first answer for a model that it does not know.
const NOTICE: &str = "Model metadata for `";
/// The first piece of a model's answer is never a complete sentence of this length.
const NOTICE_LENGTH: usize = 40;

/// Whether the first piece is a notice that the next piece does not continue: within one text a space follows the end
/// of a sentence.
fn is_glued(first: &str, next: &str) -> bool {
    first.len() >= NOTICE_LENGTH
        && first.ends_with(['.', '!', '?'])
        && next.chars().next().is_some_and(char::is_alphanumeric)
}

/// The exit code of a tool's command, where the agent reports it although it calls the tool completed.
fn exit_code(call: &ToolCall) -> Option<i64> {
    call.raw_output["metadata"]["exit"].as_i64().or(call.raw_output["exit_code"].as_i64())
}

/// Adds a piece to a text, up to a limit beyond which no person reads it.
fn append(text: &mut String, piece: &str) {
    if text.len() + piece.len() <= MESSAGE_LIMIT {
        text.push_str(piece);
    }
}

/// What a tool returned: the part that is meant to be shown, else what it printed.
fn output(call: &ToolCall) -> String {
    let shown = call.content.as_array().into_iter().flatten();
    let texts: Vec<&str> = shown.filter_map(|block| block["content"]["text"].as_str()).collect();
    let raw = &call.raw_output;
    if texts.is_empty() {
        raw.as_str().or(raw["formatted_output"].as_str()).or(raw["output"].as_str()).unwrap_or_default().to_owned()
    } else {
        texts.join("\n")
    }
}

/// The protocol has a field for token counts; gemini uses its own.
fn tokens(end: &PromptResult) -> Option<Tokens> {
    usage(&end.usage).or_else(|| {
        let count = &end.meta["quota"]["token_count"];
        let output = count["output_tokens"].as_u64()?;
        Some(Tokens { input: count["input_tokens"].as_u64().unwrap_or(0), output })
    })
}

/// Cached tokens and thinking tokens may be counted separately from the rest; the total shows whether they are.
fn usage(usage: &Value) -> Option<Tokens> {
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let plain = Tokens { input: count("inputTokens"), output: usage["outputTokens"].as_u64()? };
    if usage["totalTokens"].as_u64() == plain.input.checked_add(plain.output) {
        return Some(plain);
    }
    let cached = count("cachedReadTokens").saturating_add(count("cachedWriteTokens"));
    Some(Tokens {
        input: plain.input.saturating_add(cached),
        output: plain.output.saturating_add(count("thoughtTokens")),
    })
}

#[cfg(test)]
mod tests;
