//! What can go wrong, with what a face needs to decide: which session, what kind, which process is concerned.
//!
//! The text of an error says what is wrong, in one sentence without a full stop. What to do about it depends on the face, and is
//! added there.

use crate::config::Mistake;
use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_keeper::launch::LaunchError;
use ostler_store::StoreError;
use ostler_store::home::NotFound;
use std::io;
use std::path::PathBuf;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for cannot be handed over.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("neither OSTLER_HOME nor HOME is set")]
    NoHome,
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    System(#[from] io::Error),
    /// A session cannot be started.
    #[error(transparent)]
    Launch(LaunchError),
    /// A setting is wrong that is needed.
    #[error("{}", .0.place_and_words())]
    Config(Mistake),
    /// A limit of a session is not one.
    #[error("{0}")]
    Limit(String),

    // The session cannot do it now.
    #[error("session {id} belongs to another user")]
    OtherUser { id: SessionId },
    #[error("session {id} has no keeper, and none can be started")]
    NoKeeper { id: SessionId },
    /// Its keeper has refused, in its words.
    #[error("{session}: {why}")]
    Refused { session: SessionRef, why: String },
    /// It has not ended.
    #[error("{session} is still running: {} is using the conversation", owner.as_deref().unwrap_or("another process"))]
    StillRuns { session: SessionRef, owner: Option<String> },
    #[error("{id} was just moved by another command")]
    Moved { id: SessionId },
    #[error("{id}: a folder with that name already exists")]
    FolderExists { id: SessionId },
    #[error("{id} cannot be moved: {error}")]
    CannotMove { id: SessionId, error: io::Error },
    #[error("process {pid}, a helper of the session, does not exit")]
    HelperStays { pid: i32 },

    #[error("{word:?} is ambiguous: {one}, {other}")]
    AmbiguousConversation { word: String, one: String, other: String },
    #[error("{word:?} is neither a session nor a running conversation")]
    NoConversation { word: String },

    // Another process has the conversation.
    #[error("{owner} is using the conversation")]
    Owned { owner: String },
    /// A server that works for other conversations as well.
    #[error("{owner}, the shared server of {agent}, is using the conversation")]
    OwnedByServer { owner: String, agent: String, how_to_end: String },

    // Agents.
    #[error("this version of ostler does not know the agent {agent:?}")]
    UnknownAgent { agent: String },
    #[error("{agent} is not installed")]
    NotInstalled { agent: String, package: String },
    #[error("this version of {agent} would run its work in the server behind {socket}, where ostler cannot stop it")]
    WorksInServer { agent: String, package: String, socket: String },

    // Transcripts.
    #[error("{word:?} is not a session, a transcript or a conversation")]
    NoTranscript { word: String },
    #[error("{agent} keeps no transcript that ostler can read")]
    UnknownTranscript { agent: String },
    #[error("{path} is gone")]
    TranscriptGone { path: String, id: SessionId },
    #[error("{id} has no transcript, because nothing was said")]
    NothingSaid { id: SessionId },
    #[error("{} is not a transcript of claude, codex or gemini", .path.display())]
    NotATranscript { path: PathBuf },
    #[error("{} cannot be read: {error}", .path.display())]
    Unreadable { path: PathBuf, error: String },
    #[error("{} cannot be repaired: {error}", .path.display())]
    CannotRepair { path: PathBuf, error: io::Error },
    #[error("{} cannot be compared with its copies: {error}", .path.display())]
    CannotCompare { path: PathBuf, error: io::Error },
    /// Only a copy has it, and it cannot be put back.
    #[error("{0}")]
    OnlyInCopy(String),
}

/// A result of the engine.
pub type Result<T> = std::result::Result<T, Error>;

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Error {
        match error {
            LaunchError::Store(error) => Error::Store(error),
            LaunchError::Held(owner) => Error::Owned { owner },
            error @ (LaunchError::Program(_)
            | LaunchError::NotStarted(_)
            | LaunchError::Killed
            | LaunchError::Holder(_)
            | LaunchError::System(_)) => Error::Launch(error),
        }
    }
}
