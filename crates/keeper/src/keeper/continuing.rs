//! What a session continues with after a usage limit or a failed run: the prompt that the agent never took, or a short
//! message.
//!
//! Exactly once: the message is in the inbox, and its id follows from the turn that it continues. When a keeper is
//! killed after it has written the message, its replacement finds it there.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_core::record::{Channel, Request, RequestKind};
use ostler_store::{inbox, journal};
use ostler_sys::clock;
use ostler_sys::pause_points::{self, Point};
use ostler_view::delivery::Fate;

/// What an agent is told when the prompt is already in its conversation.
const CONTINUE: &str = "continue";

impl Keeper {
    /// Puts what the agent continues with among its messages, before the waiting messages of people.
    pub(super) fn continue_turn(&mut self) -> Result<bool, KeeperError> {
        let lines = matches!(self.record.plan.channel, Channel::Lines(_));
        if let Some(message) = self.state.last_fed().filter(|_| lines)
            && (self.fate_of(message)? == Fate::NotTaken || self.was_taken_back(message)?)
        {
            self.note(Event::Returned { n: message.n, place: message.at })?;
            return Ok(true);
        }
        let id = self.id_of_continuation();
        let (requests, _) = inbox::read(self.folder.dir(), 0)?;
        if !requests.iter().any(|placed| placed.request.id == id) {
            let kind = RequestKind::Message { text: CONTINUE.to_owned(), now: true };
            let by = "ostler".to_owned();
            inbox::append(&self.folder, &Request { id, at: clock::now(), by, run: self.record.run, kind })?;
        }
        pause_points::at(Point::ContinuationWritten);
        self.work_inbox()?;
        self.note(Event::Continued)?;
        Ok(true)
    }

    /// The same for every keeper of this turn, and different for every other turn. It is a UUID, because agents require
    /// one.
    fn id_of_continuation(&self) -> String {
        let half = |part: u8| {
            let name = format!("{part} {} {} {}", self.session.id, self.record.run, self.state.turns);
            journal::mark_of(name.as_bytes()).to_be_bytes()
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half(0));
        bytes[8..].copy_from_slice(&half(1));
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }
}
