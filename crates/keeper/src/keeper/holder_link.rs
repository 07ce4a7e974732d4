//! The keeper's side of the link to the holder: what the holder reports, and what is done about it.

use super::{Keeper, KeeperError};
use crate::control::{self, Heard, News};
use crate::handles::{self, Handles, Helper};
use crate::{HOLDER, holder};
use jiff::Timestamp;
use ostler_agents::job::STEPS;
use ostler_core::event::{Event, StopHow};
use ostler_core::life::SYSTEM;
use ostler_core::outcome::Exit;
use ostler_store::folder::Folder;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause_points::{self, Point};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::socket;
use ostler_sys::spawn::Started;
use rustix::fd::{AsFd, OwnedFd};
use std::io;

/// How soon a replacement holder is tried again when no process or descriptor is available for it, or when replacements
/// keep dying young.
const NO_HOLDER_MS: u64 = 250;
/// A replacement that lived shorter than this died young; and how many may do so before there is a pause.
const YOUNG_MS: u64 = 60;
const FREE_DEATHS: u32 = 5;

/// The grace when the system, not a person, ends the session.
const SHUTDOWN_GRACE_MS: u64 = 5000;

/// The holder, as far as the keeper knows it.
#[derive(Default)]
pub(super) struct HolderLink {
    process: Option<OwnedFd>,
    pid: Option<i32>,
    /// When to try again to start a replacement that could not be started.
    due_ms: Option<u64>,
    /// Since when the replacement that we started exists, and how many in a row died young.
    since_ms: Option<u64>,
    deaths: u32,
}

/// What to do about a holder that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replace {
    Now,
    Later,
}

impl HolderLink {
    /// The holder that is named in the folder, if it lives.
    pub fn of(folder: &Folder) -> Result<HolderLink, KeeperError> {
        let mut link = HolderLink::default();
        if let Some(process) = folder.holder()?.map(|holder| holder.process)
            && let Some(pidfd) = Pidfd::open(&process)?
            && !pidfd.has_exited()?
        {
            link.found(process.pid(), pidfd.into());
        }
        Ok(link)
    }

    /// There is a holder, which another process has started.
    pub fn found(&mut self, pid: i32, process: OwnedFd) {
        (self.pid, self.process) = (Some(pid), Some(process));
    }

    /// Its pid, also when it is gone.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// What to poll for the holder's end.
    pub fn process(&self) -> Option<&OwnedFd> {
        self.process.as_ref()
    }

    /// When the holder is to be replaced, if that could not be done at once.
    pub fn due_ms(&self) -> Option<u64> {
        self.due_ms
    }

    /// The holder is gone.
    pub fn gone(&mut self, now_ms: u64) -> Replace {
        self.process = None;
        if let Some(since_ms) = self.since_ms.take() {
            self.deaths = if now_ms.saturating_sub(since_ms) < YOUNG_MS { self.deaths + 1 } else { 0 };
            if self.deaths >= FREE_DEATHS {
                self.try_later(now_ms);
                return Replace::Later;
            }
        }
        Replace::Now
    }

    pub fn replaced(&mut self, started: Started, now_ms: u64) {
        self.found(started.pid, started.pidfd);
        (self.since_ms, self.due_ms) = (Some(now_ms), None);
    }

    /// No process or descriptor is available for another holder.
    pub fn try_later(&mut self, now_ms: u64) {
        self.due_ms = Some(now_ms + NO_HOLDER_MS);
    }
}

impl Keeper {
    pub(super) fn check_exit(&mut self) -> Result<(), KeeperError> {
        if self.state.has_exited() {
            return Ok(());
        }
        // When the holder has no room to record the exit, the kernel can report it.
        let told = || Ok::<_, KeeperError>(self.agent_pidfd()?.and_then(|agent| agent.exit_status()));
        let exit = match self.run.exit()? {
            Some(exit) => Some(exit),
            None if self.agent_exited && self.output.waits_for_disk() => {
                told()?.map(|status| Exit { code: status.code(), signal: status.signal() })
            }
            None => None,
        };
        if let Some(exit) = exit {
            // The claim, which was written earlier, is noted first.
            self.look_at_claim()?;
            self.agent_exited = true;
            let progress = self.has_taken_steps();
            self.note(Event::Exited { exit, progress })?;
        }
        Ok(())
    }

    /// Whether the driver of a job has written a step since this run began. If the clock was set in between, the answer
    /// may be wrong and a pause too long or too short.
    fn has_taken_steps(&self) -> bool {
        let (Some(_), Some(began)) = (&self.session.job, self.record.started) else {
            return false;
        };
        let written = self.folder.dir().changed(STEPS).ok().flatten();
        written.and_then(|date| Timestamp::new(date.seconds, i32::try_from(date.nanos).ok()?).ok()) >= Some(began)
    }

    pub(super) fn hear_holder(&mut self) -> Result<(), KeeperError> {
        while let Some(line) = self.handles.get(handles::HOLDER_LINE) {
            match control::hear(line)? {
                Heard::News(Some(News::Exited)) => self.check_exit()?,
                Heard::News(Some(News::Terminated)) => self.request_shutdown("SIGTERM to the holder")?,
                // The tree is looked at whenever the keeper is awake.
                Heard::News(Some(News::Reaped) | None) => {}
                Heard::Nothing => break,
                Heard::Silence => {
                    self.handles.close(handles::HOLDER_LINE);
                    if self.holder.process().is_none() {
                        self.replace_holder()?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// The holder is gone. Another process gets the same descriptors and takes its place.
    pub(super) fn replace_holder(&mut self) -> Result<(), KeeperError> {
        let now = since_boot_ms();
        if self.state.outcome.is_some() || self.folder.dir().is_deleted()? {
            self.holder.process = None;
            return Ok(());
        }
        match self.holder.gone(now) {
            Replace::Now => {}
            Replace::Later => return Ok(()),
        }
        match start_holder(&mut self.handles, self.run.number) {
            Ok(started) => {
                pause_points::at(Point::HolderReplaced);
                let pid = started.pid;
                self.holder.replaced(started, now);
                self.note(Event::HolderReplaced { pid })
            }
            // No process or no descriptor: exiting now would end the session. They will be available again.
            Err(_) => {
                self.holder.try_later(since_boot_ms());
                Ok(())
            }
        }
    }

    /// Tries again when the time for it has come.
    pub(super) fn replace_holder_when_due(&mut self) -> Result<(), KeeperError> {
        match self.holder.due_ms() {
            Some(due) if since_boot_ms() >= due => self.replace_holder()?,
            Some(_) | None => {}
        }
        if let Some(due) = self.holder.due_ms() {
            self.wake_by(due);
        }
        Ok(())
    }

    pub(super) fn request_shutdown(&mut self, why: &str) -> Result<(), KeeperError> {
        if self.state.stop.is_none() {
            self.note(Event::StopRequested {
                by: SYSTEM.to_owned(),
                why: why.to_owned(),
                how: StopHow::Interrupt,
                grace_ms: SHUTDOWN_GRACE_MS,
            })?;
            self.journal.sync()?;
        }
        Ok(())
    }
}

/// Starts a replacement for the holder of this run. This process is its keeper.
pub(super) fn start_holder(handles: &mut Handles, number: u32) -> io::Result<Started> {
    let (theirs, ours) = socket::pair()?;
    let me = Pidfd::open(&Identity::me()?)?.ok_or_else(|| io::Error::other("no pidfd of ourselves"))?;
    let number = number.to_string();
    let more = [(holder::LINE, theirs.as_fd()), (holder::KEEPER_PROCESS, me.as_fd())];
    let holder = Helper { word: HOLDER, flags: &["--replacement", "--run", &number], more: &more };
    handles.put(handles::HOLDER_LINE, ours);
    handles.start_helper(&holder, &handles::environment()).map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn some_process() -> OwnedFd {
        rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).unwrap()
    }

    fn started(pid: i32) -> Started {
        Started { pid, pidfd: some_process(), contained: false }
    }

    #[test]
    fn a_holder_is_replaced_at_once_unless_one_after_the_other_dies_young() {
        let mut holder = HolderLink::default();
        holder.found(1, some_process());
        let mut now_ms = 1000;
        let mut replaced = 0;
        while holder.gone(now_ms) == Replace::Now {
            assert!(holder.process().is_none());
            replaced += 1;
            holder.replaced(started(1 + replaced), now_ms);
            now_ms += YOUNG_MS - 1;
        }
        assert_eq!(u32::try_from(replaced).unwrap(), FREE_DEATHS);
        assert_eq!((holder.due_ms(), holder.pid()), (Some(now_ms + NO_HOLDER_MS), Some(1 + replaced)));
        // A replacement that lives longer ends the series.
        now_ms += NO_HOLDER_MS;
        assert_eq!(holder.gone(now_ms), Replace::Now);
        holder.replaced(started(9), now_ms);
        assert_eq!(holder.gone(now_ms + YOUNG_MS), Replace::Now);
        assert_eq!((holder.due_ms(), holder.deaths), (None, 0));
    }
}
