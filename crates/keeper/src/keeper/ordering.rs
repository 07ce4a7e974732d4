//! The order to start the next run, and the time until it is carried out.
//!
//! The race this solves: a keeper that left as soon as it had given the order left the holder alone with it. A holder that was killed
//! then took the order along, and the session ended as one whose process was not started. So the keeper stays until the process
//! runs and another keeper waits for it, and starts a replacement for a holder that is killed before that.
//!
//! How it learns of it: one side of a pipe goes with the order. The holder writes a letter into it and lets go of it when it
//! has done what it could; one that is killed only lets go, and so does one of an older version, when it is done.

use super::KeeperError;
use super::holder_link::{HolderLink, Replace, start_holder};
use crate::control::{self, Order};
use crate::handles::{self, Handles};
use ostler_store::folder::{Folder, RunFolder};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause::{self, Point};
use ostler_sys::pipes::Pipe;
use ostler_sys::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use rustix::time::Timespec;
use std::io;

/// A process that is killed lets go of its descriptors before anybody can see that it is gone; so long that may take.
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
    /// It let go without a word.
    Silence,
}

impl Ordering<'_> {
    /// Returns when the holder has done what it could: the process runs, or it is noted why not. The pid of the last replacement for a
    /// holder that was killed meanwhile.
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
        pause::at(Point::NextRunOrdered);
        hear(&read)
    }

    /// Whether somebody has got so far that another holder must not begin it.
    fn is_settled(&self) -> Result<bool, KeeperError> {
        if self.folder.newest_run()? < self.run.number {
            // It could not even be noted why the run was not started.
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

    /// `None`: the session was deleted meanwhile.
    fn replace_holder(&mut self) -> Result<Option<i32>, KeeperError> {
        loop {
            if self.folder.dir().is_deleted()? {
                return Ok(None);
            }
            match self.holder.gone(since_boot_ms()) {
                Replace::Now => match start_holder(self.handles, self.run.number.saturating_sub(1)) {
                    Ok(started) => {
                        pause::at(Point::HolderReplaced);
                        let pid = started.pid;
                        self.holder.replaced(started, since_boot_ms());
                        return Ok(Some(pid));
                    }
                    Err(_) => self.holder.try_later(since_boot_ms()),
                },
                Replace::Later => {}
            }
            // Nothing tells that there is a process or a descriptor again.
            let wait = self.holder.due_ms().unwrap_or(0).saturating_sub(since_boot_ms());
            readable_within(None, wait)?;
        }
    }

    /// A request to end that came meanwhile is not ours to grant. The holder tells it to the next keeper.
    fn pass_on_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.next()? {
            if signal == Signal::TERM.as_raw()
                && let Some(holder) = self.holder.process()
            {
                // One that is gone has nobody to tell.
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
