//! What is done before an agent continues by itself with a conversation whose last process did not end well: its
//! transcript is repaired and copied, tools that outlived the process are ended, and no other process may be writing to
//! it.
//!
//! All this belongs to a higher layer, and a process of its own does it (`__prepare`). That process has a copy of the
//! keeper's lock: if the keeper is killed, the next keeper begins when the process is done. The process reports what it
//! did in a file that exists only in memory, and the keeper notes it.

use super::helper_process::{Ended, Errand};
use super::{Keeper, KeeperError};
use crate::PREPARE;
use ostler_core::event::Event;
use ostler_core::fact::Verdict;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause_points::{self, Point};
use ostler_sys::process::{Identity, Pidfd};
use rustix::fd::{AsFd, OwnedFd};
use serde::{Deserialize, Serialize};

/// The name of the descriptor with the keeper's lock, which the process only has to keep open.
const LOCK: &str = "lock";

/// How soon to look again for another writer whose process is not known.
const LOOK_AGAIN_MS: u64 = 5000;

/// What was done.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Changes of the transcript.
    pub repaired: Vec<Repaired>,
    /// What a person should know.
    pub alarms: Vec<String>,
    /// Another process has the conversation, and nothing was done.
    pub other: Option<Other>,
}

/// A change of the transcript.
#[derive(Debug, Serialize, Deserialize)]
pub struct Repaired {
    /// In words.
    pub changes: Vec<String>,
    /// The file as it was.
    pub backup: String,
}

/// Another writer of the conversation.
#[derive(Debug, Serialize, Deserialize)]
pub struct Other {
    /// In words.
    pub words: String,
    /// When the process is known.
    pub process: Option<Identity>,
}

/// How far the next run is prepared.
#[derive(Default)]
pub(super) enum Preparing {
    #[default]
    NotBegun,
    /// This process prepares it and answers here.
    Runs(Errand),
    /// This process has the conversation.
    Held(OwnedFd),
    /// An unknown process has the conversation; looked at again at this time.
    HeldUntil(u64),
    Done,
}

impl Preparing {
    /// What to poll: the process that prepares, or that is waited for.
    pub fn process(&self) -> Option<&OwnedFd> {
        match self {
            Preparing::Runs(errand) => Some(errand.process()),
            Preparing::Held(process) => Some(process),
            Preparing::NotBegun | Preparing::HeldUntil(_) | Preparing::Done => None,
        }
    }
}

impl Keeper {
    /// Whether the next run may begin. Starts what has to be done first.
    pub(super) fn is_prepared(&mut self) -> Result<bool, KeeperError> {
        match self.preparing {
            Preparing::Done => return Ok(true),
            Preparing::Runs(_) | Preparing::Held(_) => return Ok(false),
            Preparing::HeldUntil(ms) if since_boot_ms() < ms => {
                self.wake_by(ms);
                return Ok(false);
            }
            Preparing::NotBegun | Preparing::HeldUntil(_) => {}
        }
        if !self.needs_care() {
            return Ok(true);
        }
        let lock = [(LOCK, self.lock.file().as_fd())];
        match Errand::start(&self.handles, PREPARE, &[], self.folder.dir().as_fd(), &lock) {
            Ok(errand) => {
                self.preparing = Preparing::Runs(errand);
                pause_points::at(Point::PreparingStarted);
                Ok(false)
            }
            // When no process can be started for it, probably none can be started for the agent either.
            Err(error) => {
                self.alarm_once(format!("cannot look at the conversation before it goes on: {error}"))?;
                Ok(true)
            }
        }
    }

    /// An agent that has ended well leaves its conversation in good order.
    fn needs_care(&self) -> bool {
        let well = self.state.exit().is_some_and(|exit| exit.code == Some(0))
            && self.state.last_turn().is_none_or(|end| end.verdict != Verdict::Failed);
        self.record.plan.speaks().converses() && !well
    }

    /// The process that prepares has ended, or the one that had the conversation.
    pub(super) fn preparing_changed(&mut self) -> Result<(), KeeperError> {
        let errand = match std::mem::take(&mut self.preparing) {
            Preparing::Runs(errand) => errand,
            // The process that had the conversation is gone, so the keeper looks again.
            Preparing::Held(_) | Preparing::NotBegun | Preparing::HeldUntil(_) => return Ok(()),
            Preparing::Done => {
                self.preparing = Preparing::Done;
                return Ok(());
            }
        };
        let answer: Answer = match errand.ended()? {
            Ended::Answered(answer) => answer,
            Ended::Killed => return Ok(()),
            Ended::Failed => {
                self.preparing = Preparing::Done;
                return self.alarm_once("cannot look at the conversation before it goes on".to_owned());
            }
        };
        for Repaired { changes, backup } in answer.repaired {
            self.note(Event::Repaired { changes, backup })?;
        }
        for text in answer.alarms {
            self.alarm_once(text)?;
        }
        let Some(Other { words, process }) = answer.other else {
            self.preparing = Preparing::Done;
            return Ok(());
        };
        self.alarm_once(format!("{words} is using this conversation; the session goes on when it has ended"))?;
        self.preparing = match process.as_ref().map(Pidfd::open).transpose()?.flatten() {
            Some(pidfd) if pidfd.has_exited()? => Preparing::NotBegun,
            Some(pidfd) => Preparing::Held(pidfd.into()),
            None => Preparing::HeldUntil(since_boot_ms() + LOOK_AGAIN_MS),
        };
        Ok(())
    }

    /// There is no next run: `resume` makes the same preparations.
    pub(super) fn stop_preparing(&mut self) -> Result<(), KeeperError> {
        if let Preparing::Runs(errand) = std::mem::take(&mut self.preparing) {
            errand.kill()?;
        }
        Ok(())
    }
}
