//! What each turn of a session did to its files. Snapshots of the working tree are compared, restored, and searched for
//! the turn that broke something.
//!
//! * `helper`: the process that takes a snapshot.
//! * `compare`: what a turn changed.
//! * `rewind`: files and conversation as they were after a turn.
//! * `bisect`: which turn broke a check.

mod bisect;
mod compare;
mod conversation;
pub(crate) mod helper;
mod rewind;

pub use bisect::{Bisected, Checked};
pub use ostler_core::turns::{History, Skipped, Snapshot};
pub use rewind::{Rewind, Rewound};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::COMMAND;
use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_git::git::Git;
use ostler_git::turns::{TurnStore, WorkingTree};
use ostler_keeper::TURN;
use ostler_store::folder::Folder;
use ostler_store::home::{Home, Place};
use ostler_store::turns;
use ostler_sys::dir::Dir;
use ostler_sys::notify::Watcher;
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::ready::{self, Interest};
use ostler_sys::{process, process_table};
use ostler_view::look;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::time::Timespec;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A snapshot that takes longer is given up.
pub(crate) const TAKES: Duration = Duration::from_secs(10);
/// How long the process of a snapshot may take to begin.
const BEGINS: Duration = Duration::from_secs(1);

/// Where the snapshots of a session are. They are not in its folder, so that they stay where they are when the folder
/// is archived.
pub(crate) fn store_folder(home: &Home, id: SessionId) -> PathBuf {
    home.root().join("turns").join(id.as_str())
}

/// Which snapshots a session has, for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TurnsKept {
    /// The turns after which there is a snapshot; 0 is the beginning.
    pub turns: Vec<u32>,
    /// Those of them whose snapshots may contain changes of the next turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mixed: Vec<u32>,
    /// Why no more snapshots are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up: Option<String>,
    /// Why the newest snapshot was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// What is not in the newest snapshot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

impl Engine {
    /// Which snapshots a session has; `None` when no snapshot was ever tried.
    pub fn turns_kept(&self, place: &Place) -> Result<Option<TurnsKept>> {
        let history = turns::read(&place.open()?)?;
        if history.0.is_empty() {
            return Ok(None);
        }
        let gave_up = history.gave_up().map(str::to_owned);
        let failed = history.failed().map(str::to_owned);
        let skipped = history.snapshots().last().map(|newest| newest.skipped.clone()).unwrap_or_default();
        let ends = history.ends();
        let turns = ends.iter().map(|one| one.turn).collect();
        let mixed = ends.iter().filter(|one| one.mixed).map(|one| one.turn).collect();
        Ok(Some(TurnsKept { turns, mixed, gave_up, failed, skipped }))
    }

    /// Deletes the snapshots of a session.
    pub(crate) fn forget_turns(&self, id: SessionId) -> Result<()> {
        let folder = store_folder(&self.home, id);
        TurnStore::wait_until_free(&folder, TAKES)?;
        TurnStore::delete(&bisect::folder(&self.home, id))?;
        Ok(TurnStore::delete(&folder)?)
    }

    /// Waits until no snapshot of a session is being taken.
    pub(crate) fn wait_for_snapshot(&self, id: SessionId) -> Result<()> {
        Ok(TurnStore::wait_until_free(&store_folder(&self.home, id), TAKES)?)
    }

    fn turn_git(&self) -> Git {
        Git::new(self.environment.variables())
    }

    /// The snapshots of a session, and their store. If the newest snapshot is just being taken, it is waited for.
    fn open_turns(&self, place: &Place) -> Result<Opened> {
        let view = look::look(place)?;
        let session = SessionRef::from(&view);
        let history = self.newest_history(place, &view)?;
        if history.first().is_none() {
            let why = history.gave_up().or_else(|| history.failed()).map(str::to_owned);
            return Err(Error::NoSnapshots { session, why });
        }
        let folder = store_folder(&self.home, place.id);
        match TurnStore::open(&self.turn_git(), &folder) {
            Some(store) => Ok(Opened { view, history, store }),
            None => Err(Error::NoSnapshots { session, why: None }),
        }
    }

    /// The recorded snapshots, once that of the newest turn is among them. A process that takes it is given the time to
    /// begin and to end.
    fn newest_history(&self, place: &Place, view: &View) -> Result<History> {
        let folder = place.open()?;
        let noted =
            |history: &History| history.has(view.turns, view.run, view.turns == 0) || history.gave_up().is_some();
        let watcher = Watcher::new().ok().filter(|watcher| watcher.watch(&place.path).is_ok());
        let began = Instant::now();
        // Since when nothing new has been recorded, and how many entries there were then.
        let mut quiet = (began, None);
        loop {
            TurnStore::wait_until_free(&store_folder(&self.home, place.id), TAKES)?;
            let history = turns::read(&folder)?;
            let never = history.0.is_empty() && (!self.config.snapshots || view.agent == COMMAND);
            if noted(&history) || place.archived || never {
                return Ok(history);
            }
            // The keeper starts the next snapshot when it has seen the end of the previous one.
            if quiet.1 != Some(history.0.len()) {
                quiet = (Instant::now(), Some(history.0.len()));
            }
            let mut left = BEGINS.saturating_sub(quiet.0.elapsed());
            if left.is_zero() {
                // A snapshot has the lowest priority, so on a busy machine it begins late.
                if began.elapsed() > TAKES * 3 || !is_being_taken(place) {
                    return Ok(history);
                }
                left = BEGINS;
            }
            let mut fds: Vec<PollFd<'_>> = watcher.iter().map(|watcher| PollFd::new(watcher, PollFlags::IN)).collect();
            let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
            if let Some(watcher) = &watcher {
                watcher.changed()?;
            }
        }
    }

    /// The store of a session, locked for changes.
    fn hold_turns(&self, view: &View, tree: &WorkingTree) -> Result<TurnStore> {
        let folder = store_folder(&self.home, view.id);
        TurnStore::open_or_make(&self.turn_git(), &folder, tree, TAKES)?.ok_or(Error::InUse { id: view.id })
    }

    /// The working tree of a session.
    fn tree_of(&self, view: &View) -> Result<WorkingTree> {
        let folder = Path::new(&view.cwd);
        let none = || ostler_git::GitError::NotARepository { folder: folder.to_owned() };
        Ok(WorkingTree::of(&self.turn_git(), folder)?.ok_or_else(none)?)
    }
}

/// Whether there is a process that takes a snapshot of this session, or is about to.
fn is_being_taken(place: &Place) -> bool {
    let Ok(session) = std::fs::canonicalize(&place.path) else { return false };
    let takes = |pid: i32| taken_of(pid).is_some_and(|folder| folder == session);
    process_table::others().unwrap_or_default().into_iter().any(takes)
}

/// The folder of the session of which this process takes a snapshot, or is about to.
fn taken_of(pid: i32) -> Option<PathBuf> {
    let words = process::first_words(pid);
    words.get(1).filter(|word| *word == TURN)?;
    process_table::descriptor(pid, words.last()?.strip_prefix("folder=")?.parse().ok()?)
}

/// Waits until no snapshot of one of these trees is being taken, before it is checked whether they can be removed: the
/// git of a snapshot would count as a process that works in the tree, and a snapshot of a partly removed tree would be
/// wrong.
pub(crate) fn wait_for_snapshots_of(trees: &[&Path]) -> Result<()> {
    let works_there = |folder: PathBuf| {
        let session = Dir::open(&folder).ok().and_then(|folder| Folder::new(folder).session().ok());
        session.is_some_and(|session| trees.iter().any(|tree| Path::new(&session.cwd).starts_with(tree)))
    };
    let takes = |pid: &i32| taken_of(*pid).is_some_and(works_there);
    let until = Instant::now() + TAKES * 3;
    while Instant::now() < until {
        let taking = process_table::others().unwrap_or_default().into_iter().find(takes);
        let Some(process) = taking.and_then(|pid| Identity::of(pid).ok().flatten()) else { return Ok(()) };
        if let Some(pidfd) = Pidfd::open(&process)? {
            ready::wait(&[Interest::read(pidfd.as_fd())], Some(until))?;
        }
    }
    Ok(())
}

/// The snapshots of a session.
struct Opened {
    view: View,
    history: History,
    store: TurnStore,
}

impl Opened {
    /// The files at the end of a turn.
    fn end_of(&self, turn: u32) -> Result<&Snapshot> {
        self.history.end_of(turn).ok_or_else(|| self.none_of(turn))
    }

    fn none_of(&self, turn: u32) -> Error {
        let turns = self.history.ends().iter().map(|one| one.turn).collect();
        Error::NoSnapshot { session: SessionRef::from(&self.view), turn, turns: ranges(turns) }
    }
}

/// `0, 2–5, 9`
#[must_use]
pub fn ranges(numbers: Vec<u32>) -> String {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            Some(_) | None => found.push((number, number)),
        }
    }
    let words = found.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_one_range() {
        assert_eq!(ranges(vec![0, 2, 3, 4, 5, 9, 10]), "0, 2–5, 9, 10");
        assert_eq!(ranges(Vec::new()), "");
    }
}
