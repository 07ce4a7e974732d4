//! The format of the session folder: each of its files, written and read. What they mean together is computed in
//! `view`.
//!
//! * [`home`]: where everything is stored, and how a word that a person types selects a session.
//! * [`folder`]: one session's folder with its records.
//! * [`journal`], [`inbox`], [`feed`]: the files that grow, each with its own rule for a torn end.
//! * [`progress`]: the state that the keeper has derived from a long journal, so that readers need not start at its
//!   beginning.
//! * [`summary`]: one file that says how an ended session ended. [`ended`]: an index of all of those, for lists and
//!   lookups.
//! * [`live`]: what lists have found out about sessions that run.
//! * [`pieces`], [`backwards`]: files of any length, in little memory, from their beginning or their end.
//! * [`printed`], [`times`]: the output of a run, and when it came. [`disk_reserve`]: what is kept free on a disk.
//! * [`checkpoints`]: copies of the agent's transcript. [`archived`]: what a session was when it was archived.
//! * [`spare_folder`]: the folder of the next session, made in advance. [`disk_usage`]: how much disk space sessions use.
//! * [`limits`]: what the cgroups of a run report about its limits. [`branch`]: what git has checked out in a session's
//!   directory.
//! * [`archive_file`]: an archived session in one file.

pub mod archive_file;
pub mod archived;
pub mod backwards;
pub mod branch;
pub mod checkpoints;
pub mod disk_reserve;
pub mod disk_usage;
pub mod ended;
pub mod feed;
pub mod folder;
pub mod growing_file;
pub mod home;
pub mod inbox;
pub mod journal;
pub mod limits;
pub mod live;
pub mod printed;
pub mod progress;
pub mod queue;
pub mod review;
pub mod spare_folder;
pub mod summary;
pub mod times;
pub mod turns;

use ostler_core::id::SessionId;
use ostler_core::record::{Helper, Run};
use ostler_sys::process::{Identity, Serial};
use std::io;

/// `run.json`, with processes identified as the kernel does.
pub type RunRecord = Run<Identity, Serial>;
/// `holder.json` and `keeper.json`.
pub type HelperRecord = Helper<Identity>;

/// Why a session folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{file}: {}", without_number(.error))]
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
    /// An I/O error about this file. A file of a pack that was cut off or changed is damaged like any other record.
    pub fn io(file: impl Into<String>) -> impl FnOnce(io::Error) -> StoreError {
        let file = file.into();
        move |error| match error.kind() {
            io::ErrorKind::InvalidData => StoreError::Damaged { file, reason: error.to_string() },
            _ => StoreError::Io { file, error },
        }
    }

    /// The same for a session that is opened: in the archive it may be one file, but only a packed session.
    pub fn open(file: impl Into<String>, archived: bool) -> impl FnOnce(io::Error) -> StoreError {
        let file = file.into();
        move |error| match error.kind() {
            io::ErrorKind::NotADirectory if archived => {
                let reason = "the archived file is damaged: it is not a packed session".to_owned();
                StoreError::Damaged { file, reason }
            }
            _ => StoreError::io(file)(error),
        }
    }

    /// Adds the session that the error is about.
    #[must_use]
    pub fn of(self, id: SessionId) -> StoreError {
        StoreError::Of { id, error: Box::new(self) }
    }

    /// What is wrong, for a caller that knows the session.
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

    /// Whether this process, or the machine, cannot open any more files.
    #[must_use]
    pub fn is_out_of_descriptors(&self) -> bool {
        match self {
            StoreError::Io { error, .. } => is_out_of_descriptors(error),
            StoreError::Of { error, .. } => error.is_out_of_descriptors(),
            StoreError::Damaged { .. }
            | StoreError::Newer { .. }
            | StoreError::Missing { .. }
            | StoreError::Copy { .. } => false,
        }
    }
}

/// Whether this process, or the machine, cannot open any more files. This is not an error of the file.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(rustix::io::Errno::from_io_error(error), Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

/// The system's error message, without its number " (os error 13)", which does not help a person.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => text.replace(&format!(" (os error {number})"), ""),
        None => text,
    }
}

/// Whether an error means that there is no room left: on the disk, in the quota, or below a limit on the size of files.
#[must_use]
pub fn is_full_disk(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
