//! Watching a branch for moves: git replaces the file of the branch, or the file of all packed branches.

use crate::engine::Engine;
use crate::error::Result;
use ostler_core::id::SessionId;
use ostler_git::repository::Repository;
use ostler_sys::notify::Watcher;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Where nothing can be watched, the branch is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Becomes readable when a branch may have moved.
#[derive(Debug)]
pub struct BranchWatch(Option<Watcher>);

impl BranchWatch {
    /// Watches a branch.
    #[must_use]
    pub fn new(repository: &Repository, branch: &str) -> BranchWatch {
        let file = repository.common.join("refs/heads").join(branch);
        // The folder of a branch that is packed may not exist.
        let folder = file.ancestors().skip(1).find(|folder| folder.is_dir());
        let watch = |folder: Option<&Path>| {
            let watcher = Watcher::new().ok()?;
            watcher.watch(folder?).ok()?;
            watcher.watch(&repository.common).ok()?;
            // For repositories that store branches in reftables.
            let _ = watcher.watch(&repository.common.join("reftable"));
            Some(watcher)
        };
        BranchWatch(watch(folder))
    }

    /// Becomes readable when the branch may have moved. `None`: nothing can be watched.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(|watcher| watcher.as_fd())
    }

    /// When to look again where nothing can be watched; `None`: only when the descriptor is readable.
    #[must_use]
    pub fn look_again(&self) -> Option<Instant> {
        self.0.is_none().then(|| Instant::now() + LOOK_AGAIN)
    }
}

impl Engine {
    /// Whether a branch was moved from one commit to another by anything other than the landings of these workers:
    /// sessions with the label `worker` of this value.
    pub fn moved_by_others(&self, repository: &Repository, from: &str, to: &str, workers: &str) -> Result<bool> {
        let range = format!("{from}..{to}");
        let format = "--format=%H %(trailers:key=Ostler-Session,valueonly,separator=%x20)";
        let Some(listed) = repository.git.ask(&repository.root, ["log", "--first-parent", format, &range, "--"])?
        else {
            // The commit at which the branch was does not exist any more.
            return Ok(true);
        };
        let listed = String::from_utf8_lossy(&listed);
        if listed.trim().is_empty() {
            // The branch was moved back.
            return Ok(true);
        }
        for line in listed.lines() {
            let session = line.split_whitespace().nth(1).and_then(SessionId::parse);
            let place = session.map(|id| self.home.place_of(id)).transpose()?.flatten();
            let labels = place.and_then(|place| place.open().and_then(|folder| folder.session()).ok());
            if labels.is_none_or(|session| session.labels.get("worker").is_none_or(|value| value != workers)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
