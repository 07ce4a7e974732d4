//! Turn snapshots: the working tree at the start of a session and at the end of each turn, in a store of our own.
//!
//! The purpose: an agent may break in its tenth turn what was right in its ninth, without a commit in between. The
//! constraint: the person and the agent use the same repository all the time. So nothing in their repository is
//! written, none of its locks is taken, and nothing is kept by reference to objects that `git gc` may delete there.
//!
//! * `tree`: which working tree, and where git keeps what belongs to it.
//! * `store`: our own store, a bare repository for each session.
//! * `walk`: which files there are, and which of them have changed since the last snapshot.
//! * `listing`: what is in a folder.
//! * `ignored`: asks git what is ignored.
//! * `known`: what the last snapshot saw, so that only changed files are read.
//! * `first`: the first snapshot takes unchanged files from the repository, as links.
//! * `write`: what has changed, as a commit in our store.
//! * `unusual`: what git does not keep: permissions and empty folders.
//! * `compare`: the differences between two snapshots.
//! * `put_back`: restores the files of a snapshot.
//! * `thinning`: deletes old snapshots.

mod compare;
mod first;
mod ignored;
mod known;
mod listing;
mod put_back;
mod store;
mod thinning;
mod tree;
mod unusual;
mod walk;
mod write;

pub use compare::{Difference, FileKind};
pub use put_back::{InTheWay, PutBack};
pub use store::TurnStore;
pub use tree::WorkingTree;

use crate::{GitError, Result};
use known::Known;
use ostler_core::turns::Skipped;
use ostler_sys::pause_points::{self, Point};
use std::time::Instant;

/// The limits of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Larger files are left out.
    pub largest_file: u64,
    /// The snapshot is given up at this time.
    pub until: Option<Instant>,
}

impl Bounds {
    pub(crate) fn check(&self) -> Result<()> {
        match self.until {
            Some(until) if Instant::now() >= until => Err(GitError::TookTooLong),
            Some(_) | None => Ok(()),
        }
    }
}

/// A snapshot that was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The commit in our store.
    pub commit: String,
    /// How many files are in it.
    pub files: usize,
    /// How many of them are different from the snapshot before.
    pub changed: usize,
    /// What was left out.
    pub skipped: Vec<Skipped>,
    /// When the newest of its files was changed, in nanoseconds since 1970.
    pub newest_ns: i128,
    /// Files were changed while it was taken.
    pub disturbed: bool,
    known: Known,
}

impl TurnStore {
    /// Takes a snapshot under this name. The caller notes the snapshot and then calls [`TurnStore::remember`] to note
    /// what it saw.
    pub fn take(&self, tree: &WorkingTree, name: &str, bounds: &Bounds) -> Result<Taken> {
        match self.known(tree) {
            Some(known) => match self.take_after(tree, name, bounds, Some(known)) {
                // Its base is no longer in the store, or git cannot read the store: start without a base.
                Err(GitError::Failed { .. }) => self.take_after(tree, name, bounds, None),
                other => other,
            },
            None => self.take_after(tree, name, bounds, None),
        }
    }

    fn take_after(&self, tree: &WorkingTree, name: &str, bounds: &Bounds, known: Option<Known>) -> Result<Taken> {
        let walked = walk::walk(tree, known.as_ref(), bounds)?;
        pause_points::at(Point::TreeWalked);
        let stored = match &known {
            Some(_) => first::Stored::default(),
            None => self.link(tree, &walked, bounds)?,
        };
        let written = self.write(tree, name, known.as_ref(), &walked, &stored, bounds)?;
        pause_points::at(Point::SnapshotWritten);
        let mut skipped = walked.skipped;
        skipped.extend(written.skipped);
        Ok(Taken {
            files: walked.files,
            changed: written.changed,
            skipped,
            newest_ns: walked.newest_ns,
            disturbed: !written.unsure.is_empty(),
            known: walked.known.after(&written.tree, &written.commit, &written.unsure),
            commit: written.commit,
        })
    }
}
