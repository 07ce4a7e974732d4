//! Turn snapshots: the working tree as it was at the start of a session and at the end of each turn, in a store of our own.
//!
//! What this is against: an agent that changes in its tenth turn what was right in its ninth, and no commit in between. The race
//! that it must not lose: the person and the agent use the same repository all the time. So nothing of theirs is written, no
//! lock of theirs is taken, and nothing is kept by reference to what `git gc` may delete there.
//!
//! * `tree`: which working tree, and where git keeps what belongs to it.
//! * `store`: our own store, a bare repository for each session.
//! * `walk`: which files there are, and which of them have changed since the last snapshot.
//! * `listing`: what is in a folder.
//! * `ignored`: git is asked what is ignored.
//! * `known`: what the last snapshot saw, so that only what has changed is read.
//! * `first`: the first snapshot takes unchanged files from the repository, as links.
//! * `write`: what has changed, as a commit in our store.
//! * `unusual`: what git does not keep: permissions and empty folders.
//! * `compare`: two snapshots beside each other.
//! * `put_back`: the files as a snapshot has them.
//! * `thinning`: old ones go.

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
use ostler_sys::pause::{self, Point};
use std::time::Instant;

/// What a snapshot is to observe.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Larger files are left out.
    pub largest_file: u64,
    /// It is given up then.
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
    /// Takes a snapshot under this name. What it saw is noted by [`TurnStore::remember`], after the caller has noted the snapshot.
    pub fn take(&self, tree: &WorkingTree, name: &str, bounds: &Bounds) -> Result<Taken> {
        match self.known(tree) {
            Some(known) => match self.take_after(tree, name, bounds, Some(known)) {
                // Its base is gone from the store, or git does not understand what is there: from the beginning.
                Err(GitError::Failed { .. }) => self.take_after(tree, name, bounds, None),
                other => other,
            },
            None => self.take_after(tree, name, bounds, None),
        }
    }

    fn take_after(&self, tree: &WorkingTree, name: &str, bounds: &Bounds, known: Option<Known>) -> Result<Taken> {
        let walked = walk::walk(tree, known.as_ref(), bounds)?;
        pause::at(Point::TreeWalked);
        let stored = match &known {
            Some(_) => first::Stored::default(),
            None => self.link(tree, &walked, bounds)?,
        };
        let written = self.write(tree, name, known.as_ref(), &walked, &stored, bounds)?;
        pause::at(Point::SnapshotWritten);
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
