//! Gemini `generateContent`, as the Gemini CLI uses it.

use super::{Answer, Name, TORN_ARGUMENTS, list};
use crate::OUTPUT_TOKENS;
use crate::conversation::{Entry, Heard};
use crate::http::Event;
use serde_json::{Value, json};

pub(super) fn hear(path: &str, body: &Value) -> Heard {
    let mut entries = Vec::new();
    for content in list(body, "contents") {
        let from_model = content.get("role").and_then(Value::as_str) == Some("model");
        for part in list(content, "parts") {
            if from_model {
                entries.push(Entry::Answered);
            } else if let Some(result) = part.get("functionResponse") {
                entries.push(Entry::Returned(result.get("response").unwrap_or(&Value::Null).to_string()));
            } else if let Some(text) = part.get("text").and_then(Value::as_str) {
                entries.push(Entry::Said(text.to_owned()));
            }
        }
    }
    let wanted = body.get("generationConfig").unwrap_or(&Value::Null);
    let shape = wanted.get("responseJsonSchema").or(wanted.get("responseSchema")).map(Value::to_string);
    let (before, verb) = path.rsplit_once(':').unwrap_or((path, ""));
    Heard {
        entries,
        native_id: None,
        offers_tools: list(body, "tools").iter().any(|tool| !list(tool, "functionDeclarations").is_empty()),
        // JSON without a schema is not free text either.
        shape: shape.or_else(|| {
            wanted.get("responseMimeType").filter(|kind| *kind == "application/json").map(|_| "{}".to_owned())
        }),
        streams: verb.starts_with("streamGenerateContent"),
        model: before.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

fn chunk(name: &Name, parts: Value, last: bool) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    let mut chunk = json!({"responseId": name.answer, "modelVersion": name.model});
    if last {
        candidate["finishReason"] = json!("STOP");
        chunk["usageMetadata"] = json!({
            "promptTokenCount": name.input_tokens, "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": name.input_tokens + OUTPUT_TOKENS,
        });
    }
    chunk["candidates"] = json!([candidate]);
    chunk
}

fn calls(answer: &Answer) -> Vec<Value> {
    match answer {
        Answer::Text { .. } | Answer::Malformed(_) => Vec::new(),
        Answer::Calls(calls) => {
            calls.iter().map(|call| json!({"functionCall": {"name": call.name, "args": call.input}})).collect()
        }
    }
}

pub(super) fn whole(name: &Name, answer: &Answer) -> Value {
    match answer {
        Answer::Text { pieces, .. } if pieces.is_empty() => chunk(name, json!([]), true),
        Answer::Text { pieces, .. } => chunk(name, json!([{"text": pieces.concat()}]), true),
        Answer::Calls(_) => chunk(name, json!(calls(answer)), true),
        Answer::Malformed(tool) => {
            let mut chunk = chunk(name, json!([]), true);
            // Arguments are not text in this protocol: its server parses them and reports what it could not parse.
            chunk["candidates"][0]["finishReason"] = json!("MALFORMED_FUNCTION_CALL");
            chunk["candidates"][0]["finishMessage"] =
                json!(format!("Malformed function call: {tool}({TORN_ARGUMENTS}"));
            chunk
        }
    }
}

pub(super) fn events(name: &Name, answer: &Answer) -> Vec<Event> {
    match answer {
        Answer::Text { pieces, .. } if !pieces.is_empty() => {
            let count = pieces.len();
            let piece = |(index, piece): (usize, &String)| {
                Event::new(None, &chunk(name, json!([{"text": piece}]), index + 1 == count)).paced()
            };
            pieces.iter().enumerate().map(piece).collect()
        }
        Answer::Text { .. } | Answer::Calls(_) | Answer::Malformed(_) => vec![Event::new(None, &whole(name, answer))],
    }
}
