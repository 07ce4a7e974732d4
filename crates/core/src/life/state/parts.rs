//! What the state of a session is made of.

use crate::event::StopHow;
use crate::record::Written;
use serde::{Deserialize, Serialize};

/// A message that was accepted: its number, and where it stands in the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub n: u64,
    pub at: u64,
}

/// A message that was given to a process that ended with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    pub message: Message,
    /// The run of that process.
    pub run: u32,
    pub given: Given,
}

/// What was true when the newest message was given: where to look for what the agent did with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// How far its output had been understood.
    pub out: u64,
    pub written: Option<Written>,
}

/// From where on a typed message is looked for: what was there before may have the same words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// The length of the transcript.
    pub written: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

/// Whether messages can be given to the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Conversation {
    /// Its opening is under way.
    Opening,
    Open,
    /// The agent cannot open it, and why.
    Refused {
        reason: String,
    },
}

/// The running turn waits for the model's server, which the agent asks again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retrying {
    pub reason: String,
    /// How often it has failed so far.
    pub attempt: u32,
    pub since_ms: u64,
    /// What a person is told when it takes too long.
    pub alarm: Option<String>,
}

/// The request to end the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub by: String,
    pub why: String,
    pub how: StopHow,
    pub grace_ms: u64,
    pub at_ms: u64,
    /// A turn ran when it was made.
    pub in_turn: bool,
}

/// A line in an agent's output that is too long to read: where it begins, and how far it has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongLine {
    pub start: u64,
    pub to: u64,
}

/// Why output is not moved, and what a person can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub why: String,
    pub remedy: String,
}

impl Held {
    /// What people are told while it lasts.
    #[must_use]
    pub fn alarm(&self) -> String {
        format!("output is paused: {}; {}", self.why, self.remedy)
    }
}
