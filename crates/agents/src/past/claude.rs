//! Claude's transcript: a message per line, in the protocol of its model. Tools' results are messages of the user's.

use super::{Past, Said, called, record, returned, spoken, texts, thought, told};
use crate::stream_json::detail_of;
use serde_json::Value;
use std::collections::HashSet;

/// Lines hang on each other by names. In the first batch of a conversation the answer may stand above its prompt: it waits for
/// what it hangs on.
#[derive(Default)]
pub struct Claude {
    seen: HashSet<String>,
    waiting: Vec<Waiting>,
}

struct Waiting {
    line: Value,
    /// So many further lines it waits. What it hangs on may be lost.
    left: usize,
}

const PATIENCE: usize = 32;

impl Past for Claude {
    fn line(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let line = record(line);
        let parent = line["parentUuid"].as_str();
        if parent.is_some_and(|parent| !self.seen.contains(parent)) {
            self.waiting.push(Waiting { line, left: PATIENCE });
        } else {
            self.take(&line, said);
        }
        self.waiting.iter_mut().for_each(|waiting| waiting.left = waiting.left.saturating_sub(1));
        let ready = |waiting: &Waiting, seen: &HashSet<String>| {
            waiting.left == 0 || waiting.line["parentUuid"].as_str().is_none_or(|parent| seen.contains(parent))
        };
        while let Some(place) = self.waiting.iter().position(|waiting| ready(waiting, &self.seen)) {
            let waiting = self.waiting.remove(place);
            self.take(&waiting.line, said);
        }
    }

    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn finish(&mut self, said: &mut Vec<Said>) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.take(&waiting.line, said);
        }
    }
}

impl Claude {
    fn take(&mut self, line: &Value, said: &mut Vec<Said>) {
        self.seen.extend(line["uuid"].as_str().map(str::to_owned));
        let is = |flag: &str| line[flag].as_bool().unwrap_or(false);
        // What a subagent said, and what claude itself put in.
        if is("isSidechain") || is("isMeta") || is("isCompactSummary") {
            return;
        }
        let content = &line["message"]["content"];
        match (line["type"].as_str(), content) {
            (Some("user"), Value::String(text)) => told_by_person(text, said),
            (Some("user"), Value::Array(blocks)) => blocks.iter().for_each(|block| of_user(block, said)),
            (Some("assistant"), Value::Array(blocks)) => blocks.iter().for_each(|block| of_agent(block, said)),
            (Some("assistant"), Value::String(text)) => spoken(text, said),
            _ => {}
        }
    }
}

fn of_user(block: &Value, said: &mut Vec<Said>) {
    match block["type"].as_str() {
        Some("text") => told_by_person(block["text"].as_str().unwrap_or_default(), said),
        Some("tool_result") => {
            returned(texts(&block["content"]), block["is_error"].as_bool().unwrap_or(false), said);
        }
        Some(_) | None => {}
    }
}

fn of_agent(block: &Value, said: &mut Vec<Said>) {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    match block["type"].as_str() {
        Some("text") => spoken(text("text"), said),
        Some("thinking") => thought(text("thinking"), said),
        Some("tool_use") => called(text("name"), detail_of(&block["input"]), said),
        Some(_) | None => {}
    }
}

/// A command of claude's own (`/model`) is kept between marks; its output, and the note that it is no prompt, are not told.
fn told_by_person(text: &str, said: &mut Vec<Said>) {
    let between = |mark: &str| {
        let (_, rest) = text.split_once(&format!("<{mark}>"))?;
        rest.split_once(&format!("</{mark}>")).map(|(inside, _)| inside)
    };
    if let Some(command) = between("command-name") {
        let arguments = between("command-args").unwrap_or_default();
        return told(format!("{command} {arguments}").trim_end(), said);
    }
    if !text.trim_start().starts_with("<local-command-") {
        told(text, said);
    }
}
