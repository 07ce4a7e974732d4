//! The conversation in a transcript of Gemini. It writes a message when it has come, and again when its tools have run:
//! the second time only what is new in it counts.

use super::terminal_codes;
use crate::any_json::{AnyJson, tolerantly};
use crate::content::{Content, texts};
use crate::recorded::{Items, Recorded, Recording, time};
use crate::stream_json::{ToolInput, tool_detail};
use ostler_core::fact::{Call, Fact};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    #[serde(rename = "type")]
    kind: AnyJson<'a>,
    timestamp: AnyJson<'a>,
    content: Content<'a>,
    thoughts: AnyJson<'a, Thought<'a>>,
    #[serde(rename = "toolCalls")]
    tools: AnyJson<'a, Tool<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Thought<'a> {
    #[serde(borrow)]
    subject: AnyJson<'a>,
    description: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tool<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    name: AnyJson<'a>,
    args: AnyJson<'a, ToolInput<'a>>,
    status: AnyJson<'a>,
    result: AnyJson<'a, ToolResult<'a>>,
    #[serde(rename = "resultDisplay")]
    shown: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolResult<'a> {
    #[serde(borrow, rename = "functionResponse")]
    response: AnyJson<'a, FunctionResponse<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionResponse<'a> {
    #[serde(borrow)]
    response: AnyJson<'a, Response<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    output: AnyJson<'a>,
    error: AnyJson<'a>,
}

/// Remembers what it has read of the newest message.
#[derive(Debug, Default)]
pub struct Transcript {
    message: String,
    tools: Vec<String>,
}

impl Recording for Transcript {
    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        tolerantly(line, |line| self.understand(line, items));
    }
}

impl Transcript {
    /// Returns false when the line is not a JSON object.
    fn understand(&mut self, line: &[u8], items: &mut Vec<Recorded>) -> bool {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
            return false;
        };
        let mut items = Items { at: time(&line.timestamp), items };
        let text = || texts(&line.content).map(terminal_codes::without).collect::<Vec<_>>().join("\n");
        match line.kind.text() {
            Some("user") => items.told(&text()),
            Some("gemini") => {
                let id = line.id.text_or_empty();
                if id.is_empty() || id != self.message {
                    *self = Transcript { message: id, tools: Vec::new() };
                    for thought in line.thoughts.list() {
                        let words =
                            [&thought.subject, &thought.description].map(|field| field.text().unwrap_or_default());
                        items.thought(words.join(": ").trim_matches([':', ' ']));
                    }
                    items.said(&text());
                }
                for tool in line.tools.list() {
                    let id = tool.id.text_or_empty();
                    if id.is_empty() || !self.tools.contains(&id) {
                        self.tools.push(id);
                        show(tool, &mut items);
                    }
                }
            }
            // Notices for the person that are not part of the conversation.
            Some("info" | "warning" | "error") => items.thought(&text()),
            Some(_) | None => {}
        }
        true
    }
}

fn show(tool: &Tool<'_>, items: &mut Items<'_>) {
    let name = tool.name.text().unwrap_or("tool").to_owned();
    let id = tool.id.text().map(str::to_owned);
    let call = Call { id: id.clone(), ..Call::default() };
    items.fact(Fact::ToolCalled { name, detail: tool_detail(&tool.args), call });
    let responses = tool.result.list().iter().filter_map(|result| result.response.object()?.response.object());
    let texts = responses.filter_map(|response| response.output.text().or(response.error.text()));
    let told = texts.map(printed).collect::<Vec<_>>().join("\n");
    // The model gets the exit code of a command; a person is shown what the command printed.
    let ended_well = told.lines().all(|line| line.strip_prefix("Exit Code: ").is_none_or(|code| code.trim() == "0"));
    let text = tool.shown.text().map_or(told, |shown| terminal_codes::without(shown).into_owned());
    items.fact(Fact::ToolReturned { text, failed: !(tool.status.is("success") && ended_well), call: id });
}

/// The text without the tags that gemini puts around text from outside.
fn printed(text: &str) -> String {
    let inside =
        text.trim().strip_prefix("<untrusted_context>").and_then(|rest| rest.strip_suffix("</untrusted_context>"));
    terminal_codes::without(inside.unwrap_or(text).trim()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::What;

    #[test]
    fn a_message_that_is_written_again_with_its_tools_is_told_once() {
        let mut items = Vec::new();
        let mut transcript = Transcript::default();
        for line in [
            r#"{"$set":{"messages":[{"type":"user","content":[{"text":"<session_context>"}]}]}}"#,
            r#"{"id":"1","timestamp":"2026-11-16T06:07:54.068Z","type":"user","content":[{"text":"fix it"}]}"#,
            r#"{"id":"2","type":"gemini","content":"I look","thoughts":[{"subject":"Plan","description":"look"}]}"#,
            r#"{"$set":{"lastUpdated":"2026-11-16T06:07:54.651Z"}}"#,
            r#"{"id":"2","type":"gemini","content":"I look","toolCalls":[{"id":"t","name":"run_shell_command","args":{"command":"ls"},"result":[{"functionResponse":{"response":{"output":"<untrusted_context>\nOutput: a.rs\n</untrusted_context>"}}}],"status":"success"}]}"#,
            r#"{"id":"3","type":"user","content":[{"functionResponse":{"response":{"output":"x"}}}]}"#,
            r#"{"id":"4","type":"gemini","content":"done"}"#,
        ] {
            transcript.line(line.as_bytes(), &mut items);
        }
        let whats: Vec<What> = items.into_iter().map(|item| item.what).collect();
        assert_eq!(
            whats,
            [
                What::Told { text: "fix it".to_owned() },
                What::Agent(Fact::Thought { text: "Plan: look".to_owned() }),
                What::Agent(Fact::Said { text: "I look".to_owned() }),
                What::Agent(Fact::ToolCalled {
                    name: "run_shell_command".to_owned(),
                    detail: "ls".to_owned(),
                    call: Call { id: Some("t".to_owned()), ..Call::default() }
                }),
                What::Agent(Fact::ToolReturned {
                    text: "Output: a.rs".to_owned(),
                    failed: false,
                    call: Some("t".to_owned())
                }),
                What::Agent(Fact::Said { text: "done".to_owned() }),
            ]
        );
    }
}
