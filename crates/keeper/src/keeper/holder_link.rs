//! The other half: what the holder tells, and what becomes of it.

use super::{Keeper, KeeperError};
use crate::control::{self, Heard, News};
use crate::handles::{self, Helper};
use crate::{HOLDER, holder};
use ostler_core::event::{Event, StopHow};
use ostler_core::life::SYSTEM;
use ostler_core::outcome::Exit;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause::{self, Point};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::socket;
use ostler_sys::spawn::Started;
use rustix::fd::AsFd;
use std::io;

/// How soon a replacement for the holder is tried again when there is no process or descriptor for one, or when one after the
/// other dies as soon as it stands.
const NO_HOLDER_MS: u64 = 250;
/// A replacement that lived shorter than this died young, and so many may before there is a pause.
const YOUNG_MS: u64 = 60;
const FREE_DEATHS: u32 = 5;

/// The grace when it is the machine, not a person, that wants the session to end.
const SHUTDOWN_GRACE_MS: u64 = 5000;

impl Keeper {
    pub(super) fn check_exit(&mut self) -> Result<(), KeeperError> {
        if self.state.has_exited() {
            return Ok(());
        }
        // What the holder has no room to write down, the kernel tells as well.
        let told = || Ok::<_, KeeperError>(self.agent_pidfd()?.and_then(|agent| agent.exit_status()));
        let exit = match self.run.exit()? {
            Some(exit) => Some(exit),
            None if self.agent_exited && self.output.waits_for_disk() => {
                told()?.map(|status| Exit { code: status.code(), signal: status.signal() })
            }
            None => None,
        };
        if let Some(exit) = exit {
            self.agent_exited = true;
            self.note(Event::Exited { exit })?;
        }
        Ok(())
    }

    pub(super) fn hear_holder(&mut self) -> Result<(), KeeperError> {
        while let Some(line) = self.handles.get(handles::HOLDER_LINE) {
            match control::hear(line)? {
                Heard::News(Some(News::Exited)) => self.check_exit()?,
                Heard::News(Some(News::Terminated)) => self.request_shutdown("SIGTERM to the holder")?,
                // The tree is looked at whenever we are awake.
                Heard::News(Some(News::Reaped) | None) => {}
                Heard::Nothing => break,
                Heard::Silence => {
                    self.handles.close(handles::HOLDER_LINE);
                    if self.holder.is_none() {
                        self.replace_holder()?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// The holder is gone. Another process gets the same descriptors and watches in its place.
    pub(super) fn replace_holder(&mut self) -> Result<(), KeeperError> {
        if self.state.outcome.is_some() || self.folder.dir().is_deleted()? {
            self.holder = None;
            return Ok(());
        }
        let now = since_boot_ms();
        if let Some(since) = self.holder_since_ms.take() {
            self.holder_deaths = if now.saturating_sub(since) < YOUNG_MS { self.holder_deaths + 1 } else { 0 };
            if self.holder_deaths >= FREE_DEATHS {
                self.holder = None;
                self.holder_due_ms = Some(now + NO_HOLDER_MS);
                return Ok(());
            }
        }
        match self.start_holder() {
            Ok(started) => {
                pause::at(Point::HolderReplaced);
                self.holder_since_ms = Some(now);
                self.holder_pid = Some(started.pid);
                self.holder = Some(started.pidfd);
                self.holder_due_ms = None;
                self.note(Event::HolderReplaced { pid: started.pid })
            }
            // No process, no descriptor: leaving now would end the session. There will be some again.
            Err(_) => {
                self.holder = None;
                self.holder_due_ms = Some(since_boot_ms() + NO_HOLDER_MS);
                Ok(())
            }
        }
    }

    /// Tries again what there was no process or descriptor for.
    pub(super) fn replace_holder_when_due(&mut self) -> Result<(), KeeperError> {
        match self.holder_due_ms {
            Some(due) if since_boot_ms() >= due => self.replace_holder()?,
            Some(_) | None => {}
        }
        if let Some(due) = self.holder_due_ms {
            self.wake_by(due);
        }
        Ok(())
    }

    fn start_holder(&mut self) -> io::Result<Started> {
        let (theirs, ours) = socket::pair()?;
        let me = Pidfd::open(&Identity::me()?)?.ok_or_else(|| io::Error::other("no pidfd of ourselves"))?;
        let number = self.run.number.to_string();
        let more = [(holder::LINE, theirs.as_fd()), (holder::KEEPER_PROCESS, me.as_fd())];
        let holder = Helper { word: HOLDER, flags: &["--replacement", "--run", &number], more: &more };
        self.handles.put(handles::HOLDER_LINE, ours);
        self.handles.start_helper(&holder, &handles::environment()).map_err(|error| io::Error::other(error.to_string()))
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
