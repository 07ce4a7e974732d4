//! opencode keeps conversations as rows of a database; a record of one is made of these, a line per part of a message.

use super::{Past, Said, called, record, returned, spoken, thought, told};
use crate::stream_json::detail_of;
use serde_json::{Value, json};

pub struct Opencode;

/// A line of such a record, from what opencode wrote about the message and about the part.
#[must_use]
pub fn row(message: &[u8], part: &[u8]) -> Vec<u8> {
    let mut line = json!({ "role": record(message)["role"], "part": record(part) }).to_string().into_bytes();
    line.push(b'\n');
    line
}

impl Past for Opencode {
    fn line(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let line = record(line);
        let part = &line["part"];
        let text = |name: &str| part[name].as_str().unwrap_or_default();
        match (line["role"].as_str(), part["type"].as_str()) {
            // A text that nobody wrote: what opencode tells its model by itself.
            (_, Some("text")) if part["synthetic"] == true => {}
            (Some("user"), Some("text")) => told(text("text"), said),
            (Some("assistant"), Some("text")) => spoken(text("text"), said),
            (Some("assistant"), Some("reasoning")) => thought(text("text"), said),
            (Some("assistant"), Some("tool")) => tool(text("tool"), &part["state"], said),
            _ => {}
        }
    }
}

fn tool(name: &str, state: &Value, said: &mut Vec<Said>) {
    called(name, detail_of(&state["input"]), said);
    let failed = state["status"] == "error" || state["metadata"]["exit"].as_i64().is_some_and(|code| code != 0);
    if let Some(text) = state["output"].as_str().or(state["error"].as_str()) {
        returned(text.to_owned(), failed, said);
    }
}
