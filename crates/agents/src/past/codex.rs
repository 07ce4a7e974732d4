//! Codex's rollout: what went to the model and came from it (`response_item`), and between that what happened
//! (`event_msg`). A person's words are taken from the events: to the model go instructions of codex's own as well.

use super::{Past, Said, called, record, returned, spoken, texts, thought, told};
use crate::stream_json::detail_of;
use serde_json::Value;

#[derive(Default)]
pub struct Codex {
    /// Which of the two events has told: older versions write `user_message`, some write both.
    by_item: Option<bool>,
}

impl Past for Codex {
    fn line(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let line = record(line);
        let payload = &line["payload"];
        match (line["type"].as_str(), payload["type"].as_str()) {
            (Some("event_msg"), Some(kind)) => {
                // Asked only for words of a person: the first of these decides.
                let mut counts = |by_item: bool| *self.by_item.get_or_insert(by_item) == by_item;
                match kind {
                    "user_message" if counts(false) => told(payload["message"].as_str().unwrap_or_default(), said),
                    "item_completed" if payload["item"]["type"] == "UserMessage" && counts(true) => {
                        told(&texts(&payload["item"]["content"]), said);
                    }
                    _ => {}
                }
            }
            (Some("response_item"), Some(kind)) => of_agent(kind, payload, said),
            _ => {}
        }
    }
}

fn of_agent(kind: &str, payload: &Value, said: &mut Vec<Said>) {
    let text = |name: &str| payload[name].as_str().unwrap_or_default();
    match kind {
        "message" if payload["role"] == "assistant" => spoken(&texts(&payload["content"]), said),
        "reasoning" => thought(&texts(&payload["summary"]), said),
        "function_call" => {
            let arguments = serde_json::from_str(text("arguments")).unwrap_or_default();
            called(text("name"), detail(&arguments), said);
        }
        "custom_tool_call" => called(text("name"), first_line(text("input")), said),
        "local_shell_call" => called("shell", detail(&payload["action"]), said),
        "function_call_output" | "custom_tool_call_output" => {
            let output = &payload["output"];
            let words = output.as_str().or(output["content"].as_str()).map_or_else(|| texts(output), str::to_owned);
            let failed = output["success"] == false || exit_code(&words).is_some_and(|code| code != 0);
            returned(words, failed, said);
        }
        _ => {}
    }
}

/// The command, as a text or as its words.
fn detail(arguments: &Value) -> String {
    let command = ["cmd", "command"].into_iter().find_map(|name| match &arguments[name] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        _ => None,
    });
    command.map_or_else(|| detail_of(arguments), |command| first_line(&command))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// `Process exited with code 3`, above the output of a command.
fn exit_code(output: &str) -> Option<i32> {
    let line = output.lines().take(6).find_map(|line| line.strip_prefix("Process exited with code "))?;
    line.trim().parse().ok()
}
