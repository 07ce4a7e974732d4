//! The reply to a message, found by what the journal says became of it: accepted, fed, turn over. So it
//! is the reply to this message, whatever waited before it.

use crate::error::{Error, Result};
use crate::request::look_and_record;
use crate::session_watch::SessionWatch;
use crate::settings::Engine;
use ostler_core::event::Event;
use ostler_core::fact::TurnEnd;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_store::journal;

/// A process that is asked to end is not one that was killed.
const SIGTERM: i32 = 15;

/// How far a message has come.
#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// What was asked for is not in the journal yet.
    Unknown,
    Waits(u64),
    Fed(u64),
    Replied(u64, TurnEnd),
    Withdrawn,
}

impl Stage {
    /// `ours`: it is the answer to what we asked for.
    fn after(self, event: Event, ours: bool) -> Stage {
        match (self, event) {
            (Stage::Unknown, Event::Accepted { n, .. }) if ours => Stage::Waits(n),
            (Stage::Waits(n), Event::Feeding { n: fed, .. }) if fed == n => Stage::Fed(n),
            (Stage::Fed(n), Event::Returned { n: returned, .. }) if returned == n => Stage::Waits(n),
            (Stage::Waits(n), Event::Withdrawn { n: gone, .. }) if gone == n => Stage::Withdrawn,
            (Stage::Fed(n), Event::TurnEnded { end }) => Stage::Replied(n, end),
            // The process died before it had taken the message in: the next one is given it.
            (Stage::Replied(n, _), Event::Returned { n: returned, .. }) if returned == n => Stage::Waits(n),
            (same, _) => same,
        }
    }
}

/// What came of waiting for a reply.
#[derive(Debug)]
pub enum Reply {
    /// The turn that answers it is over.
    Turn(TurnEnd),
    /// The session has just ended; the message waits for its next run.
    ForNextRun,
    /// It asks first; see [`View::asking`].
    Asks(Box<View>),
}

impl Engine {
    /// The end of the turn that answers a message, by the id of its request; `None` as long as there is none. The end of the session is
    /// recorded first, so that what it says is complete.
    pub fn reply_to(&self, place: &Place, request: &str) -> Result<Option<TurnEnd>> {
        let read = journal::read(place.open()?.dir(), 0)?;
        let stage = read.entries.into_iter().fold(Stage::Unknown, |stage, entry| {
            let ours = entry.request.as_deref() == Some(request);
            stage.after(entry.event, ours)
        });
        Ok(if let Stage::Replied(_, end) = stage { Some(end) } else { None })
    }

    /// Whether the turn that answers a message ended because others have killed its process. Where a process has one turn only, that is
    /// the end of the turn and not of the session.
    pub fn reply_was_cut_off(&self, place: &Place, request: &str) -> Result<bool> {
        let (mut stage, mut signalled, mut killed) = (Stage::Unknown, None, None);
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
            let replied = matches!(stage, Stage::Replied(..));
            stage = stage.after(entry.event, ours);
            if !replied && matches!(stage, Stage::Replied(..)) {
                cut_off = killed == Some(entry.run);
            }
        }
        Ok(cut_off && matches!(stage, Stage::Replied(..)))
    }
}

/// Waits for the end of the turn that answers this message. `journal_before`: how long the journal was before the message.
pub fn wait(place: &Place, request: &str, journal_before: u64) -> Result<Reply> {
    // Subscribe first, look afterwards: what happens in between wakes us.
    let mut watch = SessionWatch::state_only(place)?;
    let folder = place.open()?;
    let (mut stage, mut position) = (Stage::Unknown, journal_before);
    loop {
        let view = look_and_record(place)?;
        let read = journal::read(folder.dir(), position)?;
        position = read.end;
        for entry in read.entries {
            let ours = entry.request.as_deref() == Some(request);
            stage = stage.after(entry.event, ours);
        }
        match stage {
            Stage::Replied(_, end) => return Ok(Reply::Turn(end)),
            Stage::Withdrawn => return Err(Error::Withdrawn { session: (&view).into() }),
            Stage::Unknown | Stage::Waits(_) | Stage::Fed(_) => {}
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
        let by = || "somebody".to_owned();
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
        let stage = events.into_iter().fold(Stage::Unknown, |stage, (event, ours)| stage.after(event, ours));
        assert_eq!(stage, Stage::Replied(2, end("second")));
    }
}
