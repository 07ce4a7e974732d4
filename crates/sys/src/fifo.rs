//! A lock whose end can be polled: a named pipe.
//!
//! The kernel can wait for a lock only in a call that waits for nothing else, and wakes all waiting processes. A named
//! pipe has a lock like any other file, and its readers are told when its last writer is gone. So the owner opens it
//! for reading and writing and locks that open file, and every process that waits opens it for reading. The kernel
//! releases the lock before it tells the readers, and both happen when the last inherited copy of the open file is
//! closed: a process that is told finds the lock free.
//!
//! Only single bytes are ever sent through such a pipe, to wake its owner ([`nudge`]).

use crate::dir::Dir;
use crate::lock::{self, Held};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, mknodat};
use rustix::io::Errno;
use std::io;

/// Makes the pipe. `Ok(false)`: the name is taken.
pub fn make(folder: &Dir, name: &str) -> io::Result<bool> {
    match mknodat(folder, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock if it is free. `Ok(None)` when another process has it. The process that takes it is woken by
/// [`nudge`].
pub fn own(folder: &Dir, name: &str) -> io::Result<Option<Held>> {
    lock::try_exclusive(folder.file(name, OFlags::RDWR | OFlags::NONBLOCK)?)
}

/// A descriptor to poll: it hangs up when the owner is gone. It hangs up only if the pipe has an owner now, or gets one
/// after this was opened. So the lock has to be checked afterwards.
pub fn watch(folder: &Dir, name: &str) -> io::Result<OwnedFd> {
    folder.file(name, OFlags::RDONLY | OFlags::NONBLOCK)
}

/// Whether the watched pipe has an owner.
pub fn is_owned(watched: &OwnedFd) -> io::Result<bool> {
    match flock(watched, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(watched, FlockOperation::Unlock)?;
            Ok(false)
        }
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Wakes the owner. Without an owner nothing happens.
pub fn nudge(folder: &Dir, name: &str) -> io::Result<()> {
    let pipe = match folder.file(name, OFlags::WRONLY | OFlags::NONBLOCK) {
        Ok(pipe) => pipe,
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match rustix::io::write(&pipe, b"!") {
        // Full: the owner has been woken often enough.
        Ok(_) | Err(Errno::AGAIN | Errno::PIPE) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads the bytes with which the owner was woken.
pub fn drain(owned: &OwnedFd) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        match rustix::io::read(owned, &mut bytes) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fd::AsFd;
    use rustix::time::Timespec;

    fn hangs_up(watched: &OwnedFd, wait: bool) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(watched, PollFlags::empty())];
        poll(&mut fds, if wait { None } else { Some(&now) }).unwrap();
        fds[0].revents().contains(PollFlags::HUP)
    }

    #[test]
    fn readers_are_told_when_the_last_copy_of_the_owner_is_closed_and_find_the_lock_free() {
        let home = tempfile::tempdir().unwrap();
        let folder = Dir::open(home.path()).unwrap();
        assert!(make(&folder, "slot").unwrap());
        assert!(!make(&folder, "slot").unwrap());
        let owner = own(&folder, "slot").unwrap().unwrap();
        let copy = rustix::io::fcntl_dupfd_cloexec(owner.file(), 3).unwrap();
        let watched = watch(&folder, "slot").unwrap();
        assert!(is_owned(&watched).unwrap());
        drop(owner);
        // A process that asks for the lock and does not get it has opened the pipe for writing, too.
        assert!(own(&folder, "slot").unwrap().is_none());
        assert!(!hangs_up(&watched, false), "a copy is left");
        drop(copy);
        assert!(hangs_up(&watched, true));
        assert!(!is_owned(&watched).unwrap());
        assert!(own(&folder, "slot").unwrap().is_some());
    }

    #[test]
    fn an_owner_is_nudged_and_one_that_is_gone_is_not() {
        let home = tempfile::tempdir().unwrap();
        let folder = Dir::open(home.path()).unwrap();
        make(&folder, "entry").unwrap();
        nudge(&folder, "entry").unwrap();
        nudge(&folder, "none").unwrap();
        let owner = own(&folder, "entry").unwrap().unwrap();
        assert!(!crate::ready::is_readable(owner.file().as_fd()).unwrap());
        for _ in 0..10_000 {
            nudge(&folder, "entry").unwrap();
        }
        assert!(crate::ready::is_readable(owner.file().as_fd()).unwrap());
        drain(owner.file()).unwrap();
        for _ in 0..20 {
            drain(owner.file()).unwrap();
        }
        assert!(!crate::ready::is_readable(owner.file().as_fd()).unwrap());
    }
}
