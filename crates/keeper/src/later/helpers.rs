//! The helpers of a session that waits.
//!
//! When both helpers of an agent are killed, its pipes or its terminal are lost with them. A program that waits has not
//! read or written anything yet, so nothing needs to be lost: the waiting process has copies of all their descriptors,
//! except those that would keep a reader from seeing an end. It sees the end of the helpers through a pipe whose other
//! end only they have, and starts a holder with the same descriptors. So a waiting session always has helpers and an
//! open socket, whatever is killed.

use crate::HOLDER;
use crate::handles::{self, Handles, Helper, environment};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pipes::Pipe;
use ostler_sys::{cgroup, descriptors, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::WaitOptions;
use rustix::time::Timespec;
use std::io;

/// The shortest time between two starts of helpers.
const PAUSE_MS: u64 = 1000;

pub(super) struct Helpers {
    /// It hangs up when both are gone. `None`: their end is not reported.
    life: Option<OwnedFd>,
    handles: Handles,
    run: u32,
    session: String,
    started_ms: Option<u64>,
}

impl Helpers {
    /// `handles`: everything that a holder needs, and our end of the pipe.
    pub fn new(mut handles: Handles, run: u32, session: String) -> Helpers {
        Helpers { life: handles.take(handles::LIFE), handles, run, session, started_ms: None }
    }

    /// Waits until there is something to read, or the other side has hung up. False: the time was up.
    pub fn wait_for_answer(&mut self, from: BorrowedFd<'_>, limit: &Timespec) -> io::Result<bool> {
        self.wait(&[(from, PollFlags::IN)], Some(limit))?;
        let mut fds = [PollFd::from_borrowed_fd(from, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
    }

    /// Waits until one of these is ready or has hung up, or until the limit is reached.
    pub fn wait(&mut self, watched: &[(BorrowedFd<'_>, PollFlags)], limit: Option<&Timespec>) -> io::Result<()> {
        loop {
            let mut fds: Vec<PollFd<'_>> =
                watched.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
            fds.extend(self.life.iter().map(|life| PollFd::new(life, PollFlags::empty())));
            match poll(&mut fds, limit) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if fds.iter().take(watched.len()).any(|fd| !fd.revents().is_empty()) {
                return Ok(());
            }
            self.start_again()?;
        }
    }

    /// Starts helpers if there are none now.
    pub fn look(&mut self) -> io::Result<()> {
        let gone = self.life.as_ref().map(|life| {
            let mut fds = [PollFd::new(life, PollFlags::empty())];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
        });
        if matches!(gone, Some(Ok(1..))) { self.start_again() } else { Ok(()) }
    }

    fn start_again(&mut self) -> io::Result<()> {
        if let Some(started_ms) = self.started_ms {
            let early_ms = (started_ms + PAUSE_MS).saturating_sub(since_boot_ms());
            let pause = Timespec { tv_sec: 0, tv_nsec: i64::try_from(early_ms.min(999)).unwrap_or(0) * 1_000_000 };
            let _ = poll(&mut [], Some(&pause));
        }
        self.started_ms = Some(since_boot_ms());
        let Pipe { read, write } = Pipe::blocking()?;
        self.life = None;
        self.handles.put(handles::LIFE, write);
        // Started from a copy that exits at once, so that the holder is not a child of the program that this process
        // becomes.
        let started = spawn::branch_off(None, || self.start_holder());
        self.handles.close(handles::LIFE);
        self.life = Some(read);
        while matches!(rustix::process::wait(WaitOptions::empty()), Ok(Some(_))) {}
        started
    }

    /// Runs in a copy of this process. A failure is tried again, because then no process has the other end of the pipe.
    fn start_holder(&self) {
        // Inside the program's own group the holder would end with the program.
        if let Some(outside) = cgroup::base().and_then(|base| base.to_leave_for(&self.session)) {
            let _ = std::fs::write(descriptors::path_of(outside.as_fd()).join("cgroup.procs"), "0");
        }
        let run = self.run.to_string();
        let holder = Helper { word: HOLDER, flags: &["--replacement", "--run", &run], more: &[] };
        let _ = self.handles.start_helper(&holder, &environment());
    }
}
