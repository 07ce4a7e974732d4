//! Waiting until descriptors are ready: how a program without an async runtime waits for several things.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::time::Timespec;
use std::io;
use std::time::{Duration, Instant};

/// A descriptor, and what it is watched for. It also counts as ready when its other end is gone.
#[derive(Clone, Copy, Debug)]
pub struct Interest<'a> {
    /// The descriptor.
    pub fd: BorrowedFd<'a>,
    /// There is something to read.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
}

impl<'a> Interest<'a> {
    /// Waits until there is something to read.
    #[must_use]
    pub fn read(fd: BorrowedFd<'a>) -> Interest<'a> {
        Interest { fd, read: true, write: false }
    }

    /// Waits until there is room to write.
    #[must_use]
    pub fn write(fd: BorrowedFd<'a>) -> Interest<'a> {
        Interest { fd, read: false, write: true }
    }
}

/// Waits until one of them is ready, or until this time, and returns for each whether it is ready. None is ready when
/// the time was up or a signal came.
pub fn wait(interests: &[Interest<'_>], until: Option<Instant>) -> io::Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = interests
        .iter()
        .map(|interest| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, interest.read);
            flags.set(PollFlags::OUT, interest.write);
            PollFd::from_borrowed_fd(interest.fd, flags)
        })
        .collect();
    let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}

/// Whether there is something to read, without waiting for it.
pub fn is_readable(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(wait(&[Interest::read(fd)], Some(Instant::now()))?[0])
}

fn timespec(duration: Duration) -> Timespec {
    // A little late is better than a little early, which would need another wait.
    let millis = i64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(i64::MAX);
    Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_ready_is_told_and_the_time_may_be_up() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let interests = [Interest::read(reader.as_fd()), Interest::write(writer.as_fd())];
        assert_eq!(wait(&interests, None).unwrap(), [false, true]);
        assert_eq!(wait(&interests[..1], Some(Instant::now())).unwrap(), [false]);
        assert!(!is_readable(reader.as_fd()).unwrap());
        writer.write_all(b"x").unwrap();
        assert!(is_readable(reader.as_fd()).unwrap());
        drop(writer);
        let mut rest = [0; 2];
        assert_eq!(std::io::Read::read(&mut &reader, &mut rest).unwrap(), 1);
        assert_eq!(wait(&[Interest::read(reader.as_fd())], None).unwrap(), [true], "the other end is gone");
    }
}
