//! The lines of the Agent Client Protocol, both ways, and the only file that knows how they are written.
//!
//! The protocol's own crate (agent-client-protocol-schema 1.15) is not used: it brings a dozen crates along, one of its
//! features changes every JSON map of whatever links it, and a keeper needs eight kinds of line. What holds us to the
//! protocol is that four real agents are kept by it in the tests.
//!
//! What is read is lenient: agents are ahead of the protocol and behind it. An unknown field is ignored, an unknown kind
//! is a case of its own, and whatever an agent may write at will is kept as it came.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The version of the protocol that we speak.
pub const VERSION: u64 = 1;

/// Our names for what we ask at the beginning. The answer carries the name.
pub const INITIALIZE: &str = "initialize";
pub const NEW: &str = "session/new";
pub const LOAD: &str = "session/load";
pub const READY: &str = "ready";
/// What the names of our messages begin with.
const PROMPT: &str = "prompt-";

/// One line of an agent: something it asks of us, tells us, or answers.
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

/// Why something that we asked for was not done.
#[derive(Debug, Deserialize)]
pub struct Failure {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Value,
}

impl Failure {
    /// In one line. Agents put "Internal error" in front, or the words that matter into the details.
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

/// What happens in a turn.
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
    /// Plans, modes, commands, how full the context is, what was said to the agent: nothing that changes a session.
    #[serde(other)]
    Other,
}

/// A tool call, whole or as far as it has changed.
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
    /// The same with what a later word adds or changes. An empty input is one that is not told yet.
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

/// What an agent wants leave for, and which answers it offers.
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

/// The opening: who we are and that we do nothing for the agent but ask people, then the conversation.
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

/// A question that no agent understands, which is answered after everything that was said before it.
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

/// The answer to a request for leave; `None`: nobody chose.
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
