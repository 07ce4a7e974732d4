//! Moving bytes without touching them.
//!
//! The race this solves: a process that reads bytes and then writes them can be killed in between, and they are gone.
//! `splice` moves them inside the kernel, and the position in the file is the one of an open file shared with whoever
//! takes over; killed anywhere, nothing is lost and nothing is moved twice.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::io;

/// How much one call moves at most: enough to fill a pipe, small enough to look at other things in between.
const CHUNK: usize = 1 << 20;

/// Both ends of a pipe.
#[derive(Debug)]
pub struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

impl Pipe {
    /// A pipe whose ends block: what an agent expects of its standard descriptors.
    pub fn blocking() -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Pipe { read, write })
    }

    /// More room, where the system grants it: fewer wake-ups for the same bytes.
    pub fn widen(&self, bytes: usize) {
        // A smaller pipe is slower and otherwise the same.
        let _ = fcntl_setpipe_size(&self.write, bytes);
    }
}

/// What one attempt to move bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    Some(usize),
    /// Nothing to move, or no room where it should go; poll tells when.
    NotNow,
    /// The source has ended.
    End,
}

/// Moves what there is from one descriptor to the other; at least one of them is a pipe, and neither side waits. A file
/// is read or written at its own position.
pub fn shift(from: impl AsFd, to: impl AsFd) -> io::Result<Moved> {
    loop {
        match splice(from.as_fd(), None, to.as_fd(), None, CHUNK, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
            Ok(0) => return Ok(Moved::End),
            Ok(count) => return Ok(Moved::Some(count)),
            Err(Errno::AGAIN) => return Ok(Moved::NotNow),
            Err(Errno::INTR) => {}
            // A pseudo-terminal whose other side has closed says so with this error.
            Err(Errno::IO) => return Ok(Moved::End),
            Err(error) => return Err(error.into()),
        }
    }
}

/// How many bytes wait in a pipe.
pub fn waiting(pipe: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(pipe)?)
}
