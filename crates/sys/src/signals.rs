//! Signals as something to poll: blocked for the process and read from a descriptor, so that no signal handler ever
//! interrupts other code.

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
        // SAFETY: a fresh descriptor that nothing else owns.
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

/// Lets a signal end this process, as it does in any ordinary program: a command whose reader has exited should exit
/// too.
pub fn default_action(signal: Signal) {
    // SAFETY: sets a disposition; SIG_DFL runs no code of ours.
    unsafe {
        libc::signal(signal.as_raw(), libc::SIG_DFL);
    }
}

/// Stops this process as Ctrl-Z does, although it has taken that signal. Returns when it is continued, and at once if
/// no process could continue it: the kernel does not stop a process without a shell above it.
pub fn stop() -> io::Result<()> {
    // SAFETY: the set is initialised by sigemptyset before use; the calls touch only this process's mask and
    // disposition.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTSTP);
        libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        // The signal stays pending until it is unblocked, so that it arrives exactly there.
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

/// Ignores a signal like SIGPIPE, which would end a helper: a client that hangs up is then an error code.
pub fn ignore(signal: Signal) {
    // SAFETY: sets a disposition; SIG_IGN runs no code of ours.
    unsafe {
        libc::signal(signal.as_raw(), libc::SIG_IGN);
    }
}

/// Runs `work`; meanwhile writing to a pipe or socket without a reader is only an error of the write, also in a process
/// that SIGPIPE would end. This is for this thread alone: other threads, and the process afterwards, are not changed.
/// Programs that are started in between begin with no signal blocked.
pub fn without_broken_pipes<T>(work: impl FnOnce() -> T) -> T {
    let blocked = BlockedPipe::new();
    let done = work();
    drop(blocked);
    done
}

/// SIGPIPE is blocked on this thread. A broken pipe signals the thread that writes, so no other thread can get the
/// signal in between.
struct BlockedPipe {
    before: libc::sigset_t,
    was_pending: bool,
}

impl BlockedPipe {
    fn new() -> BlockedPipe {
        // SAFETY: the sets are initialised by sigemptyset before use; the calls touch only this thread's mask.
        unsafe {
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut before);
            let only = only_pipe();
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const only, &raw mut before);
            BlockedPipe { before, was_pending: is_pipe_pending() }
        }
    }
}

impl Drop for BlockedPipe {
    fn drop(&mut self) {
        let (only, now) = (only_pipe(), libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: all sets are initialised; a null pointer means that no details of the signal are requested.
        unsafe {
            if !self.was_pending && is_pipe_pending() {
                libc::sigtimedwait(&raw const only, std::ptr::null_mut(), &raw const now);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}

fn only_pipe() -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGPIPE);
        set
    }
}

fn is_pipe_pending() -> bool {
    // SAFETY: the set is initialised by sigemptyset before use, and only read here.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut pending);
        libc::sigpending(&raw mut pending) == 0 && libc::sigismember(&raw const pending, libc::SIGPIPE) == 1
    }
}
