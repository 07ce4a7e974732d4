//! Signals as something to poll: blocked for the process and read from a descriptor, so that no handler ever runs in the
//! middle of anything.

#![expect(unsafe_code, reason = "signalfd and the signal mask are not in rustix")]

use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
pub use rustix::process::Signal;
use std::io;

/// The descriptor on which the chosen signals arrive.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks `wanted` for this process and opens the descriptor. Call before any thread is started.
    pub fn take(wanted: &[Signal]) -> io::Result<Signals> {
        // SAFETY: the set is initialised by sigemptyset before use; the calls touch only this process's mask.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in wanted {
                libc::sigaddset(&raw mut set, signal.as_raw());
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        Ok(Signals(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal that has arrived, without waiting.
    pub fn next(&self) -> io::Result<Option<i32>> {
        let mut record = [0u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.0, &mut record) {
            Ok(length) if length == record.len() => {
                let [a, b, c, d, ..] = record;
                Ok(Some(i32::from_ne_bytes([a, b, c, d])))
            }
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Lets a signal end this process, as it does in any ordinary program: a command whose reader has left should leave too.
pub fn default_action(signal: Signal) {
    // SAFETY: sets a disposition; SIG_DFL runs no code of ours.
    unsafe {
        libc::signal(signal.as_raw(), libc::SIG_DFL);
    }
}

/// Stops this process as Ctrl-Z does, although it has taken that signal. Returns when it is continued, and at once where
/// nobody could do that: the kernel stops no process without a shell above it.
pub fn stop() -> io::Result<()> {
    // SAFETY: the set is initialised by sigemptyset before use; the calls touch only this process's mask and disposition.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTSTP);
        libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        // It waits until it is let in, so that it arrives exactly there.
        if libc::raise(libc::SIGTSTP) != 0
            || libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) < 0
        {
            return Err(io::Error::last_os_error());
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Ignores SIGPIPE-like surprises that would end a helper: a client that hangs up is an error code, not an end.
pub fn ignore(signal: Signal) {
    // SAFETY: sets a disposition; SIG_IGN runs no code of ours.
    unsafe {
        libc::signal(signal.as_raw(), libc::SIG_IGN);
    }
}
