//! What an agent's lines mean.
//!
//! Texts come in pieces, and only what follows tells that one is whole. A conversation that is gone on with is first told
//! again in the same words as a new turn: whatever comes between the answers to `initialize` and to our question behind
//! `session/load` is history. (Not before the answer to `session/load` itself: gemini 0.61 tells most of it after that.)
//! A reader that begins later than that has missed neither.

use super::adapters;
use super::wire::{self, Happening, Line, Permission, PromptResult, Question, Status, ToolCall};
use crate::Decoder;
use crate::stream_json::detail_of;
use ostler_core::MESSAGE_LIMIT;
use ostler_core::fact::{self, Ask, Fact, Tokens, TurnEnd, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// So many tool calls may be open at a time; of more the oldest are forgotten.
const OPEN_CALLS: usize = 256;
/// Of so many calls what they were announced with is kept for a question about them, if its line is not longer than this.
const KEPT_CALLS: usize = 16;
const KEPT_BYTES: usize = 256 * 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AcpLines {
    /// What is told now was said in an earlier run.
    history: bool,
    recalled: Recalled,
    /// All of it has been told when `session/load` is answered.
    history_first: bool,
    /// Some of its words are notices of the program.
    mixes_in_notices: bool,
    text: String,
    /// The name of the message that the text is of, where it has one, and in how many pieces it has come.
    message: Option<String>,
    pieces: usize,
    thought: String,
    /// The last whole text of the turn.
    answer: Option<String>,
    calls: Vec<Call>,
    line_bytes: usize,
}

/// What is kept of a conversation that is told again: the words of a person it ends with.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Recalled {
    /// The name of the last message, where it has one: then it may come in pieces.
    id: Option<String>,
    last: String,
    /// How many times in a row.
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

/// A tool call that has not come back.
#[derive(Debug, Serialize, Deserialize)]
struct Call {
    id: String,
    name: String,
    detail: String,
    shown: bool,
    /// All that was told about it so far, because a question about it may name only what is new.
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

    /// The protocol names no messages, and nobody says where they are kept.
    fn messages_so_far(&self) -> Vec<String> {
        Vec::new()
    }

    crate::remembers_its_turn!();
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
            // That it does not know the question is its answer.
            (Question::Ready, _) => self.open(None, facts),
            (Question::Initialize | Question::New | Question::Load, Some(error)) => {
                facts.push(Fact::NotOpened { reason: error.reason() });
            }
            (Question::Initialize, None) => {
                self.history = true;
                let info = result["agentInfo"]["name"].as_str();
                if let Some(agent) = info.and_then(adapters::named) {
                    self.history_first = adapters::tells_history_first(agent);
                    self.mixes_in_notices = adapters::mixes_in_notices(agent);
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
                facts.push(Fact::Owed { name: wire::READY.to_owned(), line: wire::ready() });
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

    /// It wants something: leave, which a person gives, or what we have said we cannot do.
    fn requested(&mut self, method: &str, id: &Value, params: Value, facts: &mut Vec<Fact>) {
        let permission = match method {
            "session/request_permission" => serde_json::from_value::<Permission>(params).ok(),
            _ => None,
        };
        let Some(Permission { tool_call, options }) = permission else {
            facts.push(Fact::Owed { name: format!("declined-{id}"), line: wire::method_not_found(id, method) });
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

    /// A piece of a text, which may be the first of another one.
    fn hear(&mut self, text: &str, message: Option<String>, facts: &mut Vec<Fact>) {
        if self.mixes_in_notices && text.starts_with(NOTICE) {
            self.end_text(facts);
            facts.push(Fact::Thought { text: text.to_owned() });
            return;
        }
        if self.message.is_some() && message.is_some() && self.message != message {
            self.end_text(facts);
        } else if self.mixes_in_notices && self.pieces == 1 && is_glued(&self.text, text) {
            // It is shown, and is no part of the answer.
            facts.push(Fact::Said { text: std::mem::take(&mut self.text) });
            self.pieces = 0;
        }
        self.message = message;
        self.pieces += 1;
        append(&mut self.text, text);
        facts.push(Fact::Saying { text: text.to_owned() });
    }

    /// The first word about a call is often only that there will be one; it is shown at the second, or when it runs.
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

    /// What is known about a call, with what this adds.
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

    /// Keeps what is told about a call until it is asked about.
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
            // Agents say so too when the model's answer was cut off, or empty.
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

/// How a notice begins that codex-acp prints before every first answer for a model that it does not know.
const NOTICE: &str = "Model metadata for `";
/// Of a model's answer no first piece is so long and a whole sentence.
const NOTICE_LENGTH: usize = 40;

/// Whether a first piece is a notice by itself, which the next one does not go on with: after the end of a sentence a text
/// goes on with a space.
fn is_glued(first: &str, next: &str) -> bool {
    first.len() >= NOTICE_LENGTH
        && first.ends_with(['.', '!', '?'])
        && next.chars().next().is_some_and(char::is_alphanumeric)
}

/// How the command of a tool ended, where the agent says so although it calls the tool completed.
fn exit_code(call: &ToolCall) -> Option<i64> {
    call.raw_output["metadata"]["exit"].as_i64().or(call.raw_output["exit_code"].as_i64())
}

/// Adds a piece to a text, up to a length that nobody reads.
fn append(text: &mut String, piece: &str) {
    if text.len() + piece.len() <= MESSAGE_LIMIT {
        text.push_str(piece);
    }
}

/// What came back from a tool: what is to be shown of it, else what it printed.
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

/// The protocol has a place for them; gemini has its own.
fn tokens(end: &PromptResult) -> Option<Tokens> {
    usage(&end.usage).or_else(|| {
        let count = &end.meta["quota"]["token_count"];
        let output = count["output_tokens"].as_u64()?;
        Some(Tokens { input: count["input_tokens"].as_u64().unwrap_or(0), output })
    })
}

/// What came from a cache and what was thought may be counted apart from the rest; the sum of all tells.
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn facts_of(lines: &[Value]) -> Vec<Fact> {
        let mut decoder = AcpLines::default();
        // Another decoder that goes on with what the one before it remembered understands the same.
        let mut memory = decoder.memory().unwrap_or_default();
        let (mut facts, mut facts_of_many) = (Vec::new(), Vec::new());
        for line in lines {
            decoder.line(line.to_string().as_bytes(), &mut facts);
            let mut next = AcpLines::default();
            assert!(next.remember_all(&memory), "{memory}");
            next.line(line.to_string().as_bytes(), &mut facts_of_many);
            memory = next.memory().unwrap_or_default();
        }
        assert_eq!(facts, facts_of_many);
        facts
    }

    fn update(update: Value) -> Value {
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
    }

    fn said(text: &str) -> Value {
        update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }))
    }

    fn end_of(answer: Value) -> TurnEnd {
        let facts = facts_of(&[said("most"), said(" of it"), answer]);
        let Some(Fact::TurnEnded(end)) = facts.last() else { unreachable!("{facts:?}") };
        assert_eq!(end.text.as_deref(), Some("most of it"));
        end.clone()
    }

    #[test]
    fn only_end_turn_is_a_success_and_every_other_end_has_its_reason() {
        let ended = |reason: &str| json!({ "id": "prompt-1", "result": { "stopReason": reason } });
        assert_eq!(end_of(ended("end_turn")).verdict, Verdict::Succeeded);
        assert_eq!(end_of(ended("cancelled")).verdict, Verdict::Interrupted);
        for reason in ["refusal", "max_tokens", "max_turn_requests", "something new"] {
            let end = end_of(ended(reason));
            assert_eq!((end.verdict, end.reason.is_some()), (Verdict::Failed, true), "{reason}");
        }
        for result in [json!(null), json!({}), json!({ "stopReason": 1 }), json!([])] {
            assert_eq!(end_of(json!({ "id": "prompt-1", "result": result })).verdict, Verdict::Failed, "{result}");
        }
    }

    /// As the four agents write them.
    #[test]
    fn an_error_is_told_in_the_words_that_matter() {
        for (error, words) in [
            (json!({ "code": 400, "message": r#"{"error":{"code":400,"message":"wrong"}}"# }), "wrong"),
            (json!({ "code": -32603, "message": "Internal error: API Error: 400 wrong" }), "API Error: 400 wrong"),
            (json!({ "code": -32603, "message": "Internal error", "data": { "details": "wrong\nhere" } }), "wrong"),
            (json!({ "code": -32603, "message": "Internal error", "data": { "message": "wrong" } }), "wrong"),
            (json!({ "code": -32000, "message": "Authentication required" }), "Authentication required"),
            (json!({}), "the agent reports an error"),
        ] {
            let end = end_of(json!({ "id": "prompt-1", "error": error }));
            assert_eq!((end.verdict, end.reason.as_deref()), (Verdict::Failed, Some(words)), "{error}");
        }
    }

    #[test]
    fn what_is_told_again_of_an_earlier_run_is_not_said_in_this_one() {
        let facts = facts_of(&[
            json!({ "id": "initialize", "result": { "protocolVersion": 1 } }),
            said("before"),
            json!({ "id": "session/load", "result": null }),
            said("before as well"),
            json!({ "id": "ready", "error": { "code": -32601, "message": "Method not found" } }),
            said("now"),
            json!({ "id": "prompt-1", "result": { "stopReason": "end_turn" } }),
        ]);
        let [Fact::Owed { .. }, Fact::Opened { .. }, Fact::Saying { .. }, Fact::Said { text }, Fact::TurnEnded(_)] =
            &facts[..]
        else {
            unreachable!("{facts:?}")
        };
        assert_eq!(text, "now");
    }

    #[test]
    fn a_turn_without_an_answer_is_no_success() {
        let ended = json!({ "id": "prompt-1", "result": { "stopReason": "end_turn" } });
        let facts = facts_of(std::slice::from_ref(&ended));
        let [Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
        assert_eq!((end.verdict, end.reason.is_some()), (Verdict::Failed, true));
    }

    #[test]
    fn notices_of_the_program_are_no_part_of_the_answer() {
        let opened = |name: &str| json!({ "id": "initialize", "result": { "protocolVersion": 1, "agentInfo": { "name": name } } });
        let new = json!({ "id": "session/new", "result": { "sessionId": "s" } });
        let ended = json!({ "id": "prompt-1", "result": { "stopReason": "end_turn" } });
        let answer = |lines: &[Value]| {
            let facts = facts_of(lines);
            let Some(Fact::TurnEnded(end)) = facts.last().cloned() else { unreachable!("{facts:?}") };
            (end.verdict, end.text)
        };
        let known = said("Model metadata for `x` not found. Defaulting to fallback metadata.");
        let other = said("Heads up, you have less than a tenth of your weekly limit left.");
        let codex = [opened("codex-acp"), new.clone()];
        let after = |more: &[Value]| answer(&[&codex, more, std::slice::from_ref(&ended)].concat());
        let good = |text: &str| (Verdict::Succeeded, Some(text.to_owned()));
        assert_eq!(after(&[known.clone(), said("two"), said(" words.")]), good("two words."));
        assert_eq!(after(&[other.clone(), said("two"), said(" words.")]), good("two words."));
        assert_eq!(after(&[said("one. "), said("two")]), good("one. two"));
        assert_eq!(after(&[known]).0, Verdict::Failed, "a notice is no answer");
        let glued = answer(&[opened("another"), new, other, said("two"), ended.clone()]).1;
        assert!(glued.is_some_and(|text| text.contains("left.two")), "of an agent that nobody knows nothing is cut");
        let message = |id: &str, text: &str| {
            let content = json!({ "type": "text", "text": text });
            update(json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": content }))
        };
        let two = [message("a", "one"), message("b", "two"), message("b", " three"), ended];
        assert_eq!(answer(&two), good("two three"));
    }

    #[test]
    fn a_tool_whose_command_failed_has_failed_though_it_is_called_completed() {
        let returned = |status: &str, raw: Value| {
            let call =
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": status, "rawOutput": raw });
            let facts = facts_of(&[update(call)]);
            let Some(Fact::ToolReturned { failed, .. }) = facts.last() else { unreachable!("{facts:?}") };
            *failed
        };
        assert!(returned("completed", json!({ "output": "", "metadata": { "exit": 1 } })), "as opencode says it");
        assert!(!returned("completed", json!({ "output": "", "metadata": { "exit": 0 } })));
        assert!(!returned("completed", json!("text")));
        assert!(returned("failed", json!({ "exit_code": 0 })));
    }

    #[test]
    fn every_token_counts_once() {
        let tokens_of = |usage: Value| {
            let end = end_of(json!({ "id": "prompt-1", "result": { "stopReason": "end_turn", "usage": usage } }));
            end.tokens.map(|tokens| (tokens.input, tokens.output))
        };
        let apart = json!({ "inputTokens": 106, "outputTokens": 8, "totalTokens": 1118, "cachedReadTokens": 1000, "thoughtTokens": 4 });
        assert_eq!(tokens_of(apart), Some((1106, 12)));
        let within = json!({ "inputTokens": 1106, "outputTokens": 12, "totalTokens": 1118, "cachedReadTokens": 1000, "thoughtTokens": 4 });
        assert_eq!(tokens_of(within), Some((1106, 12)));
        assert_eq!(tokens_of(json!({ "inputTokens": 5 })), None);
    }

    #[test]
    fn one_that_tells_everything_first_is_open_with_its_answer() {
        let facts = facts_of(&[
            json!({ "id": "initialize", "result": { "protocolVersion": 1, "agentInfo": { "name": "codex-acp" } } }),
            said("before"),
            json!({ "id": "session/load", "result": {} }),
        ]);
        assert!(matches!(&facts[..], [Fact::Behind { .. }, Fact::Opened { native_id: None }]), "{facts:?}");
    }

    #[test]
    fn a_conversation_that_does_not_open_says_why() {
        let version = json!({ "id": "initialize", "result": { "protocolVersion": 2 } });
        let refused = json!({ "id": "session/new", "error": { "code": -32000, "message": "Authentication required" } });
        let nameless = json!({ "id": "session/new", "result": {} });
        for line in [version, refused, nameless] {
            let facts = facts_of(std::slice::from_ref(&line));
            assert!(matches!(&facts[..], [Fact::NotOpened { .. }]), "{line}: {facts:?}");
        }
    }

    #[test]
    fn a_tool_call_is_shown_once_with_what_is_known_when_it_runs() {
        let facts = facts_of(&[
            update(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Terminal", "kind": "execute",
                           "status": "pending", "rawInput": {} })),
            update(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "`ls -l`", "status": "pending",
                           "rawInput": { "command": "ls -l" } })),
            update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" })),
            update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
                           "rawOutput": "a file" })),
        ]);
        let call = fact::Call { id: Some("c".to_owned()), edits: Vec::new() };
        let called = Fact::ToolCalled { name: "execute".to_owned(), detail: "ls -l".to_owned(), call };
        let id = Some("c".to_owned());
        assert_eq!(facts, [called, Fact::ToolReturned { text: "a file".to_owned(), failed: false, call: id }]);
    }

    #[test]
    fn what_we_cannot_do_is_declined_and_a_question_that_is_none_too() {
        let unreadable = json!({ "toolCall": 1 });
        for (method, params) in [("fs/read_text_file", json!({})), ("session/request_permission", unreadable)] {
            let facts = facts_of(&[json!({ "id": 7, "method": method, "params": params })]);
            let [Fact::Owed { name, line }] = &facts[..] else { unreachable!("{facts:?}") };
            let line: Value = serde_json::from_slice(line).unwrap_or_default();
            assert_eq!((name.as_str(), &line["id"], &line["error"]["code"]), ("declined-7", &json!(7), &json!(-32601)));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..5)) {
            let mut facts = Vec::new();
            let mut decoder = AcpLines::default();
            lines.iter().for_each(|line| decoder.line(line, &mut facts));
        }

        #[test]
        fn fields_of_the_wrong_type_do_no_harm(
            id in r#"(1|null|"prompt-1"|"initialize"|"session/new"|"session/load"|"ready")"#,
            method in "(session/update|session/request_permission|fs/write_text_file)",
            field in "(params|result|error|id|method)",
            inner in "(update|toolCall|options|stopReason|sessionId|protocolVersion|message|data|usage|_meta)",
            kind in "(agent_message_chunk|agent_thought_chunk|tool_call|tool_call_update|plan|1)",
            value in r#"(1|"x"|\[\]|\{\}|null|true)"#,
        ) {
            let mut facts = Vec::new();
            let mut decoder = AcpLines::default();
            for line in [
                format!(r#"{{"id":{id},"{field}":{value}}}"#),
                format!(r#"{{"id":{id},"{field}":{{"{inner}":{value}}}}}"#),
                format!(r#"{{"id":{id},"method":"{method}","params":{{"{inner}":{value}}}}}"#),
                format!(r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"{kind}","content":{value}}}}}}}"#),
            ] {
                decoder.line(line.as_bytes(), &mut facts);
            }
        }
    }
}
