//! What happens to a message whose process ended before its turn did: it waits again, or it is known to be delivered,
//! or a person is told that this is not known.

use super::{Keeper, KeeperError};
use crate::handles;
use ostler_core::event::Event;
use ostler_core::life::{Given, Message, Unanswered};
use ostler_core::record::{RequestKind, Written};
use ostler_store::{RunRecord, inbox, journal};
use ostler_sys::dir::position;
use ostler_sys::pipes;
use ostler_view::delivery::{Ended, Fate};
use ostler_view::proof::{self, Kept};
use std::io;

impl Keeper {
    /// A message with which an earlier process died.
    pub(super) fn take_back_unanswered(&mut self) -> Result<(), KeeperError> {
        let Some(Unanswered { message, run, given }) = self.state.mail.unanswered.clone() else {
            return Ok(());
        };
        // That run's own record has the position from which the message would be found.
        let record = self.folder.run(run)?.record()?;
        let fate = self.fate(&record, message, &given)?;
        self.settle(&record, message, fate)
    }

    /// A message with which the process of this run died.
    pub(super) fn take_back(&mut self, message: Message) -> Result<(), KeeperError> {
        let fate = self.fate_of(message)?;
        self.settle(&self.record.clone(), message, fate)
    }

    /// Whether the newest message was taken.
    pub(super) fn fate_of(&self, message: Message) -> Result<Fate, KeeperError> {
        match self.is_unread(message)? {
            true => Ok(Fate::NotTaken),
            false => self.fate(&self.record, message, &self.given()),
        }
    }

    /// Whether the agent had stored the message and has removed it from the conversation since.
    pub(super) fn was_taken_back(&self, message: Message) -> Result<bool, KeeperError> {
        let mark = proof::mark_of(self.agent, &self.folder, self.record.plan.mode(), message)?;
        match (Kept::of(&self.record, &self.state), mark) {
            (Some(Kept::File { path, from }), Some(mark)) => {
                Ok(!proof::conversation_has(self.agent, &path, from, &[mark])?)
            }
            (Some(Kept::File { .. } | Kept::Database { .. }) | None, _) => Ok(false),
        }
    }

    /// The circumstances when the newest message was given.
    fn given(&self) -> Given {
        self.state.mail.fed.as_ref().map(|fed| fed.given.clone()).unwrap_or_default()
    }

    fn fate(&self, record: &RunRecord, message: Message, given: &Given) -> Result<Fate, KeeperError> {
        let (folder, session, state) = (&self.folder, &self.session, &self.state);
        let ended = Ended { folder, session, record, state, message, given };
        ended.fate(|agent, kept, marks| self.is_held_by(agent, kept, marks))
    }

    fn settle(&mut self, record: &RunRecord, message: Message, fate: Fate) -> Result<(), KeeperError> {
        match fate {
            Fate::NotTaken => self.note(Event::Returned { n: message.n, place: message.at }),
            Fate::Unknown => self.note(Event::MaybeDelivered { n: message.n, place: message.at }),
            Fate::Taken if record.plan.opens() => self.note(Event::FoundDelivered { n: message.n }),
            Fate::Taken => Ok(()),
        }
    }

    /// Whether the end of the message is still in the pipe, by the kernel's count: then it has not been read
    /// completely.
    fn is_unread(&self, message: Message) -> io::Result<bool> {
        let (Some(file), Some(pipe)) = (self.handles.get(handles::IN), self.handles.get(handles::STDIN_READ)) else {
            return Ok(false);
        };
        let Some(end) = self.input.end_of(&format!("message-{}", message.n)) else {
            return Ok(false);
        };
        let read = position(file)?.saturating_sub(pipes::waiting(pipe)? as u64);
        Ok(self.record.plan.opens() && read < end)
    }

    /// Where the agent behind a protocol stores the conversation, and how long the file is before a message is given:
    /// an older message with the same text is before that position.
    pub(super) fn written_so_far(&self) -> Option<Written> {
        let native_id = self.state.native_id.as_ref().or(self.record.native_id.as_ref())?;
        let agent =
            ostler_agents::keeps_conversation(&self.session, &self.record).filter(|_| self.record.plan.opens())?;
        let path = proof::find_transcript(agent, native_id, &self.session.cwd)?;
        // A file that does not exist yet has nothing in it.
        let size = std::fs::metadata(&path).map_or(0, |file| file.len());
        Some(Written { path, size })
    }

    /// The agent has reported the conversation again: it ended with this text of a person, this many times in a row.
    /// That decides about a message of which it was not known whether it was delivered.
    pub(super) fn recall(&mut self, last: &str, times: u64) -> Result<(), KeeperError> {
        let Some(message) = self.state.mail.maybe_delivered.last().copied() else {
            return Ok(());
        };
        let Some(text) = self.words_at(message.at)? else {
            return Ok(());
        };
        let earlier = self.given_before(message.n)?;
        let same = |one: &String| one.trim() == text.trim();
        let before = earlier.iter().rev().take_while(|one| same(one)).count() as u64;
        let last_is_earlier = earlier.last().is_some_and(|one| one.trim() == last.trim());
        let fate = if last.trim() == text.trim() {
            match times.cmp(&before) {
                std::cmp::Ordering::Greater => Fate::Taken,
                std::cmp::Ordering::Equal => Fate::NotTaken,
                // The agent does not report all of the conversation.
                std::cmp::Ordering::Less => Fate::Unknown,
            }
        } else if last_is_earlier {
            Fate::NotTaken
        } else {
            Fate::Unknown
        };
        match fate {
            Fate::Unknown => Ok(()),
            Fate::Taken | Fate::NotTaken => self.settle(&self.record.clone(), message, fate),
        }
    }

    fn words_at(&self, at: u64) -> Result<Option<String>, KeeperError> {
        let request = inbox::read_one(self.folder.dir(), at)?;
        Ok(request
            .and_then(|request| if let RequestKind::Message { text, .. } = request.kind { Some(text) } else { None }))
    }

    /// The messages that the agent was given before this one, in order.
    fn given_before(&self, n: u64) -> Result<Vec<String>, KeeperError> {
        let mut places = std::collections::HashMap::new();
        let mut given: Vec<u64> = Vec::new();
        for entry in journal::read(self.folder.dir(), 0)?.entries {
            match entry.event {
                Event::Accepted { n, place, .. } => {
                    places.insert(n, place);
                }
                Event::Feeding { n, .. } => given.push(n),
                Event::Returned { n, .. } | Event::MaybeDelivered { n, .. } => given.retain(|one| *one != n),
                _ => {}
            }
        }
        let mut texts = Vec::new();
        for place in given.iter().filter(|one| **one != n).filter_map(|one| places.get(one)) {
            texts.extend(self.words_at(*place)?);
        }
        Ok(texts)
    }
}
