//! Moving bytes without copying them through our memory.
//!
//! The race this solves: a process that reads bytes and then writes them can be killed in between, and then they are
//! lost. `splice` moves them inside the kernel, and the position in the file belongs to an open file that is shared
//! with the process that takes over. So a process can be killed at any moment, and nothing is lost and nothing is moved
//! twice.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use rustix::termios::isatty;
use rustix::time::Timespec;
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
}

/// The result of one attempt to move bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    Some(usize),
    /// Nothing to move, or no room at the destination; poll reports when there is.
    NotNow,
    /// The source has ended.
    End,
}

/// Moves what there is from one descriptor to the other; at least one of them is a pipe, and neither side waits. A file
/// is read or written at its own position.
pub fn shift(from: impl AsFd, to: impl AsFd) -> io::Result<Moved> {
    shift_at_most(from, to, u64::MAX)
}

/// The same for at most this many bytes, which must not be zero.
pub fn shift_at_most(from: impl AsFd, to: impl AsFd, bytes: u64) -> io::Result<Moved> {
    let length = usize::try_from(bytes).unwrap_or(CHUNK).clamp(1, CHUNK);
    loop {
        match splice(from.as_fd(), None, to.as_fd(), None, length, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
            Ok(0) => return Ok(Moved::End),
            Ok(count) => return Ok(Moved::Some(count)),
            Err(Errno::AGAIN) => return Ok(Moved::NotNow),
            Err(Errno::INTR) => {}
            // A pseudo-terminal whose other side has closed reports its end with this error; from a disk it is a real
            // error.
            Err(Errno::IO) if isatty(from.as_fd()) => return Ok(Moved::End),
            // Between Linux 5.10 and 5.12 a terminal could not be spliced.
            Err(Errno::INVAL) if isatty(from.as_fd()) || isatty(to.as_fd()) => return carry(from, to),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Moves a little by reading and writing. If the process is killed between these two steps, the bytes are lost, so this
/// is only for kernels that cannot splice here.
fn carry(from: impl AsFd, to: impl AsFd) -> io::Result<Moved> {
    let mut bytes = [0; 1024];
    // Reading an empty pipe would wait, which we must not do.
    if !isatty(from.as_fd()) && waiting(from.as_fd())? == 0 {
        return Ok(Moved::NotNow);
    }
    if !is_ready(&to, PollFlags::OUT, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        return Ok(Moved::NotNow);
    }
    let count = match rustix::io::read(from, &mut bytes) {
        Ok(0) | Err(Errno::IO) => return Ok(Moved::End),
        Ok(count) => count,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Moved::NotNow),
        Err(error) => return Err(error.into()),
    };
    let mut written = 0;
    while written < count {
        match rustix::io::write(to.as_fd(), &bytes[written..count]) {
            Ok(more) => written += more,
            Err(Errno::AGAIN) => {
                is_ready(&to, PollFlags::OUT, None)?;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Moved::Some(count))
}

fn is_ready(fd: &impl AsFd, flags: PollFlags, timeout: Option<&Timespec>) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, flags)];
    match poll(&mut fds, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a descriptor can be read now, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    Bytes,
    Nothing,
    /// Nothing, and nothing will come.
    End,
}

/// Whether there is something to read.
pub fn ready(from: impl AsFd) -> io::Result<Ready> {
    let mut fds = [PollFd::new(&from, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) | Err(Errno::INTR) => Ok(Ready::Nothing),
        Ok(_) if fds[0].revents().contains(PollFlags::IN) => Ok(Ready::Bytes),
        Ok(_) => Ok(Ready::End),
        Err(error) => Err(error.into()),
    }
}

/// How many bytes wait in a pipe.
pub fn waiting(pipe: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(pipe)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::pty::Pty;

    #[test]
    fn where_a_terminal_cannot_be_spliced_bytes_are_carried_both_ways() {
        let pty = Pty::open(24, 80).unwrap();
        let pipe = Pipe::blocking().unwrap();
        assert_eq!(carry(&pipe.read, &pty.ours).unwrap(), Moved::NotNow);
        assert_eq!(carry(&pty.ours, &pipe.write).unwrap(), Moved::NotNow);
        rustix::io::write(&pipe.write, b"typed\n").unwrap();
        assert_eq!(carry(&pipe.read, &pty.ours).unwrap(), Moved::Some(6));
        let mut line = [0; 16];
        assert_eq!(rustix::io::read(&pty.theirs, &mut line).unwrap(), 6);
        // The terminal echoes what was typed.
        assert_eq!(carry(&pty.ours, &pipe.write).unwrap(), Moved::Some(7));
        drop(pty.theirs);
        // A process that another test starts at this moment has a copy of it until its exec.
        assert!(is_ready(&pty.ours, PollFlags::IN, None).unwrap());
        assert_eq!(carry(&pty.ours, &pipe.write).unwrap(), Moved::End);
    }
}
