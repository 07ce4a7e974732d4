//! What an agent's own record of a conversation says, line by line: for people who read what was said before ostler kept it.
//!
//! Not for proofs: lines that nobody wrote to anybody (context, counts, hooks) are left out, and a line that cannot be
//! read says nothing.

mod claude;
mod codex;
mod gemini;
mod opencode;

pub use claude::Claude;
pub use codex::Codex;
pub use gemini::Gemini;
pub use opencode::{Opencode, row};

use crate::lines::{Line, Lines};
use ostler_core::fact::{Call, Fact};
use serde_json::Value;

/// One thing in a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Somebody told the agent this.
    Told(String),
    /// The agent said or did this.
    Agent(Fact),
}

/// Reads one record, from its first line on.
pub trait Past {
    /// One line without its newline; what it says is added to `said`.
    fn line(&mut self, line: &[u8], said: &mut Vec<Said>);

    /// Whether a line waits for another that it follows, which has not come yet.
    fn waits(&self) -> bool {
        false
    }

    /// No line follows; what waited for one is added to `said`.
    fn finish(&mut self, said: &mut Vec<Said>) {
        let _ = said;
    }
}

/// A reader for the records of this agent; `None` for one whose records are not known.
#[must_use]
pub fn of(agent: &str) -> Option<Box<dyn Past>> {
    match agent {
        "claude" => Some(Box::<Claude>::default()),
        "codex" => Some(Box::<Codex>::default()),
        "gemini" => Some(Box::<Gemini>::default()),
        "opencode" => Some(Box::new(Opencode)),
        _ => None,
    }
}

/// A record that arrives in pieces.
pub struct Reading {
    lines: Lines,
    past: Box<dyn Past>,
    said: Vec<Said>,
}

impl Reading {
    #[must_use]
    pub fn new(past: Box<dyn Past>) -> Reading {
        Reading { lines: Lines::from(0), past, said: Vec::new() }
    }

    /// Takes the next bytes in and calls `each` with everything that is said in them.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Said)) {
        let Reading { lines, past, said } = self;
        lines.feed(bytes, |line, _| {
            match line {
                Line::Whole(line) => past.line(line, said),
                Line::TooLong { bytes } => said.push(Said::Agent(Fact::PassedOver { bytes })),
            }
            said.drain(..).for_each(&mut each);
        });
    }

    /// Whether a line waits for another that it follows.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.past.waits()
    }

    /// There are no further bytes.
    pub fn finish(&mut self, each: impl FnMut(Said)) {
        self.past.finish(&mut self.said);
        self.said.drain(..).for_each(each);
    }
}

fn told(text: &str, said: &mut Vec<Said>) {
    if !text.trim().is_empty() {
        said.push(Said::Told(text.to_owned()));
    }
}

fn spoken(text: &str, said: &mut Vec<Said>) {
    if !text.trim().is_empty() {
        said.push(Said::Agent(Fact::Said { text: text.to_owned() }));
    }
}

fn thought(text: &str, said: &mut Vec<Said>) {
    if !text.trim().is_empty() {
        said.push(Said::Agent(Fact::Thought { text: text.to_owned() }));
    }
}

fn called(name: &str, detail: String, said: &mut Vec<Said>) {
    said.push(Said::Agent(Fact::ToolCalled { name: name.to_owned(), detail, call: Call::default() }));
}

fn returned(text: String, failed: bool, said: &mut Vec<Said>) {
    said.push(Said::Agent(Fact::ToolReturned { text, failed, call: None }));
}

/// The texts of a message: a text, or a list of parts some of which have one.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// What is to be read of a line; nothing of one that is no JSON.
fn record(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_default()
}

#[cfg(test)]
mod tests;
