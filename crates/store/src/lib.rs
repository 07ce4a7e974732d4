//! The session folder, and the view that readers compute from it.
//!
//! * [`home`]: where everything lives, and how a person's word becomes a session.
//! * [`folder`]: one session's folder with its records.
//! * [`journal`], [`inbox`], [`feed`]: the files that grow, each with its own rule for a torn end.
//! * [`progress`]: what the keeper has understood of a long journal, so that readers need not begin at its beginning.
//! * [`look`]: what is true of a session now, from files and kernel, without locks.
//! * `helpers`: who keeps it. [`overview`]: many of them, in little time. `summary`: the summary of those that have ended.
//! * [`ended`]: those that ended earlier, in one file, for lists and lookups.
//! * [`last`]: the last line of a session, for lists. [`branch`]: what git has checked out where it works.
//! * [`pieces`], [`backwards`]: files of any length, in little memory, from their beginning or their end.
//! * [`proof`]: whether a turn is in the agent's own transcript, or its [`database`].
//! * [`spare`]: the folder of the next session, made when nobody waits.
//! * [`closing`]: writing the outcome, once.
//! * [`archived`]: what a session and its transcript were when it was put away.
//! * [`statistics`]: what a session has used, and when.
//! * [`limits`]: what the groups of a run tell about its limits.
//! * [`conversation`]: what was said, for `logs`; [`recorded`]: the same by the agent's own transcript. [`times`]: when.
//! * [`terminal`]: the screen of a terminal session.
//!
//! Raw bytes first, meaning second: a wrong decoder is repaired by decoding again.

pub mod agent_feed;
pub mod archived;
pub mod backwards;
pub mod branch;
pub mod checkpoints;
pub mod closing;
mod complaint;
pub mod conversation;
pub mod database;
pub mod disk_usage;
pub mod ended;
pub mod fate;
pub mod feed;
pub mod folder;
mod helpers;
pub mod home;
pub mod inbox;
pub mod journal;
pub mod last;
pub mod limits;
pub mod look;
pub mod overview;
pub mod pieces;
pub mod printed;
pub mod progress;
pub mod proof;
pub mod recorded;
pub mod room;
pub mod spare;
pub mod statistics;
mod summary;
pub mod terminal;
pub mod times;

use ostler_core::id::SessionId;
use ostler_core::record::{Helper, Run};
use ostler_sys::process::{Identity, Serial};
use std::io;

/// `run.json` with a process as the kernel knows it.
pub type RunRecord = Run<Identity, Serial>;
/// `holder.json` and `keeper.json`.
pub type HelperRecord = Helper<Identity>;

/// Why a session folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{file}: {error}")]
    Io { file: String, error: io::Error },
    #[error("{file} cannot be read: {reason}")]
    Damaged { file: String, reason: String },
    #[error("{file} was written by a newer ostler (format {schema})")]
    Newer { file: String, schema: u64 },
    #[error("{file} is missing")]
    Missing { file: String },
    #[error("{file} belongs to session {id}; this folder is a copy")]
    Copy { file: String, id: SessionId },
    /// Which session it is about.
    #[error("{id}: {error}")]
    Of { id: SessionId, error: Box<StoreError> },
}

impl StoreError {
    pub fn io(file: impl Into<String>) -> impl FnOnce(io::Error) -> StoreError {
        let file = file.into();
        move |error| StoreError::Io { file, error }
    }

    /// Names the session.
    fn of(self, id: SessionId) -> StoreError {
        StoreError::Of { id, error: Box::new(self) }
    }

    /// What is wrong, for whoever knows the session.
    #[must_use]
    pub fn without_session(self) -> StoreError {
        match self {
            StoreError::Of { error, .. } => *error,
            other => other,
        }
    }

    /// Whether the disk was full.
    #[must_use]
    pub fn is_full_disk(&self) -> bool {
        match self {
            StoreError::Io { error, .. } => is_full_disk(error),
            StoreError::Of { error, .. } => error.is_full_disk(),
            StoreError::Damaged { .. }
            | StoreError::Newer { .. }
            | StoreError::Missing { .. }
            | StoreError::Copy { .. } => false,
        }
    }
}

/// Whether an error means that there is no room left: on the disk, in the quota, or below a limit on the size of files.
#[must_use]
pub fn is_full_disk(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
