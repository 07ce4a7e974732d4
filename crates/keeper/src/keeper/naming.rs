//! Which conversation an agent is at that draws and tells nothing: `show`, the writers' lock, strangers and the next resume
//! want to know, also when it quits by itself.
//!
//! opencode's plugin of ours notes it with every prompt, in a file of the run; a look at its size costs nothing. codex has a
//! lock on each conversation that it has opened: those are looked at when it has drawn something, once a second at most, and
//! nobody looks while it stands still.

use super::{Keeper, KeeperError};
use crate::writing;
use ostler_agents::CONVERSATION;
use ostler_agents::lines::{Line, Lines};
use ostler_core::event::Event;
use ostler_core::life::Process;
use ostler_core::record::{Mode, Speaks, Want};
use ostler_store::{inbox, look};
use ostler_sys::clock::since_boot_ms;

const LOOK_AGAIN_MS: u64 = 1000;
/// A transcript comes some time after the conversation has a name, and is looked for among all of them.
const SEARCH_AGAIN_MS: u64 = 5000;

/// How far has been looked.
pub(super) struct Naming {
    position: u64,
    lines: Lines,
    looked_ms: u64,
    looked_out: Option<u64>,
    searched_ms: u64,
}

impl Default for Naming {
    fn default() -> Naming {
        Naming { position: 0, lines: Lines::from(0), looked_ms: 0, looked_out: None, searched_ms: 0 }
    }
}

impl Keeper {
    /// Looks when there may be something new.
    pub(super) fn name_conversation_when_due(&mut self) -> Result<(), KeeperError> {
        if !self.draws_in_silence() || self.state.process != Process::Running {
            return Ok(());
        }
        self.hear_conversation()?;
        let (now, out) = (since_boot_ms(), self.out_position()?);
        if self.naming.looked_out == Some(out) || !ostler_writers::locks_tell(self.agent.name()) {
            return Ok(());
        }
        let due = self.naming.looked_ms + LOOK_AGAIN_MS;
        if self.naming.looked_out.is_some() && now < due {
            self.wake_by(due);
            return Ok(());
        }
        self.naming.looked_ms = now;
        self.naming.looked_out = Some(out);
        self.see_locked_conversation()?;
        if now >= self.naming.searched_ms + SEARCH_AGAIN_MS {
            self.naming.searched_ms = now;
            self.learn_transcript()?;
        }
        Ok(())
    }

    /// Looks now: it is about to leave, or has left.
    pub(super) fn name_conversation(&mut self) -> Result<(), KeeperError> {
        if !self.draws_in_silence() {
            return Ok(());
        }
        self.hear_conversation()?;
        if self.state.process == Process::Running {
            self.see_locked_conversation()?;
        }
        self.learn_transcript()
    }

    /// Whether what was typed last is for the agent's program and not for its model: such words are in no transcript.
    pub(super) fn typed_a_command(&self) -> bool {
        let typed = self.state.last_fed.filter(|_| self.draws_in_silence());
        let wish = typed.and_then(|message| inbox::read_one(self.folder.dir(), message.at).ok().flatten());
        matches!(wish.map(|wish| wish.want), Some(Want::Message { text, .. }) if text.starts_with(['/', '!']))
    }

    fn draws_in_silence(&self) -> bool {
        self.record.plan.mode == Mode::Terminal && self.record.plan.speaks == Speaks::Bytes
    }

    /// What it has told of its own accord; the last word counts.
    fn hear_conversation(&mut self) -> Result<(), KeeperError> {
        let (agent, pid) = (self.agent, self.process.pid());
        let (lines, mut told) = (&mut self.naming.lines, None);
        look::read_from(self.run.dir(), CONVERSATION, &mut self.naming.position, |bytes| {
            lines.feed(bytes, |line, _| match line {
                Line::Whole(line) => told = agent.told_conversation(line, pid).or(told.take()),
                Line::TooLong { .. } => {}
            });
        })?;
        told.map_or(Ok(()), |id| self.is_at(id))
    }

    fn see_locked_conversation(&mut self) -> Result<(), KeeperError> {
        let known = self.state.native_id.as_deref();
        let found = ostler_writers::conversation_of(self.agent.name(), self.process.pid(), known, &writing::variable);
        // Who cannot look will be asked again; nothing depends on it now.
        match found {
            Ok(Some(id)) => self.is_at(id),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    fn is_at(&mut self, id: String) -> Result<(), KeeperError> {
        if self.state.native_id.as_ref() == Some(&id) {
            return Ok(());
        }
        if self.record.transcript.take().is_some() {
            self.run.write_record(&self.record)?;
        }
        self.note(Event::Native { id })
    }
}
