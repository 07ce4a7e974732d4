//! Locks that the kernel lets go of by itself.
//!
//! flock, not fcntl: a POSIX lock is lost as soon as any descriptor of the file is closed anywhere in the process, and
//! it cannot be inherited. An flock lives exactly as long as the last copy of the open file.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::io;

/// A lock that is held until this value, and every inherited copy of it, is gone.
#[derive(Debug)]
pub struct Held(OwnedFd);

impl Held {
    /// The open file that carries the lock, for handing it on.
    #[must_use]
    pub fn file(&self) -> &OwnedFd {
        &self.0
    }
}

/// Takes the lock if it is free. `Ok(None)` when somebody has it.
pub fn try_exclusive(file: OwnedFd) -> io::Result<Option<Held>> {
    match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Held(file))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
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
