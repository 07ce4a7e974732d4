//! A message as the search uses it: its author, its time, and the part of its text that counts.

use jiff::Timestamp;
use ostler_agents::recorded::{Recorded, What};
use ostler_core::fact::Fact;
use ostler_view::conversation::Item;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// By whom a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or a program that gives the agent its task.
    User,
    /// The agent.
    Agent,
    /// A tool that the agent has called: the call, and what came back.
    Tool,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::User, Role::Agent, Role::Tool];

    pub(crate) fn number(self) -> i64 {
        match self {
            Role::User => 0,
            Role::Agent => 1,
            Role::Tool => 2,
        }
    }

    pub(crate) fn of_number(number: i64) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.number() == number)
    }

    /// As people write it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Agent => "agent",
            Role::Tool => "tool",
        }
    }
}

/// How much of a tool's output counts, in bytes: the rest is mostly files that are on the disk anyway.
const TOOL_OUTPUT: usize = 3 * 1024;
/// Messages of people and agents count completely: a longer message does not fit into a line of a transcript.
const SAID: usize = crate::lines::LONGEST;

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub at: Option<Timestamp>,
    pub role: Role,
    pub text: String,
}

impl Message {
    pub fn of_recorded(recorded: Recorded) -> Option<Message> {
        match recorded.what {
            What::Told { text } => Some(Message::new(recorded.at, Role::User, text, SAID)),
            What::Agent(fact) => of_fact(fact, recorded.at),
        }
    }

    pub fn of_item(item: Item, at: Option<Timestamp>) -> Option<Message> {
        match item {
            Item::Told { text, .. } => Some(Message::new(at, Role::User, text, SAID)),
            Item::Agent(fact) => of_fact(fact, at),
            Item::Answered { .. } => None,
        }
    }

    fn new(at: Option<Timestamp>, role: Role, mut text: String, most: usize) -> Message {
        if text.len() > most {
            text.truncate(text.floor_char_boundary(most));
        }
        // An escape sequence for a colour must not become part of the word after it.
        if memchr::memchr2(0x1b, 0xc2, text.as_bytes()).is_some() {
            text = ostler_screen::printable_text(&text).into_owned();
        }
        Message { at, role, text }
    }
}

fn of_fact(fact: Fact, at: Option<Timestamp>) -> Option<Message> {
    match fact {
        Fact::Said { text } | Fact::Thought { text } => Some(Message::new(at, Role::Agent, text, SAID)),
        Fact::ToolCalled { name, detail, .. } => {
            Some(Message::new(at, Role::Tool, format!("{name} {detail}"), TOOL_OUTPUT))
        }
        Fact::ToolReturned { text, .. } => Some(Message::new(at, Role::Tool, text, TOOL_OUTPUT)),
        Fact::Subagent(fact) => of_fact(*fact, at),
        Fact::Native { .. }
        | Fact::Transcript { .. }
        | Fact::Behind { .. }
        | Fact::Recalled { .. }
        | Fact::Opened { .. }
        | Fact::NotOpened { .. }
        | Fact::ReplyDue { .. }
        | Fact::Ready
        | Fact::TurnStarted
        | Fact::Saying { .. }
        | Fact::Model { .. }
        | Fact::Asked(_)
        | Fact::AskClosed { .. }
        | Fact::Retrying(_)
        | Fact::Limited(_)
        | Fact::Background { .. }
        | Fact::TurnEnded(_)
        | Fact::Unknown { .. }
        | Fact::LineTooLong { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_tools_output_the_beginning_counts_and_colours_do_not() {
        let text = format!("\u{1b}[31mred\u{1b}[0m {}", "é".repeat(TOOL_OUTPUT));
        let fact = Fact::ToolReturned { text, failed: false, call: None };
        let message = of_fact(Fact::Subagent(Box::new(fact)), None);
        assert!(message.is_some_and(|message| message.role == Role::Tool
            && message.text.starts_with("red é")
            && message.text.len() <= TOOL_OUTPUT));
    }
}
