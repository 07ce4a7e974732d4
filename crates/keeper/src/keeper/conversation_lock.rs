//! One conversation, one writer, while the agent runs.
//!
//! An agent may report its id of the conversation only once it runs, and may change it in the middle (a new
//! conversation in a terminal): the lock follows it. A process that knows nothing of our locks may also join. The
//! keeper looks for such processes before every message and at the end of every turn. It reports them, and ends none of
//! them.

use super::{Keeper, KeeperError};
use crate::control::{self, Order};
use crate::{handles, writer_lock};
use ostler_core::event::Event;
use ostler_core::life;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::process::Identity;
use ostler_view::proof;
use ostler_writers::Conversation;
use ostler_writers::lock::{Occupant, Taken, Writers};
use std::collections::HashSet;
use std::io;

/// What is to be looked at, and what has been reported.
#[derive(Debug, Default)]
pub(super) struct ConversationLock {
    /// The conversation may be another one, another process may have released it, or our lock may have been deleted.
    unsettled: bool,
    turn_over: bool,
    /// The processes that are known to have joined.
    joined: HashSet<Identity>,
}

impl ConversationLock {
    /// Notes that an event makes a look due.
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

    /// The program has reported which agent is behind it. The command may have named none, or another one.
    pub(super) fn learn_behind(&mut self, agent: String) -> Result<(), KeeperError> {
        if self.record.behind.as_ref() != Some(&agent) {
            self.record.behind = Some(agent);
            self.run.write_record(&self.record)?;
            self.conversation_lock.unsettled = true;
        }
        Ok(())
    }

    /// The agent reports which conversation it is in. When that is another one than before (`/clear`), what was said so
    /// far is proven and copied in the file of the old conversation, and from now on the file of the new one counts.
    /// The record is written before the new id is noted: a replacement keeper reads the same report again and does the
    /// same.
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
        writer_lock::conversation(&self.session, &self.record, native_id)
    }

    /// Makes sure that the session has the lock of this conversation and of no other. When another process has it,
    /// returns a description of that process.
    fn follow(&mut self, conversation: &Conversation) -> io::Result<Option<String>> {
        let writers = Writers::open(&writer_lock::variable)?;
        let me = Occupant::new(conversation, self.session.id, &self.folder, Some(self.process.clone()))?;
        if let Some(lock) = self.handles.get(handles::WRITER)
            && let Some(noted) = writers.noted(lock)?
        {
            if noted.is_same_conversation(conversation) {
                return Ok(None);
            }
            let agent = ostler_agents::find(&noted.agent);
            if let Some(left) =
                agent.and_then(|agent| Conversation::of(agent, &noted.native_id, &writer_lock::variable))
            {
                writers.release(&left, lock)?;
            }
        }
        let refused = match writers.take(conversation, &me)? {
            Taken::Yes(lock) => {
                // The holder keeps the lock as well: it outlives the keeper, and hands the lock to the next process of
                // this session. The replacement of a holder that has just died gets all descriptors of the keeper.
                if let Some(line) = self.handles.get(handles::HOLDER_LINE) {
                    let _ = control::order_with_file(line, Order::UseWriter, &lock);
                }
                self.handles.put(handles::WRITER, lock);
                return Ok(None);
            }
            Taken::No(occupant) => occupant.words(),
            Taken::ByUnknown => "an unknown process".to_owned(),
        };
        self.handles.close(handles::WRITER);
        Ok(Some(refused))
    }

    /// Looks for other processes that use the conversation. A process that joined is reported, once.
    pub(super) fn look_for_foreign_processes(&mut self) -> Result<(), KeeperError> {
        let Some(conversation) = self.conversation() else {
            return Ok(());
        };
        let found = match ostler_writers::foreign(&conversation, Some(self.process.pid()), &writer_lock::variable) {
            Ok(found) => found,
            // "Could not look" does not mean that there is none.
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

    /// A replacement keeper does not repeat the alarm that is the last one in the journal.
    pub(super) fn alarm_once(&mut self, text: String) -> Result<(), KeeperError> {
        if self.state.alarm.as_ref() == Some(&text) {
            return Ok(());
        }
        self.note(Event::Alarm { text })
    }

    /// A program that does not open its conversation may not speak the protocol at all. This is checked once, when its
    /// time is up.
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

    /// The run is over and none of its processes is alive: the conversation is free for others.
    pub(super) fn leave_conversation(&mut self) {
        let left = || -> io::Result<()> {
            let (Some(lock), Some(conversation)) = (self.handles.get(handles::WRITER), self.conversation()) else {
                return Ok(());
            };
            Writers::open(&writer_lock::variable)?.release(&conversation, lock)
        };
        // A lock that cannot be removed is free when this process ends: the process that it names does not exist then.
        let _ = left();
    }
}
