//! The process called `__turn`: takes one snapshot of a session's working tree, records it, and exits. It runs with the
//! lowest priority.
//!
//! A snapshot may take ten seconds. A tree that takes longer is too large: this is recorded, and no more snapshots are
//! taken in that session.

use super::{TAKES, store_folder};
use crate::config::Config;
use crate::environment::Environment;
use crate::error::Result;
use ostler_core::limits::default_min_free;
use ostler_core::turns::{Entry, History, Snapshot, What};
use ostler_git::GitError;
use ostler_git::git::Git;
use ostler_git::turns::{Bounds, TurnStore, WorkingTree};
use ostler_store::folder::Folder;
use ostler_store::home::Home;
use ostler_store::{progress, turns};
use ostler_sys::descriptors::{inherited, path_of};
use ostler_sys::dir::{Dir, space};
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::{clock, priority};
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

/// If taking the lock took this long, another snapshot held it.
const WAITED: std::time::Duration = std::time::Duration::from_millis(200);

/// How many names of skipped files are recorded.
const NAMED: usize = 50;

/// The main function of this process; returns its exit code. The arguments: `begin` or `end`, the number of the turn,
/// and the session's folder.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    pause_points::act_as(Role::Snapshot);
    priority::be_last();
    pause_points::at(Point::SnapshotEntered);
    let began = Instant::now();
    let Some(given) = Given::of(arguments) else { return 2 };
    let Ok(noted) = given.folder() else { return 1 };
    let turn = given.turn;
    // A thread that waits for a file system that does not respond cannot check the time.
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(given.take(began)));
    match told.recv_timeout(TAKES * 2) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            let late = matches!(error, crate::Error::Git(GitError::TookTooLong));
            let why = error.to_string();
            let what = if late { gave_up(turn) } else { What::Failed { turn, why } };
            i32::from(turns::note(&noted, &Entry { at: clock::now(), what }).is_err())
        }
        Err(_) => i32::from(turns::note(&noted, &Entry { at: clock::now(), what: gave_up(turn) }).is_err()),
    }
}

fn gave_up(turn: u32) -> What {
    What::GaveUp { turn, why: format!("a snapshot took longer than {} s", TAKES.as_secs()) }
}

/// The arguments of this process.
struct Given {
    begins: bool,
    turn: u32,
    dir: Dir,
}

impl Given {
    fn of(arguments: &[String]) -> Option<Given> {
        let [when, turn, folder] = arguments else { return None };
        let number = folder.strip_prefix("folder=")?.parse().ok()?;
        Some(Given { begins: when == "begin", turn: turn.parse().ok()?, dir: Dir::adopt(inherited(number).ok()?) })
    }

    /// The session's folder, opened once more.
    fn folder(&self) -> io::Result<Folder> {
        Dir::open(std::fs::read_link(path_of(&self.dir))?).map(Folder::new)
    }

    fn take(self, began: Instant) -> Result<()> {
        let folder = self.folder()?;
        let home = Home::at(root_above(&std::fs::read_link(path_of(&self.dir))?));
        let session = folder.session()?;
        let environment = Environment::of_process();
        let git = Git::new(environment.variables());
        let history = turns::read(&folder)?;
        let run = folder.newest_run()?;
        if history.gave_up().is_some() || history.has(self.turn, run, self.begins) {
            return Ok(());
        }
        let Some(tree) = WorkingTree::of(&git, Path::new(&session.cwd))? else { return Ok(()) };
        let config = Config::load(&environment.lookup());
        let disk = space(&self.dir)?;
        if disk.free < config.min_free_space.unwrap_or_else(|| default_min_free(disk.total)) {
            return Err(crate::Error::DiskFull);
        }
        let waited = Instant::now();
        let store = store_folder(&home, session.id);
        let Some(store) = TurnStore::open_or_make(&git, &store, &tree, TAKES)? else {
            return Err(crate::Error::InUse { id: session.id });
        };
        // This process must not work in the folder of a session, which may be moved or deleted meanwhile.
        std::env::set_current_dir(store_folder(&home, session.id))?;
        // The time that another snapshot took does not count.
        let began = if waited.elapsed() < WAITED { began } else { Instant::now() };
        let bounds = Bounds { largest_file: config.snapshot_file_limit, until: Some(began + TAKES) };
        // Another process may have taken this snapshot while we waited.
        let history = turns::read(&folder)?;
        if history.has(self.turn, run, self.begins) {
            return Ok(());
        }
        let n = history.next();
        let taken = store.take(&tree, &n.to_string(), &bounds)?;
        let record = folder.run(run)?.record()?;
        let state = progress::past(folder.dir(), &record.plan)?.state;
        let mixed = match self.begins {
            // The agent has been running for a moment.
            true => taken.disturbed || record.started.is_some_and(|at| taken.newest_ns > at.as_nanosecond()),
            false => state.turns != self.turn || state.turn_running(),
        };
        let mut skipped = taken.skipped.clone();
        skipped.truncate(NAMED);
        let snapshot = Snapshot {
            n,
            turn: self.turn,
            run,
            commit: taken.commit.clone(),
            files: taken.files,
            changed: taken.changed,
            ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            cpu_ms: u64::try_from(priority::processor_time().as_millis()).unwrap_or(u64::MAX),
            mixed,
            skipped,
        };
        let what = if self.begins { What::Begun(snapshot) } else { What::Ended(snapshot) };
        turns::note(&folder, &Entry { at: clock::now(), what })?;
        pause_points::at(Point::SnapshotNoted);
        store.remember(&taken)?;
        thin(&folder, &store)
    }
}

/// Old snapshots are thinned out, as old checkpoints are.
fn thin(folder: &Folder, store: &TurnStore) -> Result<()> {
    let history = turns::read(folder)?;
    let thinned = history.thinned(clock::now());
    if thinned.0.len() < history.0.len() {
        turns::replace(folder, &thinned)?;
    }
    Ok(store.keep(&names(&thinned))?)
}

/// What the snapshots are called in the store.
pub(super) fn names(history: &History) -> Vec<String> {
    history.snapshots().map(|snapshot| snapshot.n.to_string()).collect()
}

/// The home in which a session's folder is.
fn root_above(folder: &Path) -> std::path::PathBuf {
    folder.ancestors().nth(2).unwrap_or(folder).to_owned()
}
