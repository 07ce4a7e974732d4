//! The JSON lines of headless mode, in Claude Code's formats: incoming lines are parsed here, outgoing lines are built
//! here. Nothing in this file does I/O or decides.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::face::{Block, Content, Ending, Message, Question, Report, ToolCall, Usage, Verdict};

pub const MODEL: &str = "demo-1";

/// One line from stdin.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    User {
        uuid: Option<String>,
        text: String,
    },
    Control {
        request_id: String,
        request: Control,
    },
    Answer {
        request_id: String,
        verdict: Verdict,
    },
    /// Well-formed, but without a meaning for the agent.
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Control {
    Interrupt,
    /// Answered with success, like every request.
    Other,
}

/// Reads one line; the error says what is wrong with it.
pub fn read(line: &[u8]) -> Result<Incoming, String> {
    let line: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let Some(kind) = line["type"].as_str() else { return Err("it has no type".into()) };
    match kind {
        "user" => Ok(Incoming::User {
            uuid: line["uuid"].as_str().map(str::to_owned),
            text: prompt_text(&line["message"]["content"]).ok_or("its message has no content")?,
        }),
        "control_request" => Ok(Incoming::Control {
            request_id: line["request_id"].as_str().ok_or("it has no request_id")?.to_owned(),
            request: match line["request"]["subtype"].as_str() {
                Some("interrupt") => Control::Interrupt,
                Some(_) | None => Control::Other,
            },
        }),
        "control_response" => {
            let response = &line["response"];
            Ok(Incoming::Answer {
                request_id: response["request_id"].as_str().ok_or("its response has no request_id")?.to_owned(),
                verdict: verdict(response),
            })
        }
        _ => Ok(Incoming::Unknown),
    }
}

/// The text of a message's content: a string, or the text blocks of a list.
pub fn prompt_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            Some(texts.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Anything that is not clearly an allowance is a denial.
fn verdict(response: &Value) -> Verdict {
    let answer = &response["response"];
    if response["subtype"] == "success" && answer["behavior"] == "allow" {
        return Verdict::Allowed;
    }
    let reason = answer["message"].as_str().or(response["error"].as_str()).unwrap_or("no reason given");
    Verdict::Denied { reason: reason.to_owned() }
}

/// Builds the lines of one session.
pub struct Speaker {
    pub session: Uuid,
    pub cwd: String,
    pub asks: bool,
}

impl Speaker {
    pub fn init(&self) -> Value {
        json!({
            "type": "system",
            "subtype": "init",
            "session_id": self.session.to_string(),
            "cwd": self.cwd,
            "tools": ToolCall::NAMES,
            "mcp_servers": [],
            "model": MODEL,
            "permissionMode": if self.asks { "default" } else { "acceptEdits" },
            "apiKeySource": "none",
            "uuid": Uuid::new_v4().to_string(),
        })
    }

    pub fn words(&self, text: &str) -> Value {
        json!({
            "type": "stream_event",
            "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            "session_id": self.session.to_string(),
            "parent_tool_use_id": null,
            "uuid": Uuid::new_v4().to_string(),
        })
    }

    pub fn message(&self, message: &Message) -> Value {
        json!({
            "type": role(&message.content),
            "message": self::message(&message.content),
            "session_id": self.session.to_string(),
            "parent_tool_use_id": null,
            "uuid": message.uuid,
        })
    }

    /// The line that Claude Code prints before the end of a turn that was ended by a usage limit.
    pub fn limit(&self, resets_at: i64) -> Value {
        json!({
            "type": "rate_limit_event",
            "rate_limit_info": { "status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour" },
            "session_id": self.session.to_string(),
            "uuid": Uuid::new_v4().to_string(),
        })
    }

    pub fn result(&self, report: &Report) -> Value {
        let (subtype, reason, is_error) = match &report.ending {
            Ending::Done { .. } => ("success", "completed", false),
            Ending::Failed { .. } | Ending::Limited { .. } => ("success", "completed", true),
            Ending::Interrupted => ("error_during_execution", "aborted", true),
        };
        let denied = report.denied.iter().map(|question| {
            json!({
                "tool_name": question.call.name(),
                "tool_use_id": question.tool_use_id,
                "tool_input": input(&question.call),
            })
        });
        let mut line = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "api_error_status": null,
            "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
            "num_turns": report.rounds,
            "session_id": self.session.to_string(),
            "total_cost_usd": report.total_cost_usd,
            "usage": usage(report.usage),
            "permission_denials": denied.collect::<Vec<Value>>(),
            "terminal_reason": reason,
            "uuid": Uuid::new_v4().to_string(),
        });
        match &report.ending {
            Ending::Done { text } => line["result"] = json!(text),
            Ending::Failed { text, api_status } => {
                line["result"] = json!(text);
                line["api_error_status"] = json!(api_status);
            }
            Ending::Limited { .. } => {
                line["result"] = json!("You've hit your limit");
                line["api_error_status"] = json!(429);
            }
            // There is no `result` field, as in Claude Code.
            Ending::Interrupted => line["errors"] = json!(["the turn was interrupted"]),
        }
        line
    }
}

pub fn asks(question: &Question) -> Value {
    json!({
        "type": "control_request",
        "request_id": question.request_id,
        "request": {
            "subtype": "can_use_tool",
            "tool_name": question.call.name(),
            "input": input(&question.call),
            "description": format!("{} {}", question.call.name(), question.call.gist()),
            "permission_suggestions": [],
            "tool_use_id": question.tool_use_id,
        },
    })
}

pub fn withdraws(question: &Question) -> Value {
    json!({"type": "control_cancel_request", "request_id": question.request_id})
}

pub fn agrees(request_id: &str) -> Value {
    json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": {}},
    })
}

/// The type of the line that has a message.
pub fn role(content: &Content) -> &'static str {
    match content {
        Content::Agent { .. } => "assistant",
        Content::ToolResult { .. } | Content::Interruption => "user",
    }
}

/// The `message` of a line, the same in the stream and in the transcript.
pub fn message(content: &Content) -> Value {
    match content {
        Content::Agent { id, block, usage: used } => json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [self::block(block)],
            "usage": usage(*used),
        }),
        Content::ToolResult { tool_use_id, text, is_error } => json!({
            "role": "user",
            "content": [{
                "type": "tool_result",
                "tool_use_id": tool_use_id,
                "content": text,
                "is_error": is_error,
            }],
        }),
        Content::Interruption => json!({
            "role": "user",
            "content": [{"type": "text", "text": "[Request interrupted by user]"}],
        }),
    }
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::ToolUse { id, call } => {
            json!({"type": "tool_use", "id": id, "name": call.name(), "input": input(call)})
        }
    }
}

fn input(call: &ToolCall) -> Value {
    match call {
        ToolCall::Bash { command, description } => json!({"command": command, "description": description}),
        ToolCall::Read { file } => json!({"file_path": file.display().to_string()}),
        ToolCall::Edit { file, old, new } => {
            json!({"file_path": file.display().to_string(), "old_string": old, "new_string": new})
        }
        ToolCall::Ask { text } => json!({"text": text}),
    }
}

fn usage(usage: Usage) -> Value {
    json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_a_string_or_a_list_of_text_blocks() {
        let plain = br#"{"type":"user","uuid":"u1","message":{"role":"user","content":"hello"}}"#;
        assert_eq!(read(plain), Ok(Incoming::User { uuid: Some("u1".into()), text: "hello".into() }));
        let blocks = br#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}}"#;
        assert_eq!(read(blocks), Ok(Incoming::User { uuid: None, text: "a\nb".into() }));
    }

    #[test]
    fn half_a_line_or_a_message_without_content_is_an_error() {
        assert!(read(br#"{"type":"user","mess"#).is_err());
        assert!(read(br#"{"type":"user","message":{}}"#).is_err());
        assert!(read(br#"["user"]"#).is_err());
        assert!(read(b"hello").is_err());
    }

    #[test]
    fn what_a_newer_client_says_is_not_an_error() {
        assert_eq!(read(br#"{"type":"keep_alive"}"#), Ok(Incoming::Unknown));
        assert_eq!(
            read(br#"{"type":"control_request","request_id":"r","request":{"subtype":"set_model"}}"#),
            Ok(Incoming::Control { request_id: "r".into(), request: Control::Other })
        );
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let answer = |response: &str| {
            let line = format!(r#"{{"type":"control_response","response":{response}}}"#);
            match read(line.as_bytes()) {
                Ok(Incoming::Answer { verdict, .. }) => Some(verdict),
                Ok(Incoming::User { .. } | Incoming::Control { .. } | Incoming::Unknown) | Err(_) => None,
            }
        };
        let denied = |reason: &str| Some(Verdict::Denied { reason: reason.into() });
        assert_eq!(
            answer(r#"{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{}}}"#),
            Some(Verdict::Allowed)
        );
        assert_eq!(
            answer(r#"{"subtype":"success","request_id":"r","response":{"behavior":"deny","message":"not today"}}"#),
            denied("not today")
        );
        assert_eq!(answer(r#"{"subtype":"error","request_id":"r","error":"no handler"}"#), denied("no handler"));
        assert_eq!(answer(r#"{"subtype":"success","request_id":"r"}"#), denied("no reason given"));
    }
}
