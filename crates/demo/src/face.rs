//! The two sides between which the agent works: what it is told ([`Command`]) and what it shows ([`Scene`]). The headless
//! face says it in JSON lines, the terminal face draws it; the agent cannot tell them apart.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use crate::leave::Leave;

pub trait Face {
    /// What to poll for the next command.
    fn input(&self) -> BorrowedFd<'_>;

    /// The commands that are there. Called when the input is readable, reads once, never waits for more.
    fn hear(&mut self) -> Result<Vec<Command>, Leave>;

    /// Whether SIGINT ends only the turn, as Ctrl-C on a keyboard does.
    fn has_keyboard(&self) -> bool;

    fn show(&mut self, scene: Scene<'_>) -> Result<(), Leave>;

    /// The terminal has another size now.
    fn resized(&mut self) -> Result<(), Leave>;
}

/// What the other side wants.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Prompt(Prompt),
    /// End the running turn.
    Interrupt,
    Answer {
        request_id: String,
        verdict: Verdict,
    },
    /// Nothing more will come: finish what was accepted, then leave.
    NoMoreInput,
    /// Leave now.
    Quit,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Prompt {
    pub uuid: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    Denied { reason: String },
}

/// What the other side gets to see.
pub enum Scene<'a> {
    TurnBegins {
        prompt: &'a str,
    },
    /// A piece of a text that will follow whole.
    Words(&'a str),
    Said(&'a Message),
    Asks(&'a Question),
    /// The question is no longer open: answered, or nobody needs the answer.
    AskedEnough {
        question: &'a Question,
        answered: bool,
    },
    TurnEnds(&'a Report),
}

/// One block of the conversation, as it goes to the other side and into the transcript.
pub struct Message {
    pub uuid: String,
    pub content: Content,
}

pub enum Content {
    /// From the agent. The blocks of one answer of the model share the id.
    Agent { id: String, block: Block, usage: Usage },
    /// To the agent: what its tool gave.
    ToolResult { tool_use_id: String, text: String, is_error: bool },
    /// To the agent: that it was interrupted.
    Interruption,
}

pub enum Block {
    Text(String),
    ToolUse { id: String, call: ToolCall },
}

#[derive(Debug, Clone)]
pub enum ToolCall {
    Bash {
        command: String,
        description: String,
    },
    Read {
        file: PathBuf,
    },
    Edit {
        file: PathBuf,
        old: String,
        new: String,
    },
    /// Does nothing but ask whether it may.
    Ask {
        text: String,
    },
}

impl ToolCall {
    pub const NAMES: [&'static str; 4] = ["Bash", "Read", "Edit", "Ask"];

    pub fn name(&self) -> &'static str {
        match self {
            ToolCall::Bash { .. } => "Bash",
            ToolCall::Read { .. } => "Read",
            ToolCall::Edit { .. } => "Edit",
            ToolCall::Ask { .. } => "Ask",
        }
    }

    /// The call in a few words, for people.
    pub fn gist(&self) -> String {
        match self {
            ToolCall::Bash { command, .. } => command.clone(),
            ToolCall::Read { file } | ToolCall::Edit { file, .. } => {
                file.file_name().unwrap_or(file.as_os_str()).display().to_string()
            }
            ToolCall::Ask { text } => text.clone(),
        }
    }
}

/// A permission the agent waits for.
pub struct Question {
    pub request_id: String,
    pub tool_use_id: String,
    pub call: ToolCall,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// The end of a turn.
pub struct Report {
    pub ending: Ending,
    pub duration: Duration,
    /// Answers of the model in this turn.
    pub rounds: u64,
    pub usage: Usage,
    /// Of this process so far.
    pub total_cost_usd: f64,
    /// What was asked and denied in this turn.
    pub denied: Vec<Question>,
}

pub enum Ending {
    Done {
        text: String,
    },
    /// The turn failed; with a status when it was the model's server that failed.
    Failed {
        text: String,
        api_status: Option<u16>,
    },
    /// The model's server refused it for a usage limit, which is reset then (seconds since 1970) where it says so.
    Limited {
        resets_at: Option<i64>,
    },
    Interrupted,
}
