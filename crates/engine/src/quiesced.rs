//! A session at rest: it has ended, its helpers have exited, and no keeper can start while this value exists. Only such
//! a folder is ever moved or deleted.
//!
//! The race this solves: the outcome of a run is on the disk a moment before its keeper and holder exit. A folder that
//! is moved in that moment would be moved while they still write to it.

use crate::error::{Error, Result};
use crate::moved;
use crate::request::look_and_record;
use ostler_core::view::{Phase, View};
use ostler_store::StoreError;
use ostler_store::archive_file;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_sys::dir::Dir;
use ostler_sys::lock::{self, Held};
use ostler_sys::process::{Identity, Pidfd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::time::Timespec;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long helpers that have nothing left to do may take to exit, and how often we check.
const LEAVING: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Why a session cannot be taken.
#[derive(Debug)]
pub enum NotQuiesced {
    /// It has not ended.
    Runs,
    /// Its state could not be determined.
    Failed(Error),
}

impl<E: Into<Error>> From<E> for NotQuiesced {
    fn from(error: E) -> NotQuiesced {
        NotQuiesced::Failed(error.into())
    }
}

/// A session without a keeper, whose lock we hold.
#[derive(Debug)]
pub struct Quiesced {
    place: Place,
    /// Its view, or the damage when its records cannot be read.
    pub view: std::result::Result<Box<View>, String>,
    held: Held,
}

impl Quiesced {
    /// Takes a session that has ended. A session whose records cannot be read counts as ended when no process holds its
    /// locks.
    pub fn take(place: &Place) -> std::result::Result<Quiesced, NotQuiesced> {
        // Files that we create there would belong to us: the owner of the session could neither take the locks nor read
        // the archive.
        let me = rustix::process::geteuid().as_raw();
        if std::fs::symlink_metadata(&place.path).is_ok_and(|stat| stat.uid() != me) {
            return Err(Error::OtherUser { id: place.id }.into());
        }
        let was_packed = place.is_packed();
        Quiesced::take_at_rest(place).or_else(|not| {
            // A session that another command has moved or packed looks as if it had no records, or as if its helpers
            // did not exit.
            if moved::is_gone(place) {
                Err(moved::by_another_command(place).into())
            } else if !was_packed && place.is_packed() {
                Quiesced::take_packed(place)
            } else {
                Err(not)
            }
        })
    }

    fn take_at_rest(place: &Place) -> std::result::Result<Quiesced, NotQuiesced> {
        if place.is_packed() {
            return Quiesced::take_packed(place);
        }
        let folder = place.open()?;
        match view_or_damage(place)? {
            Ok(view) if !view.ended => return Err(NotQuiesced::Runs),
            // The agent's own lock is held as long as any process of the agent lives, whatever the records say.
            Err(_) if take_lock(&folder, "agent.lock")?.is_none() => return Err(NotQuiesced::Runs),
            Ok(_) | Err(_) => wait_for_helpers(&folder, place)?,
        }
        let deadline = Instant::now() + LEAVING;
        let held = loop {
            if let Some(held) = take_lock(&folder, "keeper.lock")? {
                break held;
            }
            // A helper may have replaced the one that we waited for, and is about to exit as well.
            let over = ostler_view::look::look(place).is_ok_and(|view| view.ended) && Instant::now() < deadline;
            if !over {
                return Err(NotQuiesced::Runs);
            }
            wait_for_helpers(&folder, place)?;
            pause()?;
        };
        // Another command may have moved the session, or started its next run, before we got the lock.
        if !is_same(&folder, place)? {
            return Err(moved::by_another_command(place).into());
        }
        match view_or_damage(place)? {
            Ok(view) if !view.ended => Err(NotQuiesced::Runs),
            view => Ok(Quiesced { place: place.clone(), view, held }),
        }
    }

    /// A packed session has no keeper. Only the process that holds the lock of the archive unpacks or deletes it.
    fn take_packed(place: &Place) -> std::result::Result<Quiesced, NotQuiesced> {
        let held = archive_file::lock(place.path.parent().and_then(Path::parent).unwrap_or(Path::new("/")))?;
        if !place.is_packed() {
            return Err(moved::by_another_command(place).into());
        }
        let view = match ostler_view::look::look(place).map_err(StoreError::without_session) {
            Ok(view) => Ok(Box::new(view)),
            Err(error) => Err(error.to_string()),
        };
        Ok(Quiesced { place: place.clone(), view, held })
    }

    /// The lock that is held.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Moves the folder durably, unless something has the new name already.
    pub fn rename(&self, into: &Dir, name: &str) -> Result<()> {
        let id = self.place.id;
        let from = self.parent()?;
        from.rename_new(id.as_str(), into, name).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::FolderExists { id },
            ErrorKind::NotFound => moved::by_another_command(&self.place),
            _ => Error::CannotMove { id, error },
        })?;
        // The new name is synced first: after a power cut the folder may have two names, but never none.
        into.sync()?;
        Ok(from.sync()?)
    }

    /// The folder that contains the session's folder.
    pub fn parent(&self) -> Result<Dir> {
        Ok(Dir::open(self.parent_path())?)
    }

    /// The path of the folder that contains the session's folder.
    pub fn parent_path(&self) -> &Path {
        self.place.path.parent().unwrap_or(Path::new("/"))
    }
}

/// Whether the folder that we hold open is still the one at that place.
fn is_same(folder: &Folder, place: &Place) -> Result<bool> {
    let ours = rustix::fs::fstat(folder.dir()).map_err(std::io::Error::from)?;
    Ok(rustix::fs::stat(&place.path).is_ok_and(|there| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)))
}

/// The view, or what is wrong with the folder. A look that failed for another reason than damage is an error.
fn view_or_damage(place: &Place) -> Result<std::result::Result<Box<View>, String>> {
    match ostler_view::look::look(place).map_err(StoreError::without_session) {
        Ok(_) => look_and_record(place).map(|view| Ok(Box::new(view))),
        Err(error @ (StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Copy { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error @ (StoreError::Io { .. } | StoreError::Newer { .. } | StoreError::Of { .. })) => Err(error.into()),
    }
}

/// Looks until the end of a session that seems to have ended is recorded, or until the session turns out to be alive:
/// its lock may be held by a process that is just beginning to keep it, or is just exiting.
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

/// The same for a session that is about to end: its processes were killed a moment ago and the kernel is still ending
/// them, or its agent is gone and its helpers are recording that.
pub fn until_settled(place: &Place) -> Result<View> {
    let deadline = Instant::now() + LEAVING;
    let mut known_gone = Vec::new();
    loop {
        let view = until_recorded(place)?;
        if view.ended {
            return Ok(view);
        }
        let Processes { ending, gone } = processes(place, &view)?;
        // A process that has gone since the look makes the view untrue.
        let gone_since = gone.iter().any(|process| !known_gone.contains(process));
        if !gone_since && !wait_for_one_of(&ending, deadline)? {
            return Ok(view);
        }
        known_gone = gone;
    }
}

/// The recorded processes of a session that do not stay.
struct Processes {
    /// They will be gone in a moment.
    ending: Vec<Identity>,
    gone: Vec<Identity>,
}

fn processes(place: &Place, view: &View) -> Result<Processes> {
    let folder = place.open()?;
    let run = folder.newest_run().and_then(|run| folder.run(run)).and_then(|run| run.record());
    let agent = run.ok().and_then(|record| record.agent);
    let leaves = view.state == Phase::Stopping && !view.alive;
    let recorded = folder.helpers().into_iter().map(|helper| helper.process).chain(agent);
    let (living, gone): (Vec<Identity>, Vec<Identity>) = recorded.partition(Identity::may_live);
    let mut ending = Vec::new();
    for process in living {
        if leaves || process.is_ending()? {
            ending.push(process);
        }
    }
    Ok(Processes { ending, gone })
}

/// Waits until one of these processes, which lived a moment ago, is gone. False when there are no processes, or when
/// the deadline passes.
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

/// The release of a lock is not signalled, so it has to be polled.
fn pause() -> Result<()> {
    match poll(&mut [], Timespec::try_from(LOOK_AGAIN).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

/// Waits until holder and keeper of an ended session have exited: they have nothing left to do.
fn wait_for_helpers(folder: &Folder, place: &Place) -> std::result::Result<(), NotQuiesced> {
    // A record that cannot be read names no process; then the lock decides.
    for process in folder.helper_processes() {
        let Some(pidfd) = Pidfd::open(&process)? else {
            continue;
        };
        let deadline = Instant::now() + LEAVING;
        let limit = Timespec::try_from(LOOK_AGAIN).ok();
        while poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], limit.as_ref()).map_err(std::io::Error::from)? == 0 {
            // It may be a helper of the next run, which another command has begun and which does not exit now.
            if ostler_view::look::look(place).is_ok_and(|view| !view.ended) {
                return Err(NotQuiesced::Runs);
            }
            if Instant::now() > deadline {
                return Err(Error::HelperStays { pid: process.pid() }.into());
            }
        }
    }
    Ok(())
}

fn take_lock(folder: &Folder, name: &str) -> Result<Option<Held>> {
    let file = folder.dir().file(name, OFlags::RDWR | OFlags::CREATE).map_err(StoreError::io(name))?;
    Ok(lock::try_exclusive(file)?)
}
