//! Qwen's transcript: a tree of records, of which `user`, `assistant` and `tool_result` have a message made of parts;
//! `system` records are about the program itself.

use crate::any_json::{AnyJson, tolerantly};
use crate::recorded::{Items, Recorded, Recording, time};
use crate::stream_json::{ToolInput, tool_detail, tool_edits};
use ostler_core::fact::{Call, Fact};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    timestamp: AnyJson<'a>,
    message: AnyJson<'a, Message<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    parts: AnyJson<'a, Part<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: AnyJson<'a>,
    thought: AnyJson<'a>,
    function_call: AnyJson<'a, FunctionCall<'a>>,
    function_response: AnyJson<'a, FunctionResponse<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    name: AnyJson<'a>,
    args: AnyJson<'a, ToolInput<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionResponse<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    response: AnyJson<'a, Response<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    output: AnyJson<'a>,
    error: AnyJson<'a>,
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Option<Line<'a>> {
        serde_json::from_slice(line).ok()
    }

    fn parts(&self) -> &[Part<'a>] {
        self.message.object().map_or(&[], |message| message.parts.list())
    }

    /// The texts of the message, without thoughts.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts().iter().filter(|part| part.thought.flag() != Some(true)).filter_map(|part| part.text.text())
    }
}

pub fn is_message(line: &[u8]) -> bool {
    Line::read(line).is_some_and(|line| line.kind.is("user") || line.kind.is("assistant"))
}

pub fn said_in(line: &[u8]) -> Option<String> {
    let line = Line::read(line).filter(|line| line.kind.is("assistant"))?;
    Some(line.texts().collect::<Vec<_>>().join("\n")).filter(|text| !text.trim().is_empty())
}

/// Removes from `wanted` the texts of this line.
pub fn remove_found(line: &[u8], wanted: &mut Vec<&str>) {
    tolerantly(line, |line| {
        let Some(line) = Line::read(line) else {
            return false;
        };
        for text in line.texts() {
            if let Some(found) = wanted.iter().position(|mark| mark.trim() == text.trim()) {
                wanted.remove(found);
            }
        }
        true
    });
}

#[derive(Debug)]
pub struct Transcript;

impl Recording for Transcript {
    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        tolerantly(line, |line| {
            let Some(line) = Line::read(line) else {
                return false;
            };
            let mut items = Items { at: time(&line.timestamp), items };
            match line.kind.text() {
                Some("user") => items.told(&line.texts().collect::<Vec<_>>().join("\n")),
                Some("assistant") => line.parts().iter().for_each(|part| said(part, &mut items)),
                Some("tool_result") => line.parts().iter().for_each(|part| returned(part, &mut items)),
                Some(_) | None => {}
            }
            true
        });
    }
}

fn said(part: &Part<'_>, items: &mut Items<'_>) {
    if let Some(text) = part.text.text() {
        if part.thought.flag() == Some(true) { items.thought(text) } else { items.said(text) }
    }
    if let Some(call) = part.function_call.object() {
        items.fact(Fact::ToolCalled {
            name: call.name.text().unwrap_or("tool").to_owned(),
            detail: tool_detail(&call.args),
            call: Call { id: call.id.text().map(str::to_owned), edits: tool_edits(&call.args) },
        });
    }
}

fn returned(part: &Part<'_>, items: &mut Items<'_>) {
    let Some(returned) = part.function_response.object() else { return };
    let response = returned.response.object();
    let error = response.and_then(|response| response.error.text());
    let text = error.or(response.and_then(|response| response.output.text())).unwrap_or_default().to_owned();
    let call = returned.id.text().map(str::to_owned);
    items.fact(Fact::ToolReturned { text, failed: error.is_some(), call });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::What;

    #[test]
    fn what_was_told_said_and_done_is_read_and_what_the_program_notes_is_not() {
        let mut items = Vec::new();
        for line in [
            r#"{"type":"user","timestamp":"2026-11-16T09:56:36.572Z","message":{"role":"user","parts":[{"text":"fix it"}]}}"#,
            r#"{"type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"response_text":"I look"}}}"#,
            r#"{"type":"assistant","message":{"role":"model","parts":[{"text":"Hm.","thought":true},{"text":"I look"},{"functionCall":{"id":"c","name":"run_shell_command","args":{"command":"ls"}}}]}}"#,
            r#"{"type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"run_shell_command","response":{"output":"a.rs"}}}]}}"#,
            r#"{"type":"assistant","message":{"role":"model","parts":[{"text":"done"}]}}"#,
        ] {
            Transcript.line(line.as_bytes(), &mut items);
        }
        let id = Some("c".to_owned());
        let expected = [
            What::Told { text: "fix it".to_owned() },
            What::Agent(Fact::Thought { text: "Hm.".to_owned() }),
            What::Agent(Fact::Said { text: "I look".to_owned() }),
            What::Agent(Fact::ToolCalled {
                name: "run_shell_command".to_owned(),
                detail: "ls".to_owned(),
                call: Call { id: id.clone(), ..Call::default() },
            }),
            What::Agent(Fact::ToolReturned { text: "a.rs".to_owned(), failed: false, call: id }),
            What::Agent(Fact::Said { text: "done".to_owned() }),
        ];
        assert_eq!(items.into_iter().map(|item| item.what).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_text_is_found_in_its_record_and_not_in_what_the_program_notes() {
        let holds = |line: &str| {
            let mut wanted = vec!["hello there"];
            remove_found(line.as_bytes(), &mut wanted);
            wanted.is_empty()
        };
        assert!(holds(r#"{"type":"assistant","message":{"parts":[{"text":"hello there\n"}]}}"#));
        assert!(!holds(r#"{"type":"system","systemPayload":{"uiEvent":{"response_text":"hello there"}}}"#));
        assert!(!holds(r#"{"type":"assistant","message":{"parts":[{"text":"hello there","thought":true}]}}"#));
    }
}
