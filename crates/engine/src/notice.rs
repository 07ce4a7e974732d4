//! What is worth reporting while a verb is at work. The text says what happened; a face adds what to do.

use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_core::limits::size;
use std::fmt;
use std::path::{Path, PathBuf};

/// Something that happened on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of each says what it is, with its fields")]
pub enum Notice {
    /// A process that an earlier run had left running was ended.
    EndedLeftover { session: SessionRef, process: String },
    /// A process that a lost session had left running was ended.
    EndedOrphan { session: SessionRef, process: String },
    /// The transcript differs from its last copy.
    TranscriptChanged { id: SessionId, words: String },
    /// A transcript was changed, and this is what was wrong with it.
    Repaired { change: String, backup: Option<PathBuf> },
    /// The transcript was missing, and was restored from its last copy.
    TranscriptRestored { session: SessionRef, words: String, backup: Option<PathBuf> },
    /// The transcript is gone, and there is no copy.
    TranscriptGone { session: SessionRef },
    /// Copies of the transcript have something that it lacks, and that cannot be put back.
    TranscriptLacks { session: SessionRef, words: String },
    /// The agent would overwrite the conversation now, so ostler waits until the minute in which it began is over.
    WaitsOutMinute { agent: &'static str, seconds: u64 },
    /// The last turn of a session that was ended is not proven saved.
    NotSaved { session: SessionRef },
    /// A process that ostler did not start was ended, and what of its last turn is on disk.
    EndedForeign { process: String, saved: String },
    /// A process that the foreign process had started was ended after it.
    EndedForeignChild { process: String },
    /// The agent does not record which process has a conversation open.
    OwnersUnknown { agent: &'static str },
    /// The journal of a session cannot be read, and its events are missing.
    JournalUnreadable { id: SessionId, error: String },
    /// A line of a journal was skipped.
    LineUnreadable { id: SessionId },
    /// Changes are looked for every 200 ms, because the kernel watches no more files for this user.
    NoFileWatch { error: String },
    /// Another session works in the same tree, so that each sees the other's changes.
    SharedTree { session: SessionRef },
    /// The submodules of a new worktree are empty.
    EmptySubmodules { path: PathBuf },
    /// There is no snapshot of the end of a session, so that its folder is compared as it is now.
    DiffOfNow { session: SessionRef },
    /// The file system of the sessions is nearly full.
    LittleSpace { free: u64, folder: PathBuf },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::EndedLeftover { session, process } => {
                write!(f, "{session}: ended a process that its last run left running: {process}")
            }
            Notice::EndedOrphan { session, process } => {
                write!(f, "{session}: ended a process that it had left running: {process}")
            }
            Notice::TranscriptChanged { id, words } => write!(f, "{id}: {words}"),
            Notice::TranscriptRestored { session, words, backup: None } => write!(f, "{session}: {words}"),
            Notice::TranscriptRestored { session, words, backup: Some(backup) } => {
                write!(f, "{session}: {words}; backup: {}", backup.display())
            }
            Notice::TranscriptGone { session } => {
                let words =
                    "its transcript is gone and there is no copy; the agent starts without its earlier conversation";
                write!(f, "{session}: {words}")
            }
            Notice::TranscriptLacks { session, words } => write!(f, "{session}: {words}"),
            Notice::WaitsOutMinute { agent, seconds } => {
                let words = "overwrites a conversation that is resumed in the minute in which it began";
                write!(f, "{agent} {words}; waiting {seconds} s")
            }
            Notice::NotSaved { session } => write!(f, "{session}: the last turn is not in the agent's transcript"),
            Notice::EndedForeign { process, saved } => write!(f, "ended {process}; {saved}"),
            Notice::EndedForeignChild { process } => write!(f, "ended a process that it had started: {process}"),
            Notice::OwnersUnknown { agent } => {
                write!(
                    f,
                    "{agent} does not record which process has a conversation open; make sure that no process has this one open"
                )
            }
            Notice::JournalUnreadable { id, error } => write!(f, "{id}: its journal cannot be read: {error}"),
            Notice::LineUnreadable { id } => write!(f, "{id}: a line of its journal cannot be read; skipped"),
            Notice::NoFileWatch { error } => {
                write!(f, "no file can be watched ({error}); polling every 200 ms instead")
            }
            Notice::SharedTree { session } => {
                write!(f, "{session} is open in the same tree; to keep them apart, start one with --worktree")
            }
            Notice::EmptySubmodules { path } => {
                write!(
                    f,
                    "the submodules of the worktree are empty; fill them with: git -C {} submodule update --init",
                    path.display()
                )
            }
            Notice::DiffOfNow { session } => {
                let words = "its last turn was cut off or has no snapshot, so this is its folder as it is now";
                write!(f, "{session}: {words}, with what others have changed there since")
            }
            Notice::LittleSpace { free, folder } => {
                write!(f, "only {} of disk space left for {}", size(*free), folder.display())
            }
            Notice::Repaired { change, backup: None } => write!(f, "repaired: {change}"),
            Notice::Repaired { change, backup: Some(backup) } => {
                write!(f, "repaired: {change}; backup: {}", backup.display())
            }
        }
    }
}

impl Notice {
    /// The backup that the notice names: the file as it was before a change.
    #[must_use]
    pub fn backup(&self) -> Option<&Path> {
        match self {
            Notice::Repaired { backup, .. } | Notice::TranscriptRestored { backup, .. } => backup.as_deref(),
            _ => None,
        }
    }
}
