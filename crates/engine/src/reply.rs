//! The reply to a message, found by following the message through the journal: accepted, fed, turn over. So it is the
//! reply to this message, and not to one that waited before it.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::request::look_and_record;
use crate::session_watch::SessionWatch;
use ostler_core::event::Event;
use ostler_core::fact::TurnEnd;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_store::journal;

/// A process that ended by this signal was asked to end; it does not count as killed.
const SIGTERM: i32 = 15;

/// How far a message has come.
#[derive(Clone, Debug, PartialEq)]
enum Delivery {
    /// The request is not in the journal yet.
    Unknown,
    Waits(u64),
    Fed(u64),
    Replied(u64, TurnEnd),
    Withdrawn,
}

impl Delivery {
    /// `ours`: the event is the answer to our request.
    fn after(self, event: Event, ours: bool) -> Delivery {
        match (self, event) {
            (Delivery::Unknown, Event::Accepted { n, .. }) if ours => Delivery::Waits(n),
            (Delivery::Waits(n), Event::Feeding { n: fed, .. }) if fed == n => Delivery::Fed(n),
            (Delivery::Fed(n), Event::Returned { n: returned, .. }) if returned == n => Delivery::Waits(n),
            (Delivery::Waits(n), Event::Withdrawn { n: gone, .. }) if gone == n => Delivery::Withdrawn,
            (Delivery::Fed(n), Event::TurnEnded { end }) => Delivery::Replied(n, end),
            // The process died before it had taken the message: the message is given to the next process.
            (Delivery::Replied(n, _), Event::Returned { n: returned, .. }) if returned == n => Delivery::Waits(n),
            (same, _) => same,
        }
    }
}

/// The result of waiting for a reply.
#[derive(Debug)]
pub enum Reply {
    /// The turn that answers it is over.
    Turn(TurnEnd),
    /// The session has just ended; the message waits for its next run.
    ForNextRun,
    /// The agent asks a question first; see [`View::asking`].
    Asks(Box<View>),
}

impl Engine {
    /// The end of the turn that answers a message, by the id of its request; `None` as long as there is none. The
    /// caller has looked at the session before, so that its end is recorded and the journal is complete.
    pub fn reply_to(&self, place: &Place, request: &str) -> Result<Option<TurnEnd>> {
        let read = journal::read(place.open()?.dir(), 0)?;
        let delivery = read.entries.into_iter().fold(Delivery::Unknown, |delivery, entry| {
            let ours = entry.request.as_deref() == Some(request);
            delivery.after(entry.event, ours)
        });
        Ok(if let Delivery::Replied(_, end) = delivery { Some(end) } else { None })
    }

    /// Whether the turn that answers a message ended because its process was killed, and not by ostler. Where each
    /// process has only one turn, this ends the turn and not the session.
    pub fn reply_was_cut_off(&self, place: &Place, request: &str) -> Result<bool> {
        let (mut delivery, mut signalled, mut killed) = (Delivery::Unknown, None, None);
        let mut cut_off = false;
        for entry in journal::read(place.open()?.dir(), 0)?.entries {
            match &entry.event {
                Event::Signalled { .. } => signalled = Some(entry.run),
                Event::Exited { exit, .. } => {
                    let by_others = exit.code.is_none() && exit.signal != Some(SIGTERM) && signalled != Some(entry.run);
                    killed = by_others.then_some(entry.run);
                }
                _ => {}
            }
            let ours = entry.request.as_deref() == Some(request);
            let replied = matches!(delivery, Delivery::Replied(..));
            delivery = delivery.after(entry.event, ours);
            if !replied && matches!(delivery, Delivery::Replied(..)) {
                cut_off = killed == Some(entry.run);
            }
        }
        Ok(cut_off && matches!(delivery, Delivery::Replied(..)))
    }
}

/// Waits for the end of the turn that answers this message. `journal_before`: how long the journal was before the
/// message.
pub fn wait(place: &Place, request: &str, journal_before: u64) -> Result<Reply> {
    // Subscribe first, look afterwards: what happens in between wakes us.
    let mut watch = SessionWatch::state_only(place)?;
    let folder = place.open()?;
    let (mut delivery, mut position) = (Delivery::Unknown, journal_before);
    loop {
        let view = look_and_record(place)?;
        let read = journal::read(folder.dir(), position)?;
        position = read.end;
        for entry in read.entries {
            let ours = entry.request.as_deref() == Some(request);
            delivery = delivery.after(entry.event, ours);
        }
        match delivery {
            Delivery::Replied(_, end) => return Ok(Reply::Turn(end)),
            Delivery::Withdrawn => return Err(Error::Withdrawn { session: (&view).into() }),
            Delivery::Unknown | Delivery::Waits(_) | Delivery::Fed(_) => {}
        }
        if view.ended {
            return Err(Error::NoReply { session: (&view).into(), outcome: view.outcome.map(Box::new) });
        }
        if view.asking.is_some() {
            return Ok(Reply::Asks(Box::new(view)));
        }
        watch.wait(&[])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_core::fact::Verdict;

    #[test]
    fn the_reply_is_that_of_the_message_and_not_of_one_before_it() {
        let by = || "a user".to_owned();
        let end = |text: &str| TurnEnd {
            verdict: Verdict::Succeeded,
            text: Some(text.to_owned()),
            reason: None,
            tokens: None,
            cost_usd: None,
            messages: Vec::new(),
        };
        let events = [
            (Event::Accepted { n: 1, place: 0, by: by(), now: false }, false),
            (Event::Feeding { n: 1, written: None, kept: None }, false),
            (Event::Accepted { n: 2, place: 9, by: by(), now: false }, true),
            (Event::TurnEnded { end: end("first") }, false),
            (Event::Feeding { n: 2, written: None, kept: None }, false),
            (Event::Returned { n: 2, place: 9 }, false),
            (Event::TurnEnded { end: end("neither") }, false),
            (Event::Feeding { n: 2, written: None, kept: None }, false),
            (Event::TurnEnded { end: end("died with it") }, false),
            (Event::Returned { n: 2, place: 9 }, false),
            (Event::Feeding { n: 2, written: None, kept: None }, false),
            (Event::TurnEnded { end: end("second") }, false),
        ];
        let delivery =
            events.into_iter().fold(Delivery::Unknown, |delivery, (event, ours)| delivery.after(event, ours));
        assert_eq!(delivery, Delivery::Replied(2, end("second")));
    }
}
