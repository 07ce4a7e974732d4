//! A session at rest: it has ended, its helpers have left, and for as long as this value lives nobody can begin to keep
//! it. Only such a folder is ever moved or deleted.
//!
//! The race this solves: the outcome of a run is on the disk a moment before its keeper and holder leave. Whoever moved
//! the folder in that moment would move it under their feet.

use crate::client::look_and_record;
use crate::exit::{Code, Failure, Result};
use ostler_core::view::{Phase, View};
use ostler_store::StoreError;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_sys::dir::Dir;
use ostler_sys::lock::{self, Held};
use ostler_sys::process::{Identity, Pidfd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::time::Timespec;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long helpers that have nothing left to do may take to leave, and how often we look whether they should.
const LEAVING: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Why a session cannot be taken.
#[derive(Debug)]
pub enum NotStill {
    /// It has not ended.
    Runs,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for NotStill {
    fn from(error: E) -> NotStill {
        NotStill::Failed(error.into())
    }
}

/// A session that nobody keeps, held.
#[derive(Debug)]
pub struct Still {
    place: Place,
    /// What is true of it; the damage, when its records cannot be read.
    pub view: std::result::Result<Box<View>, String>,
    _held: Held,
}

impl Still {
    /// Takes a session that has ended. One whose records cannot be read counts as ended when nobody holds its locks.
    pub fn take(place: &Place) -> std::result::Result<Still, NotStill> {
        let folder = place.open()?;
        match view_or_damage(place)? {
            Ok(view) if !view.ended => return Err(NotStill::Runs),
            // The agent's own lock is held as long as anything of it lives, whatever the records say.
            Err(_) if take_lock(&folder, "agent.lock")?.is_none() => return Err(NotStill::Runs),
            Ok(_) | Err(_) => wait_for_helpers(&folder, place)?,
        }
        let deadline = Instant::now() + LEAVING;
        let held = loop {
            if let Some(held) = take_lock(&folder, "keeper.lock")? {
                break held;
            }
            // One helper may have replaced another while we waited for that, and is about to leave as well.
            let over = ostler_store::look::look(place).is_ok_and(|view| view.ended) && Instant::now() < deadline;
            if !over {
                return Err(NotStill::Runs);
            }
            wait_for_helpers(&folder, place)?;
            pause()?;
        };
        // Somebody may have moved it, or started its next run, before the lock was ours.
        if !is_same(&folder, place)? {
            return Err(moved(place).into());
        }
        match view_or_damage(place)? {
            Ok(view) if !view.ended => Err(NotStill::Runs),
            view => Ok(Still { place: place.clone(), view, _held: held }),
        }
    }

    /// Gives the folder another place, durably, unless something is there already.
    pub fn rename(&self, into: &Dir, name: &str) -> Result<()> {
        let id = self.place.id;
        let from = self.parent()?;
        from.rename_new(id.as_str(), into, name).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                Failure::new(Code::Failed, format!("{id}: a folder with that name already exists; see ostler doctor"))
            }
            ErrorKind::NotFound => moved(&self.place),
            _ => Failure::ours(format!("{id} cannot be moved: {error}")),
        })?;
        // The new name first: after a power cut the folder may have two names, and never none.
        into.sync()?;
        Ok(from.sync()?)
    }

    /// The folder that it lies in.
    pub fn parent(&self) -> Result<Dir> {
        Ok(Dir::open(self.parent_path())?)
    }

    pub fn parent_path(&self) -> &Path {
        self.place.path.parent().unwrap_or(Path::new("/"))
    }
}

fn moved(place: &Place) -> Failure {
    let id = place.id;
    Failure::new(Code::Failed, format!("{id} was just moved by another command; find it with: ostler ls -a"))
}

/// Whether the folder that we hold open is still the one at that place.
fn is_same(folder: &Folder, place: &Place) -> Result<bool> {
    let ours = rustix::fs::fstat(folder.dir()).map_err(std::io::Error::from)?;
    Ok(rustix::fs::stat(&place.path).is_ok_and(|there| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)))
}

/// The view, or what is wrong with the folder. A look that failed for another reason than damage is an error.
fn view_or_damage(place: &Place) -> Result<std::result::Result<Box<View>, String>> {
    match ostler_store::look::look(place).map_err(StoreError::without_session) {
        Ok(_) => look_and_record(place).map(|view| Ok(Box::new(view))),
        Err(error @ (StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Copy { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error @ (StoreError::Io { .. } | StoreError::Newer { .. } | StoreError::Of { .. })) => Err(error.into()),
    }
}

/// Looks until the end of a session that seems to have ended is recorded, or until it turns out to be alive: somebody may
/// have its lock who is just beginning to keep it, or just leaving.
pub fn until_recorded(place: &Place) -> Result<View> {
    let deadline = Instant::now() + LEAVING;
    loop {
        let view = look_and_record(place)?;
        let recorded = || -> Result<bool> { Ok(view.run == 0 || place.open()?.run(view.run)?.outcome()?.is_some()) };
        if !view.ended || recorded()? || Instant::now() > deadline {
            return Ok(view);
        }
        pause()?;
    }
}

/// The same for a session that is about to end: its processes were killed a moment ago and the kernel is still ending them, or
/// its agent is gone and its helpers are writing that down.
pub fn until_settled(place: &Place) -> Result<View> {
    let deadline = Instant::now() + LEAVING;
    loop {
        let view = until_recorded(place)?;
        if view.ended || !wait_for_one_of(&ending(place, &view)?, deadline)? {
            return Ok(view);
        }
    }
}

/// The processes of a session that will be gone in a moment.
fn ending(place: &Place, view: &View) -> Result<Vec<Identity>> {
    let folder = place.open()?;
    let run = folder.newest_run().and_then(|run| folder.run(run)).and_then(|run| run.record());
    let agent = run.ok().and_then(|record| record.agent);
    let leaves = view.state == Phase::Stopping && !view.alive;
    let mut found = Vec::new();
    for process in folder.helpers().into_iter().map(|helper| helper.process).chain(agent).filter(Identity::may_live) {
        if leaves || process.is_ending()? {
            found.push(process);
        }
    }
    Ok(found)
}

/// Waits until one of these processes, which lived a moment ago, is gone. False when there is none, or when it takes too long.
pub fn wait_for_one_of(processes: &[Identity], deadline: Instant) -> Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    if processes.is_empty() || left.is_zero() {
        return Ok(false);
    }
    let pidfds = processes.iter().map(Pidfd::open).collect::<std::io::Result<Vec<_>>>()?;
    if pidfds.iter().any(Option::is_none) {
        return Ok(true);
    }
    let mut fds: Vec<PollFd<'_>> = pidfds.iter().flatten().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
    match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

/// Nobody says when a lock is let go.
fn pause() -> Result<()> {
    match poll(&mut [], Timespec::try_from(LOOK_AGAIN).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

/// Waits until holder and keeper of an ended session are gone: they have nothing left to do but to leave.
fn wait_for_helpers(folder: &Folder, place: &Place) -> std::result::Result<(), NotStill> {
    // A record that cannot be read names nobody; the lock decides.
    for helper in folder.helpers() {
        let Some(pidfd) = Pidfd::open(&helper.process)? else {
            continue;
        };
        let deadline = Instant::now() + LEAVING;
        let limit = Timespec::try_from(LOOK_AGAIN).ok();
        while poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], limit.as_ref()).map_err(std::io::Error::from)? == 0 {
            // It may be a helper of the next run, which somebody else has begun, and which will not leave.
            if ostler_store::look::look(place).is_ok_and(|view| !view.ended) {
                return Err(NotStill::Runs);
            }
            if Instant::now() > deadline {
                let pid = helper.process.pid();
                let words = format!("process {pid}, a helper of the session, does not exit; check it, then try again");
                return Err(Failure::ours(words).into());
            }
        }
    }
    Ok(())
}

fn take_lock(folder: &Folder, name: &str) -> Result<Option<Held>> {
    Ok(lock::try_exclusive(folder.dir().file(name, OFlags::RDWR | OFlags::CREATE)?)?)
}
