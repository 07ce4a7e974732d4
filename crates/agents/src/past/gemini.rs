//! Gemini's record of a conversation: a line per message, and once more when the message has changed (its tools have come
//! back). Lists that set all messages at once are gemini's context, or copies of what stands before.

use super::{Past, Said, called, record, returned, spoken, texts, thought};
use crate::stream_json::detail_of;
use serde_json::Value;

#[derive(Default)]
pub struct Gemini {
    /// The message of the agent's that was read last, and how many of its calls have been told.
    message: String,
    calls: usize,
}

impl Past for Gemini {
    fn line(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let line = record(line);
        match line["type"].as_str() {
            Some("user") => super::told(&texts(&line["content"]), said),
            Some("gemini") => self.of_agent(&line, said),
            Some(_) | None => {}
        }
    }
}

impl Gemini {
    fn of_agent(&mut self, line: &Value, said: &mut Vec<Said>) {
        let id = line["id"].as_str().unwrap_or_default();
        if id.is_empty() || id != self.message {
            (self.message, self.calls) = (id.to_owned(), 0);
            for one in line["thoughts"].as_array().into_iter().flatten() {
                let words = ["subject", "description"].map(|name| one[name].as_str().unwrap_or_default());
                thought(words.join(": ").trim_matches([':', ' ']), said);
            }
            spoken(&texts(&line["content"]), said);
        }
        let calls = line["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default();
        for call in calls.iter().skip(self.calls) {
            called(call["name"].as_str().unwrap_or("tool"), detail_of(&call["args"]), said);
            let status = call["status"].as_str().unwrap_or("success");
            let exit = told(call).and_then(|words| words.lines().find_map(|line| line.strip_prefix("Exit Code: ")));
            returned(result(call), status != "success" || exit.is_some_and(|code| code.trim() != "0"), said);
        }
        self.calls = self.calls.max(calls.len());
    }
}

/// What was shown of it, else what the model was told.
fn result(call: &Value) -> String {
    call["resultDisplay"].as_str().or_else(|| told(call)).unwrap_or_default().to_owned()
}

fn told(call: &Value) -> Option<&str> {
    let results = call["result"].as_array()?;
    results.iter().find_map(|one| one["functionResponse"]["response"]["output"].as_str())
}
