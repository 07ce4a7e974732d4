//! The conversation in a transcript of Codex.

use crate::any_json::{AnyJson, tolerantly};
use crate::content::{Content, texts};
use crate::recorded::{Items, Recorded, Recording, time};
use crate::stream_json::{detail_of, first_line};
use ostler_core::fact::{Call, Fact};
use serde::Deserialize;
use serde_json::Value;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    timestamp: AnyJson<'a>,
    payload: AnyJson<'a, Payload<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    role: AnyJson<'a>,
    content: Content<'a>,
    summary: Content<'a>,
    name: AnyJson<'a>,
    call_id: AnyJson<'a>,
    /// JSON in a text.
    arguments: AnyJson<'a>,
    input: AnyJson<'a>,
    output: Content<'a>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    metadata: AnyJson<'a, Metadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow, rename = "content_item_metadata")]
    items: AnyJson<'a, ItemMetadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ItemMetadata<'a> {
    #[serde(borrow)]
    provenance: AnyJson<'a, Provenance<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Provenance<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
}

#[derive(Debug, Default)]
pub struct Transcript;

impl Recording for Transcript {
    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        tolerantly(line, |line| understand(line, items));
    }
}

/// Returns false when the line is not a JSON object.
fn understand(line: &[u8], items: &mut Vec<Recorded>) -> bool {
    let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
        return false;
    };
    let mut items = Items { at: time(&line.timestamp), items };
    let Some(payload) = line.payload.object() else {
        return true;
    };
    let joined = |content: &Content<'_>| texts(content).collect::<Vec<_>>().join("\n");
    match (line.kind.text(), payload.kind.text()) {
        (Some("response_item"), Some("message")) if payload.role.is("assistant") => {
            items.said(&joined(&payload.content))
        }
        (Some("response_item"), Some("message")) if payload.role.is("user") && is_of_person(payload) => {
            items.told(&joined(&payload.content));
        }
        (Some("response_item"), Some("reasoning")) => items.thought(&joined(&payload.summary)),
        (Some("response_item"), Some("function_call" | "custom_tool_call")) => items.fact(called(payload)),
        (Some("response_item"), Some("function_call_output" | "custom_tool_call_output")) => {
            items.fact(returned(&joined(&payload.output), payload));
        }
        (Some("event_msg"), Some("turn_aborted")) => items.interrupted(),
        (_, _) => {}
    }
    true
}

/// Codex sends its model the folder and the date as messages of the user. Newer versions mark the author of a message.
fn is_of_person(payload: &Payload<'_>) -> bool {
    let noted = payload.metadata.object().map(|metadata| metadata.items.list()).unwrap_or_default();
    let mut sources = noted.iter().filter_map(|item| item.provenance.object()).peekable();
    if sources.peek().is_some() {
        return sources.any(|source| source.kind.is("user"));
    }
    let first = texts(&payload.content).next().unwrap_or_default();
    !["<environment_context>", "<user_instructions>", "# AGENTS.md instructions"]
        .iter()
        .any(|tag| first.starts_with(tag))
}

fn called(payload: &Payload<'_>) -> Fact {
    let name = payload.name.text().unwrap_or("tool").to_owned();
    let arguments = payload.arguments.text().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let command = arguments.as_ref().and_then(|arguments| match &arguments["cmd"] {
        Value::String(command) => Some(first_line(command)),
        _ => None,
    });
    let detail = command
        .or_else(|| arguments.as_ref().map(detail_of).filter(|detail| !detail.is_empty()))
        .or_else(|| payload.input.text().map(patched))
        .or_else(|| payload.arguments.text().map(first_line))
        .unwrap_or_default();
    Fact::ToolCalled { name, detail, call: Call { id: payload.call_id.text().map(str::to_owned), ..Call::default() } }
}

/// For a patch the files that it changes, for any other text its first line.
fn patched(text: &str) -> String {
    let files = text.lines().filter_map(|line| line.strip_prefix("*** ")?.split_once(" File: ").map(|(_, file)| file));
    let files = files.collect::<Vec<_>>().join(", ");
    if files.is_empty() { first_line(text) } else { files }
}

/// The output of a command comes after codex's own notes about it for its model.
fn returned(output: &str, payload: &Payload<'_>) -> Fact {
    let (about, text) = match output.split_once("\nOutput:\n") {
        Some((about, text)) => (about, text),
        None => ("", output),
    };
    let failed =
        about.lines().filter_map(|line| line.strip_prefix("Process exited with code ")).any(|code| code != "0");
    Fact::ToolReturned { text: text.to_owned(), failed, call: payload.call_id.text().map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::What;

    #[test]
    fn a_turn_is_read_without_what_codex_tells_its_model_by_itself() {
        let mut items = Vec::new();
        let lines = [
            r#"{"timestamp":"2026-11-16T06:07:45Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"skills"}]}}"#,
            r#"{"timestamp":"2026-11-16T06:07:45Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"<environment_context>"}]}}"#,
            r#"{"timestamp":"2026-11-16T06:07:45Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"context"}],"internal_chat_message_metadata_passthrough":{"content_item_metadata":[{"provenance":{"type":"harness"}}]}}}"#,
            r#"{"timestamp":"2026-11-16T06:07:46Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"text":"fix it"}],"internal_chat_message_metadata_passthrough":{"content_item_metadata":[{"provenance":{"type":"user"}}]}}}"#,
            r#"{"timestamp":"2026-11-16T06:07:46Z","type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage"}}}"#,
            r#"{"timestamp":"2026-11-16T06:07:47Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\\nx\"}"}}"#,
            r#"{"timestamp":"2026-11-16T06:07:47Z","type":"response_item","payload":{"type":"function_call_output","output":"Chunk ID: 1\nProcess exited with code 2\nOutput:\nno\n"}}"#,
            r#"{"timestamp":"2026-11-16T06:07:48Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: b.rs\n"}}"#,
            r#"{"timestamp":"2026-11-16T06:07:49Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"done"}]}}"#,
        ];
        for line in lines {
            Transcript.line(line.as_bytes(), &mut items);
        }
        let whats: Vec<What> = items.into_iter().map(|item| item.what).collect();
        let called = |name: &str, detail: &str| {
            What::Agent(Fact::ToolCalled { name: name.to_owned(), detail: detail.to_owned(), call: Call::default() })
        };
        assert_eq!(
            whats,
            [
                What::Told { text: "fix it".to_owned() },
                called("exec_command", "ls"),
                What::Agent(Fact::ToolReturned { text: "no\n".to_owned(), failed: true, call: None }),
                called("apply_patch", "a.rs, b.rs"),
                What::Agent(Fact::Said { text: "done".to_owned() }),
            ]
        );
    }
}
