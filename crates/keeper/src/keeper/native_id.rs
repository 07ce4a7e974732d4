//! Which conversation an agent is at that draws and tells nothing: `show`, the writers' lock, foreign processes and the next resume
//! want to know, also when it quits by itself.
//!
//! A plugin of ours in the agent may note it with every prompt, in a file of the run; a look at its size costs nothing. Or the
//! agent has a lock on each conversation that it has opened: those are looked at when it has drawn something, once a second at
//! most, and not at all while nothing is drawn.

use super::{Keeper, KeeperError};
use crate::writing;
use ostler_agents::CONVERSATION;
use ostler_agents::lines::{Line, Lines};
use ostler_core::event::Event;
use ostler_core::record::{Channel, RequestKind, Speaks, Tty};
use ostler_store::inbox;
use ostler_sys::clock::since_boot_ms;
use ostler_view::{last, look, proof};
use std::fs::File;

const LOOK_AGAIN_MS: u64 = 1000;
/// A transcript comes some time after the conversation has a name, and is looked for among all of them.
const SEARCH_AGAIN_MS: u64 = 5000;
/// What it said is drawn a moment before it is written, or after.
const SAID_AGAIN_MS: u64 = 2000;

/// How far has been looked.
pub(super) struct Naming {
    position: u64,
    lines: Lines,
    locks: Looked,
    transcript: Looked,
    said: Said,
}

/// What it said last, as far as the transcript has been looked at.
#[derive(Default)]
struct Said {
    looked: Looked,
    size: u64,
    /// Once more when it has stopped drawing.
    again_ms: Option<u64>,
}

impl Default for Naming {
    fn default() -> Naming {
        Naming {
            position: 0,
            lines: Lines::from(0),
            locks: Looked::default(),
            transcript: Looked::default(),
            said: Said::default(),
        }
    }
}

/// When something was looked at last, and how much had been drawn by then.
#[derive(Default)]
struct Looked(Option<(u64, u64)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Now,
    At(u64),
    /// Not before something is drawn.
    No,
}

impl Looked {
    fn due(&mut self, now: u64, drawn: u64, every_ms: u64) -> Due {
        match self.0 {
            Some((_, then)) if then == drawn => Due::No,
            Some((at, _)) if now < at + every_ms => Due::At(at + every_ms),
            Some(_) | None => {
                self.0 = Some((now, drawn));
                Due::Now
            }
        }
    }
}

impl Keeper {
    /// Looks when there may be something new.
    pub(super) fn name_conversation_when_due(&mut self) -> Result<(), KeeperError> {
        if !self.draws_in_silence() || !self.state.is_running() {
            return Ok(());
        }
        self.hear_conversation()?;
        let (now, drawn) = (since_boot_ms(), self.output.end());
        if ostler_writers::locks_tell(self.agent, &writing::variable) {
            match self.naming.locks.due(now, drawn, LOOK_AGAIN_MS) {
                Due::Now => self.see_locked_conversation()?,
                Due::At(ms) => self.wake_by(ms),
                Due::No => {}
            }
        }
        if self.misses_transcript() {
            match self.naming.transcript.due(now, drawn, SEARCH_AGAIN_MS) {
                Due::Now => self.learn_transcript()?,
                Due::At(ms) => self.wake_by(ms),
                Due::No => {}
            }
        }
        // A plain program has none, and nothing wakes us for it.
        if proof::own_transcript(&self.record, &self.state).is_none() {
            return Ok(());
        }
        match self.naming.said.looked.due(now, drawn, SAID_AGAIN_MS) {
            Due::Now => {
                self.naming.said.again_ms = Some(now + SAID_AGAIN_MS);
                self.note_what_was_said()?;
            }
            Due::At(ms) => self.wake_by(ms),
            Due::No => {}
        }
        match self.naming.said.again_ms {
            Some(ms) if ms <= now => {
                self.naming.said.again_ms = None;
                self.note_what_was_said()?;
            }
            Some(ms) => self.wake_by(ms),
            None => {}
        }
        Ok(())
    }

    /// Notes for lists what it said last, when its transcript has grown. A list does without where it cannot be noted.
    fn note_what_was_said(&mut self) -> Result<(), KeeperError> {
        let Some(transcript) = proof::own_transcript(&self.record, &self.state) else {
            return Ok(());
        };
        let Ok(file) = File::open(transcript) else {
            // It is not there yet, or no longer; the proof says so where it matters.
            return Ok(());
        };
        let size = file.metadata()?.len();
        if std::mem::replace(&mut self.naming.said.size, size) != size {
            match last::note(self.run.dir(), self.agent, &file) {
                Err(error) if error.is_full_disk() => {}
                other => other?,
            }
            self.clients.state_changed();
        }
        Ok(())
    }

    /// The conversation has a name, and its file is not known.
    fn misses_transcript(&self) -> bool {
        let named = self.state.native_id.as_ref().or(self.record.native_id.as_ref());
        let somewhere = |id: &String| self.agent.transcript(id, &self.session.cwd, &writing::variable).is_some();
        self.record.transcript.is_none() && named.is_some_and(somewhere)
    }

    /// Looks now: it is about to leave, or has left.
    pub(super) fn name_conversation(&mut self) -> Result<(), KeeperError> {
        if !self.draws_in_silence() {
            return self.name_unnamed();
        }
        self.hear_conversation()?;
        if self.state.is_running() {
            self.see_locked_conversation()?;
        }
        self.learn_transcript()?;
        self.note_what_was_said()
    }

    /// One process per turn, which has ended before its output told the name: what it was made to tell is in the folder of the
    /// run with which its environment was made, this one or an earlier one.
    fn name_unnamed(&mut self) -> Result<(), KeeperError> {
        let named = self.state.native_id.is_some() || self.record.native_id.is_some();
        if self.record.plan.speaks() != Speaks::OneTurn || named || !self.agent.tells_conversation() {
            return Ok(());
        }
        for number in (1..=self.run.number).rev() {
            let (agent, pid) = (self.agent, self.process.pid());
            let (mut lines, mut told) = (Lines::from(0), None);
            look::read_from(self.folder.run(number)?.dir(), CONVERSATION, &mut 0, |bytes| {
                lines.feed(bytes, |line, _| match line {
                    Line::Whole(line) => told = agent.told_conversation(line, pid).or(told.take()),
                    Line::TooLong { .. } => {}
                });
            })?;
            if let Some(id) = told {
                return self.is_at(id);
            }
        }
        Ok(())
    }

    /// Whether what was typed last is for the agent's program and not for its model: such words are in no transcript.
    pub(super) fn typed_a_command(&self) -> bool {
        let typed = self.state.last_fed().filter(|_| self.draws_in_silence());
        let request = typed.and_then(|message| inbox::read_one(self.folder.dir(), message.at).ok().flatten());
        matches!(request.map(|request| request.kind), Some(RequestKind::Message { text, .. }) if text.starts_with(['/', '!']))
    }

    fn draws_in_silence(&self) -> bool {
        self.record.plan.channel == Channel::Tty(Tty::Nothing)
    }

    /// What it has told of its own accord; the last word counts.
    fn hear_conversation(&mut self) -> Result<(), KeeperError> {
        if !self.agent.tells_conversation() {
            return Ok(());
        }
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
        let found = ostler_writers::conversation_of(self.agent, self.process.pid(), known, &writing::variable);
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
        self.note(Event::Native { id })?;
        self.mind_conversation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_looked_at_while_nothing_is_drawn_and_not_too_often() {
        let mut looked = Looked::default();
        assert_eq!(looked.due(1000, 5, 100), Due::Now);
        assert_eq!(looked.due(5000, 5, 100), Due::No, "nothing was drawn");
        assert_eq!(looked.due(1050, 6, 100), Due::At(1100));
        assert_eq!(looked.due(1100, 6, 100), Due::Now);
        assert_eq!(looked.due(1101, 6, 100), Due::No);
    }
}
