//! The order to start the next run, and the time until it is carried out.
//!
//! The race this solves: a keeper that exited as soon as it had given the order would leave the holder alone with it.
//! If that holder was then killed, the order was lost, and the session ended as one whose process was not started. So
//! the keeper stays until the process runs and another keeper waits for it. When a holder is killed before that, the
//! keeper starts a replacement.
//!
//! How the keeper learns of it: one end of a pipe is sent with the order. The holder writes a letter into the pipe and
//! closes it when it has done what it could. When a holder is killed, the pipe is only closed; a holder of an older
//! version also only closes it, when it is done.

use super::KeeperError;
use super::holder_link::{HolderLink, Replace, start_holder};
use crate::control::{self, Order};
use crate::handles::{self, Handles};
use ostler_store::folder::{Folder, RunFolder};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause_points::{self, Point};
use ostler_sys::pipes::Pipe;
use ostler_sys::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use rustix::time::Timespec;
use std::io;

/// The descriptors of a killed process are closed before it is seen to be gone; this is how long that may take.
const UNTIL_GONE_MS: u64 = 5000;

/// A run that has a folder and no process.
pub(super) struct Ordering<'a> {
    pub folder: &'a Folder,
    pub run: &'a RunFolder,
    pub handles: &'a mut Handles,
    pub signals: &'a mut Signals,
    pub holder: HolderLink,
}

/// What the holder did about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Done,
    /// It closed the pipe without a letter.
    Silence,
}

impl Ordering<'_> {
    /// Returns when the holder has done what it could: the process runs, or the reason why not is noted. The result is
    /// the pid of the last replacement for a holder that was killed in the meantime.
    pub fn carry_out(mut self) -> Result<Option<i32>, KeeperError> {
        let mut replaced = None;
        while self.order()? == Answer::Silence && !self.is_settled()? && self.holder_is_gone()? {
            let Some(pid) = self.replace_holder()? else { break };
            replaced = Some(pid);
        }
        self.pass_on_signals()?;
        Ok(replaced)
    }

    fn order(&self) -> Result<Answer, KeeperError> {
        let Pipe { read, write } = Pipe::blocking()?;
        let ordered = match self.handles.get(handles::HOLDER_LINE) {
            Some(line) => control::order_with_file(line, Order::StartRun, write),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match ordered {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Answer::Silence),
            Err(error) => return Err(error.into()),
        }
        pause_points::at(Point::NextRunOrdered);
        hear(&read)
    }

    /// Whether the run has got so far that another holder must not begin it.
    fn is_settled(&self) -> Result<bool, KeeperError> {
        if self.folder.newest_run()? < self.run.number {
            // Not even the reason why the run was not started could be noted.
            return Ok(true);
        }
        let record = self.run.record()?;
        Ok(record.agent.is_some() || record.not_started.is_some())
    }

    fn holder_is_gone(&self) -> io::Result<bool> {
        match self.holder.process() {
            Some(process) => Ok(readable_within(Some(process), UNTIL_GONE_MS)?),
            None => Ok(true),
        }
    }

    /// `None`: the session was deleted in the meantime.
    fn replace_holder(&mut self) -> Result<Option<i32>, KeeperError> {
        loop {
            if self.folder.dir().is_deleted()? {
                return Ok(None);
            }
            match self.holder.gone(since_boot_ms()) {
                Replace::Now => match start_holder(self.handles, self.run.number.saturating_sub(1)) {
                    Ok(started) => {
                        pause_points::at(Point::HolderReplaced);
                        let pid = started.pid;
                        self.holder.replaced(started, since_boot_ms());
                        return Ok(Some(pid));
                    }
                    Err(_) => self.holder.try_later(since_boot_ms()),
                },
                Replace::Later => {}
            }
            // There is no event for "a process or a descriptor is available again".
            let wait = self.holder.due_ms().unwrap_or(0).saturating_sub(since_boot_ms());
            readable_within(None, wait)?;
        }
    }

    /// A request to end that came in the meantime is for the next keeper. The holder passes it on.
    fn pass_on_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.next()? {
            if signal == Signal::TERM.as_raw()
                && let Some(holder) = self.holder.process()
            {
                // A holder that is gone cannot pass it on.
                let _ = pidfd_send_signal(holder, Signal::TERM);
            }
        }
        Ok(())
    }
}

fn hear(pipe: &OwnedFd) -> Result<Answer, KeeperError> {
    let mut letter = [0; 1];
    loop {
        match rustix::io::read(pipe, &mut letter) {
            Ok(0) => return Ok(Answer::Silence),
            Ok(_) => return Ok(Answer::Done),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}

fn readable_within(handle: Option<&OwnedFd>, ms: u64) -> io::Result<bool> {
    let wait = Timespec {
        tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ms % 1000).unwrap_or(0) * 1_000_000,
    };
    let mut fds: Vec<_> = handle.into_iter().map(|handle| PollFd::new(handle, PollFlags::IN)).collect();
    match poll(&mut fds, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(fds.iter().any(|fd| !fd.revents().is_empty())),
        Err(error) => Err(error.into()),
    }
}
