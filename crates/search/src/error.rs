//! What can go wrong with a search. A transcript that cannot be read is not an error: it is skipped and counted.

use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the search.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// A file of the index cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The index is damaged; it is made again.
    #[error("the search index is damaged: {error}")]
    Damaged {
        /// In SQLite's words.
        error: String,
    },
    /// There is no room for the index.
    #[error("the search index cannot be written: {error}")]
    Full {
        /// In SQLite's words.
        error: String,
    },
    /// The index cannot be used now.
    #[error("the search index cannot be used: {error}")]
    Index {
        /// In SQLite's words.
        error: String,
    },
    /// The sessions of ostler cannot be listed.
    #[error(transparent)]
    Store(#[from] ostler_store::StoreError),
}

impl SearchError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> SearchError + use<> {
        let path = path.to_owned();
        move |error| SearchError::Io { path, error }
    }

    pub(crate) fn is_damage(&self) -> bool {
        match self {
            SearchError::Damaged { .. } => true,
            SearchError::Full { .. } | SearchError::Io { .. } | SearchError::Index { .. } | SearchError::Store(_) => {
                false
            }
        }
    }

    pub(crate) fn is_full_disk(&self) -> bool {
        match self {
            SearchError::Full { .. } => true,
            SearchError::Io { error, .. } => {
                matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            SearchError::Damaged { .. } | SearchError::Index { .. } | SearchError::Store(_) => false,
        }
    }
}

/// Whether SQLite's error is about the contents of the file. A table or a column that is missing is damage, too.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted
            | ErrorCode::SystemIoFailure,
        ) => false,
        Some(_) | None => true,
    }
}
