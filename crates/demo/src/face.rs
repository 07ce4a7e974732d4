//! The interface between the agent and the outside: what it receives ([`Command`]) and what it shows ([`Scene`]). The
//! headless face uses JSON lines, the terminal face draws a screen. The agent does not know which one it has.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use crate::leave::Leave;

pub trait Face {
    /// What to poll for the next command.
    fn input(&self) -> BorrowedFd<'_>;

    /// The commands that have arrived. Called when the input is readable. Reads once and never waits for more.
    fn hear(&mut self) -> Result<Vec<Command>, Leave>;

    /// Whether SIGINT ends only the turn, as Ctrl-C on a keyboard does.
    fn has_keyboard(&self) -> bool;

    fn show(&mut self, scene: Scene<'_>) -> Result<(), Leave>;

    /// The terminal has another size now.
    fn resized(&mut self) -> Result<(), Leave>;
}

/// What the agent is told to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Prompt(Prompt),
    /// End the running turn.
    Interrupt,
    Answer {
        request_id: String,
        verdict: Verdict,
    },
    /// There will be no more input: finish what was accepted, then exit.
    NoMoreInput,
    /// Exit now.
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

/// What the agent shows.
pub enum Scene<'a> {
    TurnBegins {
        prompt: &'a str,
    },
    /// A piece of a text. The whole text follows later.
    Words(&'a str),
    Said(&'a Message),
    Asks(&'a Question),
    /// The question is no longer open: it was answered, or the answer is not needed any more.
    AskedEnough {
        question: &'a Question,
        answered: bool,
    },
    TurnEnds(&'a Report),
}

/// One block of the conversation, as it is shown and written to the transcript.
pub struct Message {
    pub uuid: String,
    pub content: Content,
}

pub enum Content {
    /// From the agent. The blocks of one answer of the model have the same id.
    Agent { id: String, block: Block, usage: Usage },
    /// To the agent: the result of its tool.
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
    /// Does nothing but ask for permission.
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

    /// A short description of the call, for people.
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

/// A permission that the agent waits for.
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
    /// How many answers the model gave in this turn.
    pub rounds: u64,
    pub usage: Usage,
    /// The cost of this process so far.
    pub total_cost_usd: f64,
    /// What was asked and denied in this turn.
    pub denied: Vec<Question>,
}

pub enum Ending {
    Done {
        text: String,
    },
    /// The turn failed; with a status when the model's server failed.
    Failed {
        text: String,
        api_status: Option<u16>,
    },
    /// The model's server refused the turn because of a usage limit. The time at which the limit is reset, in seconds
    /// since 1970, if the server says it.
    Limited {
        resets_at: Option<i64>,
    },
    Interrupted,
}
