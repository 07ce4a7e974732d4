//! Waiting for something to happen. Every wait is for an event (a process that exits, a folder that changes) and fails
//! with a message: a test that hangs would not show what it waited for.

use ostler_sys::notify::Watcher;
use ostler_sys::process::{Identity, Pidfd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::time::Timespec;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long any single wait may take before the test has failed. Real agents need seconds for their first output, more
/// on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Some conditions change no watched folder (a process that exits, a counter in /proc); they are checked this often.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Lets time pass where no event is waited for: until the moment of a fault, or between two looks of a witness. What a test
/// asserts must not depend on how much has happened meanwhile.
pub fn let_pass(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until one of these is readable or the time has passed; true when one is.
pub fn readable(fds: &[BorrowedFd<'_>], time: Duration) -> bool {
    let end = Instant::now() + time;
    loop {
        let mut polled: Vec<PollFd<'_>> = fds.iter().map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).expect("a minute fits");
        match poll(&mut polled, Some(&left)) {
            Ok(count) => return count > 0,
            Err(Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Waits until the process has exited, or for this long; true when it has.
pub fn ends_within(process: &Identity, time: Duration) -> bool {
    match Pidfd::open(process).expect("a pidfd") {
        Some(pidfd) => readable(&[rustix::fd::AsFd::as_fd(&pidfd)], time),
        None => true,
    }
}

/// Waits until the process has exited.
pub fn ended(process: &Identity) {
    assert!(ends_within(process, LIMIT), "process {} is still alive after {LIMIT:?}", process.pid());
}

/// Checks whenever one of the folders changes, until `found` finds something.
pub fn until<T>(what: &str, folders: &[&Path], found: impl FnMut() -> Option<T>) -> T {
    until_or(what, folders, found, String::new)
}

/// Like [`until`]; on a failure the message ends with what `instead` returns.
pub fn until_or<T>(
    what: &str,
    folders: &[&Path],
    mut found: impl FnMut() -> Option<T>,
    instead: impl FnOnce() -> String,
) -> T {
    // There may be no free inotify instance: a user has 128 of them in all. Then only the repeated checks remain.
    let watcher = Watcher::new().ok();
    for folder in folders {
        if let Some(watcher) = &watcher {
            // A folder that does not exist yet cannot be watched, so the condition is checked again and again.
            let _ = watcher.watch(folder);
        }
    }
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = found() {
            return found;
        }
        if Instant::now() >= end {
            panic!("waited {LIMIT:?} in vain until {what}{}", instead());
        }
        let fds: Vec<BorrowedFd<'_>> = watcher.iter().map(rustix::fd::AsFd::as_fd).collect();
        let changed = readable(&fds, LOOK_AGAIN);
        if let Some(watcher) = watcher.as_ref().filter(|_| changed) {
            watcher.changed().expect("inotify");
        }
    }
}
