//! Locks that the kernel releases by itself.
//!
//! flock, not fcntl: a POSIX lock is lost as soon as any descriptor of the file is closed anywhere in the process, and
//! it cannot be inherited. An flock lives exactly as long as the last copy of the open file.

use rustix::event::poll;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::time::{Duration, Instant};

/// How long until a lock with a time limit is tried again.
const AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// A lock that is held until this value, and every inherited copy of it, is gone.
#[derive(Debug)]
pub struct Held(OwnedFd);

impl Held {
    /// The open file that carries the lock, for handing it on.
    #[must_use]
    pub fn file(&self) -> &OwnedFd {
        &self.0
    }

    /// The same, for a process that takes over the lock.
    #[must_use]
    pub fn into_file(self) -> OwnedFd {
        self.0
    }
}

/// Takes the lock if it is free. `Ok(None)` when another process has it.
pub fn try_exclusive(file: OwnedFd) -> io::Result<Option<Held>> {
    match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Held(file))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock, waiting for it no longer than this. `Ok(None)` when it is still held then. The kernel can wait for a
/// lock only without a limit, so the lock is tried again every few milliseconds; a lock that is free costs one call.
pub fn exclusive_within(file: OwnedFd, limit: Duration) -> io::Result<Option<Held>> {
    let deadline = Instant::now() + limit;
    loop {
        match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Held(file))),
            Err(Errno::WOULDBLOCK) if Instant::now() >= deadline => return Ok(None),
            Err(Errno::WOULDBLOCK) => match poll(&mut [], Some(&AGAIN)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for the lock.
pub fn exclusive(file: OwnedFd) -> io::Result<Held> {
    loop {
        match flock(file.as_fd(), FlockOperation::LockExclusive) {
            Ok(()) => return Ok(Held(file)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until no process has the lock exclusively. Any number of processes can have it shared.
pub fn shared(file: OwnedFd) -> io::Result<Held> {
    loop {
        match flock(file.as_fd(), FlockOperation::LockShared) {
            Ok(()) => return Ok(Held(file)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_lock_with_a_limit_is_waited_for_and_then_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || OwnedFd::from(std::fs::File::create(&path).unwrap());
        let held = exclusive_within(open(), Duration::ZERO).unwrap();
        assert!(held.is_some(), "it is free");
        assert!(exclusive_within(open(), Duration::ZERO).unwrap().is_none(), "it is held");
        let file = open();
        let waits = std::thread::spawn(move || exclusive_within(file, Duration::from_secs(600)).unwrap().is_some());
        drop(held);
        assert!(waits.join().unwrap(), "it was let go");
    }
}
