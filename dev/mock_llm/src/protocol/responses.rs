//! OpenAI Responses, as Codex uses it.

use super::{Answer, Name, TORN_ARGUMENTS, list, text_of, texts};
use crate::OUTPUT_TOKENS;
use crate::conversation::{Entry, Heard};
use crate::http::Event;
use serde_json::{Value, json};

pub(super) fn hear(body: &Value) -> Heard {
    let input = body.get("input").unwrap_or(&Value::Null);
    let entries = match input {
        Value::String(text) => vec![Entry::Said(text.clone())],
        _ => list(body, "input").iter().flat_map(item).collect(),
    };
    Heard {
        entries,
        native_id: body.get("prompt_cache_key").and_then(Value::as_str).map(str::to_owned),
        offers_tools: !list(body, "tools").is_empty(),
        shape: body.pointer("/text/format/schema").map(Value::to_string),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        model: text_of(body, "model"),
    }
}

fn item(item: &Value) -> Vec<Entry> {
    let role = item.get("role").and_then(Value::as_str);
    match (item.get("type").and_then(Value::as_str), role) {
        (Some("message") | None, Some("user")) => {
            texts(item.get("content").unwrap_or(&Value::Null)).into_iter().map(Entry::Said).collect()
        }
        (Some("message") | None, Some("assistant")) => vec![Entry::Answered],
        (Some("function_call" | "custom_tool_call" | "local_shell_call"), _) => vec![Entry::Answered],
        (Some("function_call_output" | "custom_tool_call_output"), _) => {
            vec![Entry::Returned(texts(item.get("output").unwrap_or(&Value::Null)).join("\n"))]
        }
        (Some(_) | None, _) => Vec::new(),
    }
}

/// The items of an answer.
fn items(name: &Name, answer: &Answer) -> Vec<Value> {
    let call = |index: usize, tool: &str, arguments: String| {
        json!({
            "type": "function_call", "id": format!("fc_{}_{index}", name.answer), "status": "completed",
            "call_id": name.call(index), "name": tool, "arguments": arguments,
        })
    };
    match answer {
        Answer::Text { pieces, .. } if pieces.is_empty() => Vec::new(),
        Answer::Text { pieces, .. } => vec![json!({
            "type": "message", "id": format!("msg_{}", name.answer), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": pieces.concat(), "annotations": []}],
        })],
        Answer::Calls(calls) => {
            calls.iter().enumerate().map(|(index, one)| call(index, &one.name, one.input.to_string())).collect()
        }
        Answer::Malformed(tool) => vec![call(0, tool, TORN_ARGUMENTS.to_owned())],
    }
}

fn response(name: &Name, status: &str, output: Vec<Value>) -> Value {
    let mut response = json!({
        "id": format!("resp_{}", name.answer), "object": "response", "created_at": 0, "status": status,
        "model": name.model, "output": output, "error": null, "incomplete_details": null,
    });
    if status == "completed" {
        response["usage"] = json!({
            "input_tokens": name.input_tokens, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": name.input_tokens + OUTPUT_TOKENS,
        });
    }
    response
}

pub(super) fn whole(name: &Name, answer: &Answer) -> Value {
    response(name, "completed", items(name, answer))
}

pub(super) fn events(name: &Name, answer: &Answer) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let mut event = |kind: &'static str, mut data: Value, paced: bool| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(events.len());
        let event = Event::new(Some(kind), &data);
        events.push(if paced { event.paced() } else { event });
    };
    let items = items(name, answer);
    event("response.created", json!({"response": response(name, "in_progress", Vec::new())}), false);
    for (index, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        match answer {
            Answer::Text { pieces, .. } => {
                begun["content"] = json!([]);
                event("response.output_item.added", json!({"output_index": index, "item": begun}), false);
                let place = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
                let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
                event("response.content_part.added", with(&place, "part", part("")), false);
                for piece in pieces {
                    event("response.output_text.delta", with(&place, "delta", json!(piece)), true);
                }
                let text = pieces.concat();
                event("response.content_part.done", with(&place, "part", part(&text)), false);
                event("response.output_text.done", with(&place, "text", json!(text)), false);
            }
            Answer::Calls(_) | Answer::Malformed(_) => {
                begun["arguments"] = json!("");
                event("response.output_item.added", json!({"output_index": index, "item": begun}), false);
                let place = json!({"item_id": item["id"], "output_index": index});
                event(
                    "response.function_call_arguments.delta",
                    with(&place, "delta", item["arguments"].clone()),
                    false,
                );
                event(
                    "response.function_call_arguments.done",
                    with(&place, "arguments", item["arguments"].clone()),
                    false,
                );
            }
        }
        event("response.output_item.done", json!({"output_index": index, "item": item}), false);
    }
    event("response.completed", json!({"response": response(name, "completed", items)}), false);
    events
}

fn with(place: &Value, name: &str, value: Value) -> Value {
    let mut data = place.clone();
    data[name] = value;
    data
}
