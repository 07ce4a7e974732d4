//! Why a turn ([`Cut`]) or the whole process ([`Leave`]) ends. This file decides, for every kind of end, the exit code
//! and whether the transcript is written first.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use uuid::Uuid;

/// Why a turn is cut off.
#[derive(Debug)]
pub enum Cut {
    Interrupted,
    Leave(Leave),
}

impl From<Leave> for Cut {
    fn from(leave: Leave) -> Self {
        Cut::Leave(leave)
    }
}

/// Why the process ends.
#[derive(Debug)]
pub enum Leave {
    /// There is no more input, and everything that was accepted is done.
    Finished(LastTurn),
    /// The person at the screen has quit.
    Quit,
    Signal(EndSignal),
    /// Requested by a test: in the middle of a turn and without any output.
    Crash,
    Trouble(Trouble),
}

/// How the last turn ended, as far as the exit code depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastTurn {
    WithoutError,
    Failed,
}

/// The signals after which the process exits in an orderly way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    Terminate,
    HangUp,
    Interrupt,
}

impl Leave {
    /// The same exit codes as Claude Code.
    pub fn exit_code(&self) -> i32 {
        match self {
            Leave::Finished(LastTurn::WithoutError) | Leave::Quit => 0,
            Leave::Finished(LastTurn::Failed) => 1,
            Leave::Signal(EndSignal::Terminate) => 143,
            Leave::Signal(EndSignal::HangUp) => 129,
            Leave::Signal(EndSignal::Interrupt) => 0,
            Leave::Crash => 3,
            Leave::Trouble(_) => 1,
        }
    }

    /// Only a crash loses what was not yet written.
    pub fn writes_transcript(&self) -> bool {
        match self {
            Leave::Finished(_) | Leave::Quit | Leave::Signal(_) | Leave::Trouble(_) => true,
            Leave::Crash => false,
        }
    }
}

/// Why the process cannot continue.
#[derive(Debug, Error)]
pub enum Trouble {
    #[error("this input line is not a message: {0}")]
    Malformed(String),
    #[error("cannot read input: {0}")]
    Input(#[source] io::Error),
    #[error("cannot write output: {0}")]
    Output(#[source] io::Error),
    #[error("cannot wait for input: {0}")]
    Wait(#[source] io::Error),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
    #[error("--screen needs a terminal as stdin and stdout: {0}")]
    NoTerminal(#[source] io::Error),
    #[error("No conversation found with session ID: {0}")]
    UnknownConversation(Uuid),
    #[error("Session ID {0} is already in use.")]
    ConversationExists(Uuid),
    #[error("cannot use transcript {}: {source}", path.display())]
    Transcript { path: PathBuf, source: io::Error },
}
