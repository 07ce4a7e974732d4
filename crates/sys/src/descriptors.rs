//! Descriptors that are passed by number: handed over by the process that started us.

#![expect(unsafe_code, reason = "a number becomes an owned descriptor here and nowhere else")]

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::path::PathBuf;

/// Takes ownership of a descriptor that was handed over under this number, and keeps it from our own children.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < 3 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("descriptor {number} is not ours to take")));
    }
    // SAFETY: checked to be open below before anything uses it; each number is taken once, at the start of a process
    // that was handed exactly these descriptors.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    if let Err(error) = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC) {
        // Not open: forget the number, so that a descriptor that is not ours is not closed.
        std::mem::forget(fd);
        return Err(error.into());
    }
    Ok(fd)
}

/// Whether this process has a descriptor of this number.
#[must_use]
pub fn is_open(number: RawFd) -> bool {
    // SAFETY: asks about a number; nothing is read, changed or closed.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

/// Keeps all descriptors except the standard three from our own children.
pub fn keep_from_children() {
    // SAFETY: marks descriptors of this process; nothing is closed before an exec. An old kernel refuses the call, and
    // then nothing changes.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// A path to the file behind a descriptor, for as long as the descriptor is open.
pub fn path_of(descriptor: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()))
}

/// For opening a file where there may be a link or a pipe instead: a link is not followed, and a pipe is not waited
/// for.
pub const NO_FOLLOW_NO_WAIT: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Whether opening a file failed because there is a link in its place.
#[must_use]
pub fn met_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// The file behind this program, as a path that only this process can use.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The same as a path for other processes, for as long as this one lives.
#[must_use]
pub fn own_program_for_others() -> String {
    format!("/proc/{}/exe", std::process::id())
}

/// The open file behind this program, for starting it again whatever happens to its path.
pub fn own_binary() -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    Ok(open(OWN_PROGRAM, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Lets this process have this many open files, as far as the system allows it. Most shells allow 1024 and the system
/// far more.
///
/// The kernel's table of open files grows to that size here. If it grew by itself later, it would wait for every
/// processor each time when there are threads, which takes longer than opening a thousand files. So call this before
/// there are any threads.
pub fn allow(files: u64) {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.map_or(files, |maximum| maximum.min(files));
    if limit.current.is_some_and(|current| current < allowed) {
        // If this fails, opening fails when there are too many files, and that error is reported.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: limit.maximum });
    }
    // If this fails, everything only takes longer.
    if let (Ok(file), Ok(highest)) = (own_binary(), i32::try_from(allowed.saturating_sub(1))) {
        let _ = rustix::io::fcntl_dupfd_cloexec(&file, highest);
    }
}
