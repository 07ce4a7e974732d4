//! One conversation, one writer, while the agent runs.
//!
//! An agent may tell its name for the conversation only once it runs, and change it in the middle (a new
//! conversation in a terminal): the lock follows it. And somebody who knows nothing of our locks may join: that is looked
//! for before every message and at the end of every turn, and said, and nobody is ended for it.

use super::{Keeper, KeeperError};
use crate::control::{self, Order};
use crate::{handles, writing};
use ostler_core::event::Event;
use ostler_core::life;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::process::Identity;
use ostler_view::proof;
use ostler_writers::Conversation;
use ostler_writers::lock::{Occupant, Taken, Writers};
use std::collections::HashSet;
use std::io;

/// What is to be looked at, and what has been said.
#[derive(Debug, Default)]
pub(super) struct ConversationLock {
    /// The conversation may be another one, somebody else may have let it go, or somebody deleted our lock.
    unsettled: bool,
    turn_over: bool,
    /// Who is known to have joined.
    joined: HashSet<Identity>,
}

impl ConversationLock {
    /// Takes note of what makes a look due.
    pub fn note(&mut self, event: &Event) {
        let turn_over = matches!(event, Event::TurnEnded { .. });
        self.turn_over |= turn_over;
        self.unsettled |=
            turn_over || matches!(event, Event::Native { .. } | Event::Opened { .. } | Event::KeeperStarted { .. });
    }
}

impl Keeper {
    /// Does what has become due.
    pub(super) fn mind_conversation(&mut self) -> Result<(), KeeperError> {
        if std::mem::take(&mut self.conversation_lock.turn_over) {
            self.look_for_foreign_processes()?;
        }
        if std::mem::take(&mut self.conversation_lock.unsettled)
            && let Some(conversation) = self.conversation()
        {
            match self.follow(&conversation) {
                Ok(None) => {}
                Ok(Some(who)) => self.alarm_once(format!("another session is using this conversation too: {who}"))?,
                Err(error) => self.alarm_once(format!("cannot lock the conversation: {error}"))?,
            }
        }
        Ok(())
    }

    /// The program has told which agent is behind it. The command may have said nothing, or something else.
    pub(super) fn learn_behind(&mut self, agent: String) -> Result<(), KeeperError> {
        if self.record.behind.as_ref() != Some(&agent) {
            self.record.behind = Some(agent);
            self.run.write_record(&self.record)?;
            self.conversation_lock.unsettled = true;
        }
        Ok(())
    }

    /// The agent tells which conversation it is at. When it is another one than before (`/clear`), what was said so far is
    /// proven and copied in the file of that one, and from now on the file of the new one counts. Noted before the new name
    /// is: the process that keeps it after us is told again and does the same.
    pub(super) fn go_over_to(&mut self, native_id: &str) -> Result<(), KeeperError> {
        let known = self.state.native_id.as_ref().or(self.record.native_id.as_ref());
        if known.is_none_or(|known| known == native_id) {
            return Ok(());
        }
        self.prove_before_leaving(native_id)?;
        self.save_before_leaving()?;
        self.record.transcript = proof::find_transcript(self.agent, native_id, &self.session.cwd);
        self.record.written_before = 0;
        Ok(self.run.write_record(&self.record)?)
    }

    fn conversation(&self) -> Option<Conversation> {
        let native_id = self.state.native_id.as_ref().or(self.record.native_id.as_ref())?;
        writing::conversation(&self.session, &self.record, native_id)
    }

    /// Has the lock of this conversation and of no other. Returns who else has it.
    fn follow(&mut self, conversation: &Conversation) -> io::Result<Option<String>> {
        let writers = Writers::open(&writing::variable)?;
        let me = Occupant::new(conversation, self.session.id, &self.folder, Some(self.process.clone()))?;
        if let Some(lock) = self.handles.get(handles::WRITER)
            && let Some(noted) = writers.noted(lock)?
        {
            if noted.is_same_conversation(conversation) {
                return Ok(None);
            }
            let agent = ostler_agents::find(&noted.agent);
            if let Some(left) = agent.and_then(|agent| Conversation::of(agent, &noted.native_id, &writing::variable)) {
                writers.release(&left, lock)?;
            }
        }
        let refused = match writers.take(conversation, &me)? {
            Taken::Yes(lock) => {
                // The holder keeps it as well: it outlives us, and hands it to the next process of this session. One that
                // has just died is replaced by one that gets all that we have.
                if let Some(line) = self.handles.get(handles::HOLDER_LINE) {
                    let _ = control::order_with_file(line, Order::UseWriter, &lock);
                }
                self.handles.put(handles::WRITER, lock);
                return Ok(None);
            }
            Taken::No(occupant) => occupant.words(),
            Taken::ByNobodyKnown => "an unknown process".to_owned(),
        };
        self.handles.close(handles::WRITER);
        Ok(Some(refused))
    }

    /// Looks who else has the conversation. A process that joined is reported, once.
    pub(super) fn look_for_foreign_processes(&mut self) -> Result<(), KeeperError> {
        let Some(conversation) = self.conversation() else {
            return Ok(());
        };
        let found = match ostler_writers::foreign(&conversation, Some(self.process.pid()), &writing::variable) {
            Ok(found) => found,
            // "Could not look" is not "nobody".
            Err(error) => return self.alarm_once(format!("cannot look for other writers: {error}")),
        };
        for foreign in found {
            let words = format!(
                "{} is using this conversation too; list all with: ostler who {}",
                foreign.words(),
                self.session.id
            );
            if self.conversation_lock.joined.insert(foreign.identity) {
                self.alarm_once(words)?;
            }
        }
        Ok(())
    }

    /// A replaced keeper does not say again what the journal ends with.
    pub(super) fn alarm_once(&mut self, text: String) -> Result<(), KeeperError> {
        if self.state.alarm.as_ref() == Some(&text) {
            return Ok(());
        }
        self.note(Event::Alarm { text })
    }

    /// A program that does not open its conversation may not speak the protocol at all. Looked at once, when its time is up.
    pub(super) fn say_that_no_answer_comes(&mut self) -> Result<(), KeeperError> {
        let opening = self.state.conversation == life::Conversation::Opening { no_answer: false };
        let Some(within_ms) = self.record.answer_within_ms.filter(|_| opening && self.state.is_running()) else {
            return Ok(());
        };
        let due_ms = self.record.started_ms.saturating_add(within_ms);
        if since_boot_ms() < due_ms {
            self.wake_by(due_ms);
            return Ok(());
        }
        self.note(Event::NoAnswer)
    }

    /// The run is over and nothing of it is alive: anyone who wants the conversation may have it.
    pub(super) fn leave_conversation(&mut self) {
        let left = || -> io::Result<()> {
            let (Some(lock), Some(conversation)) = (self.handles.get(handles::WRITER), self.conversation()) else {
                return Ok(());
            };
            Writers::open(&writing::variable)?.release(&conversation, lock)
        };
        // What cannot be removed is free with our end: nobody whom it names is there then.
        let _ = left();
    }
}
