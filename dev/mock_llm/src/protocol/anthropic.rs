//! Anthropic Messages, as Claude Code uses it.

use super::{Answer, Name, TORN_ARGUMENTS, list, text_of, texts};
use crate::OUTPUT_TOKENS;
use crate::conversation::{Entry, Heard};
use crate::http::Event;
use serde_json::{Value, json};

pub(super) fn hear(headers: &[(String, String)], body: &Value) -> Heard {
    let mut entries = Vec::new();
    for message in list(body, "messages") {
        let content = message.get("content").unwrap_or(&Value::Null);
        match message.get("role").and_then(Value::as_str) {
            Some("assistant") => entries.push(Entry::Answered),
            Some("user") => match content {
                Value::Array(blocks) => entries.extend(blocks.iter().filter_map(block)),
                other => entries.extend(texts(other).into_iter().map(Entry::Said)),
            },
            Some(_) | None => {}
        }
    }
    Heard {
        entries,
        native_id: conversation(headers, body),
        offers_tools: !list(body, "tools").is_empty(),
        shape: body
            .pointer("/output_config/format/schema")
            .or(body.pointer("/output_format/schema"))
            .map(Value::to_string),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        model: text_of(body, "model"),
    }
}

fn block(block: &Value) -> Option<Entry> {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => Some(Entry::Said(text_of(block, "text"))),
        Some("tool_result") => Some(Entry::Returned(texts(block.get("content").unwrap_or(&Value::Null)).join("\n"))),
        Some(_) | None => None,
    }
}

/// A subagent uses its parent's session id; a header distinguishes it.
fn conversation(headers: &[(String, String)], body: &Value) -> Option<String> {
    let session = session(body)?;
    match headers.iter().find(|(name, _)| name == "x-claude-code-agent-id") {
        Some((_, agent)) => Some(format!("{session}/{agent}")),
        None => Some(session),
    }
}

/// Claude Code puts its session id into the user id: as JSON, in earlier versions after `_session_`.
fn session(body: &Value) -> Option<String> {
    let user = body.pointer("/metadata/user_id")?.as_str()?;
    match serde_json::from_str::<Value>(user) {
        Ok(fields) => fields.get("session_id")?.as_str().map(str::to_owned),
        Err(_) => user.rsplit_once("_session_").map(|(_, id)| id.to_owned()),
    }
}

fn usage(name: &Name, output: u64) -> Value {
    json!({
        "input_tokens": name.input_tokens, "output_tokens": output,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    })
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer {
        Answer::Text { .. } => "end_turn",
        Answer::Calls(_) | Answer::Malformed(_) => "tool_use",
    }
}

fn message(name: &Name, content: Value, stop_reason: Value, output: u64) -> Value {
    json!({
        "id": format!("msg_{}", name.answer), "type": "message", "role": "assistant", "model": name.model,
        "content": content, "stop_reason": stop_reason, "stop_sequence": null, "usage": usage(name, output),
    })
}

pub(super) fn whole(name: &Name, answer: &Answer) -> Value {
    let content = match answer {
        Answer::Text { pieces, .. } if pieces.is_empty() => json!([]),
        Answer::Text { pieces, .. } => json!([{"type": "text", "text": pieces.concat()}]),
        Answer::Malformed(tool) => json!([{"type": "tool_use", "id": id(name, 0), "name": tool, "input": TORN_ARGUMENTS}]),
        Answer::Calls(calls) => calls
            .iter()
            .enumerate()
            .map(|(index, call)| {
                json!({"type": "tool_use", "id": id(name, index), "name": call.name, "input": call.input})
            })
            .collect(),
    };
    message(name, content, json!(stop_reason(answer)), OUTPUT_TOKENS)
}

pub(super) fn events(name: &Name, answer: &Answer) -> Vec<Event> {
    let event = |kind: &'static str, data: Value| Event::new(Some(kind), &data);
    let start = |index: usize, block: Value| {
        event("content_block_start", json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let delta = |index: usize, delta: Value| {
        event("content_block_delta", json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let stop = |index: usize| event("content_block_stop", json!({"type": "content_block_stop", "index": index}));

    let opening = message(name, json!([]), Value::Null, 1);
    let mut events = vec![event("message_start", json!({"type": "message_start", "message": opening}))];
    match answer {
        Answer::Text { pieces, .. } if pieces.is_empty() => {}
        Answer::Malformed(tool) => {
            events.push(start(0, json!({"type": "tool_use", "id": id(name, 0), "name": tool, "input": {}})));
            events.push(delta(0, json!({"type": "input_json_delta", "partial_json": TORN_ARGUMENTS})));
            events.push(stop(0));
        }
        Answer::Text { pieces, .. } => {
            events.push(start(0, json!({"type": "text", "text": ""})));
            events.extend(pieces.iter().map(|piece| delta(0, json!({"type": "text_delta", "text": piece})).paced()));
            events.push(stop(0));
        }
        Answer::Calls(calls) => {
            for (index, call) in calls.iter().enumerate() {
                events.push(start(
                    index,
                    json!({"type": "tool_use", "id": id(name, index), "name": call.name, "input": {}}),
                ));
                let input = json!({"type": "input_json_delta", "partial_json": call.input.to_string()});
                events.push(delta(index, input));
                events.push(stop(index));
            }
        }
    }
    let end = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    events.push(event(
        "message_delta",
        json!({"type": "message_delta", "delta": end, "usage": usage(name, OUTPUT_TOKENS)}),
    ));
    events.push(event("message_stop", json!({"type": "message_stop"})));
    events
}

fn id(name: &Name, index: usize) -> String {
    format!("toolu_{}", name.call(index))
}
