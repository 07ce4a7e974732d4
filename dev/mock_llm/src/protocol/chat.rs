//! OpenAI Chat Completions, as opencode uses it with a provider of its `openai-compatible` kind.

use super::{Answer, Name, TORN_ARGUMENTS, list, text_of, texts};
use crate::OUTPUT_TOKENS;
use crate::conversation::{Entry, Heard};
use crate::http::Event;
use serde_json::{Value, json};

pub(super) fn hear(headers: &[(String, String)], body: &Value) -> Heard {
    let mut entries = Vec::new();
    for message in list(body, "messages") {
        let texts = texts(message.get("content").unwrap_or(&Value::Null));
        match message.get("role").and_then(Value::as_str) {
            Some("user") => entries.extend(texts.into_iter().map(|text| Entry::Said(unquoted(text)))),
            Some("assistant") => entries.push(Entry::Answered),
            Some("tool") => entries.push(Entry::Returned(texts.join("\n"))),
            Some(_) | None => {}
        }
    }
    Heard {
        entries,
        native_id: headers.iter().find(|(name, _)| SESSION_HEADERS.contains(&name.as_str())).map(|(_, id)| id.clone()),
        offers_tools: !list(body, "tools").is_empty(),
        shape: body.pointer("/response_format/json_schema/schema").map(Value::to_string),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        model: text_of(body, "model"),
    }
}

/// The protocol itself has no name for a conversation; opencode's requests have one in a header.
const SESSION_HEADERS: [&str; 2] = ["x-opencode-session", "x-session-affinity"];

/// `opencode run` puts a prompt with blanks into quotes, as for a shell. This undoes exactly that.
fn unquoted(text: String) -> String {
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\""),
        None => text,
    }
}

fn usage(name: &Name) -> Value {
    json!({
        "prompt_tokens": name.input_tokens, "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": name.input_tokens + OUTPUT_TOKENS,
    })
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer {
        Answer::Text { .. } => "stop",
        Answer::Calls(_) | Answer::Malformed(_) => "tool_calls",
    }
}

fn calls(name: &Name, answer: &Answer) -> Vec<Value> {
    let calls = match answer {
        Answer::Text { .. } => Vec::new(),
        Answer::Calls(calls) => calls.iter().map(|call| (&call.name, call.input.to_string())).collect(),
        Answer::Malformed(tool) => vec![(tool, TORN_ARGUMENTS.to_owned())],
    };
    calls
        .into_iter()
        .enumerate()
        .map(|(index, (tool, arguments))| {
            let function = json!({"name": tool, "arguments": arguments});
            json!({"index": index, "id": name.call(index), "type": "function", "function": function})
        })
        .collect()
}

fn envelope(name: &Name, object: &str) -> Value {
    json!({"id": format!("chatcmpl-{}", name.answer), "object": object, "created": 0, "model": name.model})
}

pub(super) fn whole(name: &Name, answer: &Answer) -> Value {
    let message = match answer {
        Answer::Text { pieces, .. } => json!({"role": "assistant", "content": pieces.concat()}),
        Answer::Calls(_) | Answer::Malformed(_) => {
            json!({"role": "assistant", "content": null, "tool_calls": calls(name, answer)})
        }
    };
    let mut whole = envelope(name, "chat.completion");
    whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish_reason(answer)}]);
    whole["usage"] = usage(name);
    whole
}

pub(super) fn events(name: &Name, answer: &Answer) -> Vec<Event> {
    let chunk = |delta: Value, finish: Value| {
        let mut chunk = envelope(name, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        chunk
    };
    let mut events = vec![Event::new(None, &chunk(json!({"role": "assistant", "content": ""}), Value::Null))];
    match answer {
        Answer::Text { pieces, .. } => events.extend(
            pieces.iter().map(|piece| Event::new(None, &chunk(json!({"content": piece}), Value::Null)).paced()),
        ),
        Answer::Calls(_) | Answer::Malformed(_) => {
            events.push(Event::new(None, &chunk(json!({"tool_calls": calls(name, answer)}), Value::Null)));
        }
    }
    events.push(Event::new(None, &chunk(json!({}), json!(finish_reason(answer)))));
    let mut last = envelope(name, "chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage(name);
    events.push(Event::new(None, &last));
    events.push(Event { name: None, data: "[DONE]".to_owned(), paced: false });
    events
}
