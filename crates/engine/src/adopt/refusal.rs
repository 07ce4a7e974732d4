//! Why a conversation is not adopted.

use crate::session_ref::SessionRef;
use std::io;
use std::path::PathBuf;

/// A conversation that cannot become a session.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each says what it is, with its fields")]
pub enum AdoptRefusal {
    // Which conversation is meant.
    #[error("there is no file {word}")]
    NoFile { word: String },
    #[error("{} is not where an agent keeps a conversation", .file.display())]
    NotWhereAgentsLook { file: PathBuf, searched: Vec<PathBuf> },
    #[error("{word:?} is the beginning of several conversations: {named}")]
    Ambiguous {
        word: String,
        /// The first of them.
        named: String,
    },
    #[error("no conversation begins with {word:?}")]
    Unknown { word: String, searched: Vec<PathBuf> },

    /// An older version of the agent wrote the conversation. The agent converts it when it is resumed with this command
    /// in that folder.
    #[error("an older {agent} wrote {native_id}, in a form that ostler cannot read")]
    OlderForm { agent: &'static str, native_id: String, resume: String, cwd: Option<String> },

    // Another process or session has the conversation.
    #[error("this conversation already belongs to session {session}")]
    AlreadyKept { session: SessionRef, archived: bool, alive: bool },
    #[error("this conversation already belongs to {owner}")]
    KeptElsewhere { owner: String },
    #[error("{owner} has the conversation open")]
    Open { owner: String, native_id: String },
    #[error("{owner} has this conversation or {other} open, and {agent} does not tell which")]
    PerhapsOpen { owner: String, other: String, agent: String },
    /// Another command is taking the conversation at this moment.
    #[error("{owner} has the conversation")]
    Taken { owner: String },

    // The agent could not continue the conversation.
    #[error("{} cannot be read: {error}", .file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("{native_id} has no messages")]
    NoMessages { native_id: String, agent: &'static str },
    #[error("the transcript of {native_id} does not name its folder")]
    NoFolder { native_id: String, agent: &'static str },
    #[error("the folder of {native_id} is gone: {folder}")]
    FolderGone { native_id: String, agent: &'static str, folder: String },
    #[error("{native_id} cannot be repaired: {error}")]
    CannotRepair { native_id: String, error: io::Error },
    #[error("the transcript of {native_id} is damaged and cannot be repaired")]
    Damaged { native_id: String },
    /// An argument conflicts with what ostler does. The text comes from the agent's module.
    #[error("{0}")]
    Conflict(&'static str),
    #[error("the conversation is already named")]
    NamedTwice,
}
