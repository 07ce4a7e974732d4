//! `ostler send --wait`: the reply to a message, found by what the journal says became of it: accepted, fed, turn over. So it
//! is the reply to this message, whatever waited before it.

use crate::commands::wait::report_question;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::{called, called_at};
use ostler_core::event::Event;
use ostler_core::fact::{TurnEnd, Verdict};
use ostler_core::view::View;
use ostler_engine::request::look_and_record;
use ostler_engine::watch::Watch;
use ostler_store::home::Place;
use ostler_store::journal;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;

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

/// Waits for the end of the turn that answers this message, and prints what it said. The journal was so long before the message.
pub fn wait(place: &Place, wish: &str, journal_before: u64, as_json: bool) -> Result<Code> {
    // Subscribe first, look afterwards: what happens in between wakes us.
    let mut watch = Watch::state_only(place)?;
    let folder = place.open()?;
    let (mut stage, mut position) = (Stage::Unknown, journal_before);
    loop {
        let view = look_and_record(place)?;
        let read = journal::read(folder.dir(), position)?;
        position = read.end;
        for entry in read.entries {
            let ours = entry.wish.as_deref() == Some(wish);
            stage = stage.after(entry.event, ours);
        }
        match &stage {
            Stage::Replied(end) => return reply(place, end, as_json),
            Stage::Withdrawn => {
                return Err(Failure::new(Code::Failed, format!("{}: the message was withdrawn", called(&view))));
            }
            Stage::Unknown | Stage::Waits(_) | Stage::Fed(_) => {}
        }
        if view.ended {
            return Err(ended(&view));
        }
        if view.asking.is_some() {
            report_question(&view)?;
            return Ok(Code::Asks);
        }
        if let Some(fd) = watch.descriptor() {
            match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        watch.heed()?;
    }
}

/// However well an earlier turn went: there was no reply to this message.
fn ended(view: &View) -> Failure {
    let code = match view.outcome.as_ref().map(Code::of) {
        None | Some(Code::Succeeded | Code::NotSaved) => Code::Failed,
        Some(code) => code,
    };
    Failure::new(code, format!("{} ended before it replied; see ostler show {}", called(view), view.id))
}

fn reply(place: &Place, end: &TurnEnd, as_json: bool) -> Result<Code> {
    let code = match end.verdict {
        Verdict::Succeeded => Code::Succeeded,
        Verdict::Failed => Code::Failed,
        Verdict::Interrupted => Code::Stopped,
    };
    if as_json {
        say!("{}", json!({ "id": place.id, "verdict": end.verdict, "text": end.text, "reason": end.reason }))?;
        return Ok(code);
    }
    if let Some(text) = &end.text {
        say!("{}", ostler_screen::printable_text(text).trim_end())?;
    }
    match (code, &end.reason) {
        (Code::Succeeded, _) | (_, None) => Ok(code),
        (code, Some(reason)) => {
            Err(Failure::new(code, format!("{}: {}", called_at(place), ostler_screen::printable(reason))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
