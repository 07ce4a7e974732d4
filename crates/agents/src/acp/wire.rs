//! The lines of the Agent Client Protocol, in both directions. Only this file knows their syntax.
//!
//! The protocol's own crate (agent-client-protocol-schema 1.15) is not used: it brings a dozen crates, one of its
//! features changes every JSON map of the program that links it, and a keeper needs eight kinds of line. Tests with
//! four real agents check that we follow the protocol.
//!
//! Reading is lenient: agents are ahead of the protocol and behind it. An unknown field is ignored, an unknown kind is
//! a case of its own, and a value that an agent may choose freely is kept unchanged.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of the protocol that we speak.
pub const VERSION: u64 = 1;

/// Our ids for the requests at the beginning. The answer carries the id.
pub const INITIALIZE: &str = "initialize";
pub const NEW: &str = "session/new";
pub const LOAD: &str = "session/load";
pub const READY: &str = "ready";
/// The prefix of the ids of our messages.
const PROMPT: &str = "prompt-";

/// One line of an agent: a request, a notification or an answer.
#[derive(Debug, Deserialize)]
pub struct Line {
    #[serde(default)]
    pub id: Option<Value>,
    #[serde(default)]
    pub method: Option<String>,
    #[serde(default)]
    pub params: Value,
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    pub error: Option<Failure>,
}

/// Why a request of ours was not carried out.
#[derive(Debug, Deserialize)]
pub struct Failure {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Value,
}

impl Failure {
    /// The reason in one line. Agents put "Internal error" in front, or put the useful text into the details.
    pub fn reason(&self) -> String {
        let details = self.data["details"].as_str().or(self.data["message"].as_str()).or(self.data.as_str());
        let words = match self.message.strip_prefix("Internal error") {
            Some(rest) => Some(rest.trim_start_matches(':').trim()).filter(|rest| !rest.is_empty()).or(details),
            None => Some(self.message.as_str()),
        };
        crate::codex::reason(words.filter(|words| !words.is_empty()).unwrap_or("the agent reports an error"))
    }
}

/// Which of our questions an answer is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Question {
    Initialize,
    New,
    Load,
    Ready,
    Prompt,
}

impl Question {
    pub fn of(id: &Value) -> Option<Question> {
        match id.as_str()? {
            INITIALIZE => Some(Question::Initialize),
            NEW => Some(Question::New),
            LOAD => Some(Question::Load),
            READY => Some(Question::Ready),
            other if other.starts_with(PROMPT) => Some(Question::Prompt),
            _ => None,
        }
    }
}

/// An event in a turn.
#[derive(Debug, Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub enum Happening {
    #[serde(rename_all = "camelCase")]
    AgentMessageChunk {
        content: Value,
        #[serde(default)]
        message_id: Option<String>,
    },
    AgentThoughtChunk {
        content: Value,
    },
    #[serde(rename_all = "camelCase")]
    UserMessageChunk {
        content: Value,
        #[serde(default)]
        message_id: Option<String>,
    },
    ToolCall(ToolCall),
    ToolCallUpdate(ToolCall),
    /// Plans, modes, commands, how full the context is, messages to the agent: nothing that changes a session.
    #[serde(other)]
    Other,
}

/// A tool call, complete or only what has changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolCall {
    pub tool_call_id: String,
    pub name: Option<String>,
    pub title: Option<String>,
    pub kind: Option<String>,
    pub status: Option<Status>,
    pub content: Value,
    pub locations: Value,
    pub raw_input: Value,
    pub raw_output: Value,
    #[serde(rename = "_meta")]
    pub meta: Value,
}

impl ToolCall {
    /// The call with what a later line adds or changes. An empty input means that it was not reported yet.
    #[must_use]
    pub fn and(self, later: ToolCall) -> ToolCall {
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::String(_) | Value::Number(_) | Value::Bool(_) => false,
        };
        let newer = |old: Value, new: Value| if is_empty(&new) && !is_empty(&old) { old } else { new };
        ToolCall {
            title: later.title.or(self.title),
            kind: later.kind.or(self.kind),
            content: newer(self.content, later.content),
            locations: newer(self.locations, later.locations),
            raw_input: newer(self.raw_input, later.raw_input),
            tool_call_id: later.tool_call_id,
            name: later.name.or(self.name),
            status: later.status,
            raw_output: later.raw_output,
            meta: later.meta,
        }
    }

    /// What is shown of the call besides its input.
    #[must_use]
    pub fn details(&self) -> Value {
        let mut details = json!({});
        let title = self.title.as_deref().map(Value::from);
        let kind = self.kind.as_deref().map(Value::from);
        let shown = [("content", &self.content), ("locations", &self.locations)];
        let shown = shown.into_iter().filter(|(_, value)| value.is_array()).map(|(name, value)| (name, value.clone()));
        for (name, value) in
            title.map(|title| ("title", title)).into_iter().chain(kind.map(|kind| ("kind", kind))).chain(shown)
        {
            details[name] = value;
        }
        details
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    Failed,
    #[serde(other)]
    Other,
}

/// What an agent asks permission for, and which answers it offers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    pub tool_call: ToolCall,
    #[serde(default)]
    pub options: Value,
}

/// How a turn ended.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    pub stop_reason: String,
    #[serde(default)]
    pub usage: Value,
    #[serde(rename = "_meta", default)]
    pub meta: Value,
}

/// The opening: our name, that we do nothing for the agent except ask people, and then the conversation.
pub fn opening(cwd: &str, resume: Option<&str>) -> Vec<u8> {
    let client = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    let mut bytes = request(
        INITIALIZE,
        "initialize",
        &json!({
            "protocolVersion": VERSION,
            "clientCapabilities": client,
            "clientInfo": { "name": "ostler", "version": env!("CARGO_PKG_VERSION") },
        }),
    );
    bytes.extend(match resume {
        None => request(NEW, "session/new", &json!({ "cwd": cwd, "mcpServers": [] })),
        Some(id) => request(LOAD, "session/load", &json!({ "sessionId": id, "cwd": cwd, "mcpServers": [] })),
    });
    bytes
}

/// A question that no agent understands. It is answered after everything that was sent before it.
pub fn ready() -> Vec<u8> {
    request(READY, "_ostler/ready", &json!({}))
}

pub fn prompt(native_id: &str, id: &str, text: &str) -> Vec<u8> {
    let prompt = json!({ "sessionId": native_id, "prompt": [{ "type": "text", "text": text }] });
    request(&format!("{PROMPT}{id}"), "session/prompt", &prompt)
}

pub fn cancel(native_id: &str) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": native_id } }))
}

/// The answer to a request for permission; `None`: no option was chosen.
pub fn permission(request: &Value, option: Option<&Value>) -> Vec<u8> {
    let outcome = match option {
        Some(option) => json!({ "outcome": "selected", "optionId": option }),
        None => json!({ "outcome": "cancelled" }),
    };
    line(&json!({ "jsonrpc": "2.0", "id": request, "result": { "outcome": outcome } }))
}

/// The answer to a request for something that we said we cannot do.
pub fn method_not_found(request: &Value, method: &str) -> Vec<u8> {
    let error = json!({ "code": -32601, "message": format!("ostler does not support {method}") });
    line(&json!({ "jsonrpc": "2.0", "id": request, "error": error }))
}

fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}
