//! Why a session is not launched: what is wrong with the request, before anything was done.

use std::io;
use std::path::PathBuf;

/// A request to launch something that cannot be launched that way.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each says what it is, with its fields")]
pub enum LaunchRefusal {
    #[error("the prompt is empty")]
    PromptEmpty,
    #[error("there is no queue {name:?}")]
    NoSuchQueue { name: String, known: Vec<String> },
    #[error("the prompt is longer than 16 MiB")]
    PromptTooLong,
    #[error("{agent} needs a prompt")]
    NeedsPrompt {
        agent: String,
        /// It could also be started in a terminal.
        has_terminal: bool,
    },
    /// A command with a name, which has nothing to do with prompts and conversations.
    #[error("{agent} takes no prompt")]
    TakesNoPrompt { agent: String },
    /// Something was asked of a command that only an agent can do.
    #[error("{what} is only for agents")]
    OnlyForAgents { what: OnlyForAgents },
    #[error("the command is empty")]
    EmptyCommand,
    /// The driver of a job cannot be started by itself.
    #[error("a job is started by its own command, such as `ostler loop`")]
    NotAJob,
    /// An agent behind a protocol without the program that speaks it.
    #[error("{agent} needs a program")]
    NeedsProgram { agent: String },
    #[error("{agent} uses a protocol and has no terminal")]
    NoTerminal { agent: String },
    #[error("{agent} takes no model")]
    NoModel { agent: String },
    /// An argument conflicts with what ostler does. The text comes from the agent's module.
    #[error("{0}")]
    Conflict(&'static str),

    // The working folder.
    #[error("cannot use the folder {}: {error}", .folder.display())]
    Folder { folder: PathBuf, error: io::Error },
    #[error("cannot use the current folder: {0}")]
    CurrentFolder(io::Error),
    #[error("{} is not a folder", .folder.display())]
    NotAFolder { folder: PathBuf },
    #[error("{} is not valid UTF-8", .folder.display())]
    FolderNotText { folder: PathBuf },

    // Which agent gets a prompt when none is named.
    #[error("default_agent {name:?} takes no prompt")]
    DefaultTakesNoPrompt { name: String },
    #[error("default_agent {name:?} in config.toml is not an agent")]
    DefaultUnknown { name: String },
    #[error("no agent is installed")]
    NoneInstalled { packages: Vec<&'static str> },
    #[error("{} are installed", .names.join(", "))]
    SeveralInstalled { names: Vec<&'static str> },

    // Recordings.
    #[error("{file} is not a recording: {why}")]
    NotARecording { file: String, why: String },
    /// An argument of the player is wrong. The text comes from the player.
    #[error("{0}")]
    PlayerArgument(String),
}

/// What a command does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlyForAgents {
    /// A first message.
    Prompt,
    /// Staying alive after its turn.
    Keep,
    /// A model.
    Model,
}

impl std::fmt::Display for OnlyForAgents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            OnlyForAgents::Prompt => "a prompt",
            OnlyForAgents::Keep => "waiting for further messages",
            OnlyForAgents::Model => "a model",
        })
    }
}
