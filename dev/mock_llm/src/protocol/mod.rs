//! The four protocols for talking to a model. Each consists of two translations: from a request to its contents, and
//! from an answer to what that protocol's clients expect, in one piece or as events. Nothing else in the crate depends
//! on the protocol.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use crate::conversation::Heard;
use crate::http::Event;
use crate::script::Call;
use serde_json::{Value, json};
use std::time::Duration;

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Gemini generateContent and streamGenerateContent.
    Gemini,
}

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Generate(Protocol),
    CountTokens(Protocol),
    Models,
    Other,
}

/// What the model answers. Text is in the pieces in which it is streamed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Text {
        pieces: Vec<String>,
        pause: Duration,
    },
    Calls(Vec<Call>),
    /// A call of this tool with incomplete arguments.
    Malformed(String),
}

/// Arguments that are not JSON.
const TORN_ARGUMENTS: &str = "{\"command\":";

impl Answer {
    pub fn say(text: impl Into<String>) -> Answer {
        Answer::Text { pieces: vec![text.into()], pause: Duration::ZERO }
    }

    pub fn pause(&self) -> Duration {
        match self {
            Answer::Text { pause, .. } => *pause,
            Answer::Calls(_) | Answer::Malformed(_) => Duration::ZERO,
        }
    }
}

/// The name of one answer. It is unique across servers too, because an agent may resume a conversation on another
/// server.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub answer: String,
    pub model: String,
    /// How many tokens the answer reports as read.
    pub input_tokens: u64,
}

impl Name {
    fn call(&self, index: usize) -> String {
        format!("call_{}_{index}", self.answer)
    }
}

/// What a request asks for, by its method and path. Base URLs differ in the part before the last one.
pub(crate) fn route(method: &str, path: &str) -> Route {
    let path = path.split('?').next().unwrap_or_default();
    if method != "POST" {
        return if path.ends_with("/models") { Route::Models } else { Route::Other };
    }
    if path.ends_with("/messages/count_tokens") {
        Route::CountTokens(Protocol::Messages)
    } else if path.ends_with("/messages") {
        Route::Generate(Protocol::Messages)
    } else if path.ends_with("/responses") {
        Route::Generate(Protocol::Responses)
    } else if path.ends_with("/chat/completions") {
        Route::Generate(Protocol::Chat)
    } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
        Route::Generate(Protocol::Gemini)
    } else if path.ends_with(":countTokens") {
        Route::CountTokens(Protocol::Gemini)
    } else {
        Route::Other
    }
}

impl Protocol {
    /// The contents of the request.
    pub(crate) fn hear(self, path: &str, headers: &[(String, String)], body: &Value) -> Heard {
        match self {
            Protocol::Messages => anthropic::hear(headers, body),
            Protocol::Responses => responses::hear(body),
            Protocol::Chat => chat::hear(headers, body),
            Protocol::Gemini => gemini::hear(path, body),
        }
    }

    /// The answer as one JSON value.
    pub(crate) fn whole(self, name: &Name, answer: &Answer) -> Value {
        match self {
            Protocol::Messages => anthropic::whole(name, answer),
            Protocol::Responses => responses::whole(name, answer),
            Protocol::Chat => chat::whole(name, answer),
            Protocol::Gemini => gemini::whole(name, answer),
        }
    }

    /// The answer as events.
    pub(crate) fn events(self, name: &Name, answer: &Answer) -> Vec<Event> {
        match self {
            Protocol::Messages => anthropic::events(name, answer),
            Protocol::Responses => responses::events(name, answer),
            Protocol::Chat => chat::events(name, answer),
            Protocol::Gemini => gemini::events(name, answer),
        }
    }

    /// The body of a failure.
    pub(crate) fn failure(self, status: u16) -> Value {
        let message = format!("scripted failure {status}");
        match self {
            Protocol::Messages => {
                let kind = match status {
                    400 => "invalid_request_error",
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    _ => "api_error",
                };
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Protocol::Responses | Protocol::Chat => {
                json!({"error": {"message": message, "type": "scripted", "param": null, "code": null}})
            }
            Protocol::Gemini => json!({"error": {"code": status, "message": message, "status": "SCRIPTED"}}),
        }
    }

    /// The body of a token count.
    pub(crate) fn token_count(self) -> Value {
        match self {
            Protocol::Messages | Protocol::Responses | Protocol::Chat => json!({"input_tokens": crate::INPUT_TOKENS}),
            Protocol::Gemini => json!({"totalTokens": crate::INPUT_TOKENS}),
        }
    }
}

/// The text of a content that is a string, or a list of parts of which some have a `text`.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).map(str::to_owned).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn list<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    body.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
