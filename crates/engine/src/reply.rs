//! The reply to a message, found by what the journal says became of it: accepted, fed, turn over. So it
//! is the reply to this message, whatever waited before it.

use crate::error::{Error, Result};
use crate::request::look_and_record;
use crate::session_watch::SessionWatch;
use ostler_core::event::Event;
use ostler_core::fact::TurnEnd;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_store::journal;

/// How far a message has come.
#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// What was asked for is not in the journal yet.
    Unknown,
    Waits(u64),
    Fed(u64),
    Replied(TurnEnd),
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
            (Stage::Fed(_), Event::TurnEnded { end }) => Stage::Replied(end),
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
            Stage::Replied(end) => return Ok(Reply::Turn(end)),
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
            (Event::TurnEnded { end: end("second") }, false),
        ];
        let stage = events.into_iter().fold(Stage::Unknown, |stage, (event, ours)| stage.after(event, ours));
        assert_eq!(stage, Stage::Replied(end("second")));
    }
}
