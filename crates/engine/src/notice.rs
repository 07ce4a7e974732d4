//! What is worth telling while a verb is at work. The text says what happened; a face adds what to do.

use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_core::limits::size;
use std::fmt;
use std::path::PathBuf;

/// Something that happened on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A process that an earlier run had left was ended.
    EndedLeftover { session: SessionRef, process: String },
    /// A process that a lost session had left was ended.
    EndedOrphan { session: SessionRef, process: String },
    /// The transcript is not what its last copy was.
    TranscriptChanged { id: SessionId, words: String },
    /// A transcript was changed, and this is what was wrong with it.
    Repaired { change: String, backup: Option<PathBuf> },
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
