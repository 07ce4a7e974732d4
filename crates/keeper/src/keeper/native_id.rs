//! Which conversation an agent is in, when the agent only draws and reports nothing. `show`, the writers' lock, the
//! search for foreign processes and the next resume need to know it, also when the agent quits by itself.
//!
//! A plugin of ours in the agent may write it with every prompt, to a file of the run; checking the size of this file
//! costs nothing. Or the agent has a lock on each conversation that it has opened: these locks are looked at when the
//! agent has drawn something, once a second at most, and not at all while nothing is drawn.

use super::{Keeper, KeeperError};
use crate::writer_lock;
use ostler_agents::CONVERSATION;
use ostler_agents::lines::{Line, Lines};
use ostler_core::event::Event;
use ostler_core::record::{Channel, RequestKind, Speaks, Tty};
use ostler_store::growing_file::read_from;
use ostler_store::inbox;
use ostler_sys::clock::since_boot_ms;
use ostler_view::{last_line, proof};
use std::fs::File;

const LOOK_AGAIN_MS: u64 = 1000;
/// A transcript is created some time after the conversation has an id, and has to be searched for among all
/// transcripts.
const SEARCH_AGAIN_MS: u64 = 5000;
/// What the agent said is drawn a moment before or after it is written.
const SAID_AGAIN_MS: u64 = 2000;

/// How far each source has been read.
pub(super) struct NativeIdSearch {
    position: u64,
    lines: Lines,
    locks: Looked,
    transcript: Looked,
    said: Said,
}

/// What the agent said last, as far as the transcript has been looked at.
#[derive(Default)]
struct Said {
    looked: Looked,
    size: u64,
    /// One more look when the agent has stopped drawing.
    again_ms: Option<u64>,
}

impl Default for NativeIdSearch {
    fn default() -> NativeIdSearch {
        NativeIdSearch {
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
        if ostler_writers::locks_tell(self.agent, &writer_lock::variable) {
            match self.native_id_search.locks.due(now, drawn, LOOK_AGAIN_MS) {
                Due::Now => self.see_locked_conversation()?,
                Due::At(ms) => self.wake_by(ms),
                Due::No => {}
            }
        }
        if self.misses_transcript() {
            match self.native_id_search.transcript.due(now, drawn, SEARCH_AGAIN_MS) {
                Due::Now => self.learn_transcript()?,
                Due::At(ms) => self.wake_by(ms),
                Due::No => {}
            }
        }
        // A plain program has no transcript, and nothing wakes the keeper for it.
        if proof::own_transcript(&self.record, &self.state).is_none() {
            return Ok(());
        }
        match self.native_id_search.said.looked.due(now, drawn, SAID_AGAIN_MS) {
            Due::Now => {
                self.native_id_search.said.again_ms = Some(now + SAID_AGAIN_MS);
                self.note_what_was_said()?;
            }
            Due::At(ms) => self.wake_by(ms),
            Due::No => {}
        }
        match self.native_id_search.said.again_ms {
            Some(ms) if ms <= now => {
                self.native_id_search.said.again_ms = None;
                self.note_what_was_said()?;
            }
            Some(ms) => self.wake_by(ms),
            None => {}
        }
        Ok(())
    }

    /// Notes for lists what the agent said last, when its transcript has grown. If it cannot be noted, lists go without
    /// it.
    fn note_what_was_said(&mut self) -> Result<(), KeeperError> {
        let Some(transcript) = proof::own_transcript(&self.record, &self.state) else {
            return Ok(());
        };
        let Ok(file) = File::open(transcript) else {
            // The transcript does not exist yet, or no longer; the proof reports it where it matters.
            return Ok(());
        };
        let size = file.metadata()?.len();
        if std::mem::replace(&mut self.native_id_search.said.size, size) != size {
            match last_line::note(self.run.dir(), self.agent, &file) {
                Err(error) if error.is_full_disk() => {}
                other => other?,
            }
            self.clients.state_changed();
        }
        Ok(())
    }

    /// The conversation has an id, but its file is not known.
    fn misses_transcript(&self) -> bool {
        let named = self.state.native_id.as_ref().or(self.record.native_id.as_ref());
        let somewhere = |id: &String| self.agent.transcript(id, &self.session.cwd, &writer_lock::variable).is_some();
        self.record.transcript.is_none() && named.is_some_and(somewhere)
    }

    /// Looks now: the agent is about to exit, or has exited.
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

    /// For an agent with one process per turn, whose process ended before its output had the conversation's id. What
    /// its plugin wrote is in the folder of the run for which its environment was made: this run or an earlier one.
    fn name_unnamed(&mut self) -> Result<(), KeeperError> {
        let named = self.state.native_id.is_some() || self.record.native_id.is_some();
        if self.record.plan.speaks() != Speaks::OneTurn || named || !self.agent.reports_conversation() {
            return Ok(());
        }
        for number in (1..=self.run.number).rev() {
            let (agent, pid) = (self.agent, self.process.pid());
            let (mut lines, mut told) = (Lines::from(0), None);
            read_from(self.folder.run(number)?.dir(), CONVERSATION, &mut 0, |bytes| {
                lines.feed(bytes, |line, _| match line {
                    Line::Whole(line) => told = agent.reported_conversation(line, pid).or(told.take()),
                    Line::TooLong { .. } => {}
                });
            })?;
            if let Some(id) = told {
                return self.is_at(id);
            }
        }
        Ok(())
    }

    /// Whether the text that was typed last is for the agent's program and not for its model: such text is in no
    /// transcript.
    pub(super) fn typed_a_command(&self) -> bool {
        let typed = self.state.last_fed().filter(|_| self.draws_in_silence());
        let request = typed.and_then(|message| inbox::read_one(self.folder.dir(), message.at).ok().flatten());
        matches!(request.map(|request| request.kind), Some(RequestKind::Message { text, .. }) if text.starts_with(['/', '!']))
    }

    fn draws_in_silence(&self) -> bool {
        self.record.plan.channel == Channel::Tty(Tty::Nothing)
    }

    /// The id that the agent's plugin has written; the last line counts.
    fn hear_conversation(&mut self) -> Result<(), KeeperError> {
        if !self.agent.reports_conversation() {
            return Ok(());
        }
        let (agent, pid) = (self.agent, self.process.pid());
        let (lines, mut told) = (&mut self.native_id_search.lines, None);
        read_from(self.run.dir(), CONVERSATION, &mut self.native_id_search.position, |bytes| {
            lines.feed(bytes, |line, _| match line {
                Line::Whole(line) => told = agent.reported_conversation(line, pid).or(told.take()),
                Line::TooLong { .. } => {}
            });
        })?;
        told.map_or(Ok(()), |id| self.is_at(id))
    }

    fn see_locked_conversation(&mut self) -> Result<(), KeeperError> {
        let known = self.state.native_id.as_deref();
        let found = ostler_writers::conversation_of(self.agent, self.process.pid(), known, &writer_lock::variable);
        // After an error the keeper looks again later; nothing depends on it now.
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
