//! Waiting for the proof that a turn is saved.
//!
//! Agents write late (up to about 100 ms after it has announced the end of the turn), so the transcript is watched
//! until the proof is there or the time is up: with inotify where an instance is to be had, else by looking again and
//! again.

use ostler_sys::notify::Watcher;
use ostler_view::proof::Kept;

/// Without inotify.
pub const LOOK_AGAIN_MS: u64 = 20;

pub struct ProofWatch {
    pub watcher: Option<Watcher>,
}

impl ProofWatch {
    /// Watches the folder of the transcript: the file itself may not exist yet. A database is other conversations' too, and
    /// a process that was woken by each of their writes would come to nothing else.
    pub fn new(kept: &Kept) -> ProofWatch {
        let watcher = match kept {
            Kept::File { path, .. } => Watcher::beside(path),
            Kept::Database { .. } => None,
        };
        ProofWatch { watcher }
    }
}
