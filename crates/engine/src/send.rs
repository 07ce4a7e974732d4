//! Messages: durable, delivered at the end of the running turn. Also answers and interrupts, which are sent in the same
//! way.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::reply::{self, Reply};
use crate::request::{self, Answered, look_and_record_to};
use crate::session_ref::SessionRef;
use crate::session_watch::SessionWatch;
use ostler_core::fact::Ask;
use ostler_core::record::{Mode, Request, RequestKind, Speaks};
use ostler_core::view::Phase;
use ostler_store::home::Place;
use ostler_store::{inbox, journal};
use ostler_sys::ready::{self, Interest};
use ostler_view::fold;
use ostler_view::look::Depth;
use std::time::{Duration, Instant};

/// How long an interrupt waits for the turn of a message that is on its way.
const UNTIL_A_TURN: Duration = Duration::from_secs(10);

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The keeper has the message, and delivers it.
    Accepted,
    /// The session has ended; the message waits for its next run.
    ForNextRun,
    /// The session is stopping; the message waits for its next run.
    AfterStop,
}

/// An answer to a question of a session.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which question is meant: an answer must never be given to the next question.
    pub request: String,
    /// Yes or no.
    pub allow: bool,
    /// The answer holds for this kind of request for the rest of the run.
    pub always: bool,
    /// The answer to a question in words, or why not.
    pub text: Option<String>,
}

impl Answer {
    /// Allows what is asked, this once.
    #[must_use]
    pub fn allow(ask: &Ask) -> Answer {
        Answer { request: ask.request.clone(), allow: true, always: false, text: None }
    }
}

impl Engine {
    /// Sends a message. `now`: the running turn is interrupted for it.
    pub fn send(&self, place: &Place, text: String, now: bool) -> Result<Sent> {
        check(self, place)?;
        lasting(self, place, RequestKind::Message { text, now })
    }

    /// The same, and waits for the end of the turn that answers it.
    pub fn send_and_wait(&self, place: &Place, text: String, now: bool) -> Result<Reply> {
        check(self, place)?;
        let folder = place.open()?;
        let view = look_and_record_to(Depth::Awaited, place)?;
        if !folder.run(folder.newest_run()?)?.record()?.plan.speaks().converses() {
            return Err(Error::NoTurnEnds { session: (&view).into() });
        }
        if view.ended {
            return Err(Error::EndedForReply { session: (&view).into() });
        }
        let before = journal::size(folder.dir())?;
        match request::make_named(self, place, RequestKind::Message { text, now })? {
            (Answered::Accepted, request) => reply::wait(place, &request, before),
            (Answered::Refused(why), _) => Err(Error::Refused { session: (&view).into(), why }),
            (Answered::Ended(_), _) => Ok(Reply::ForNextRun),
        }
    }

    /// Takes back a message that waits.
    pub fn withdraw(&self, place: &Place, n: u64) -> Result<()> {
        refuse_archived(place)?;
        if look_and_record_to(Depth::Awaited, place)?.ended && !self.waiting(place)?.iter().any(|waits| waits.n == n) {
            return Err(Error::NotWaiting { session: SessionRef::at(place), n });
        }
        // When the session has ended, there is no keeper to accept this, and none to deliver the message either: the
        // next keeper reads both.
        lasting(self, place, RequestKind::Withdraw { n }).map(|_| ())
    }

    /// Queues a message again, when it is not known whether the agent received it.
    pub fn send_again(&self, place: &Place, n: u64) -> Result<Sent> {
        refuse_archived(place)?;
        if !look_and_record_to(Depth::Awaited, place)?.maybe_delivered.contains(&n) {
            return Err(Error::NotUnclear { session: SessionRef::at(place) });
        }
        lasting(self, place, RequestKind::Again { n })
    }

    /// Answers a question.
    pub fn answer(&self, place: &Place, answer: Answer) -> Result<()> {
        let Answer { request, allow, always, text } = answer;
        match request::make(self, place, RequestKind::Answer { request: Some(request), allow, always, text })? {
            Answered::Accepted => Ok(()),
            Answered::Refused(why) => Err(Error::Refused { session: SessionRef::at(place), why }),
            Answered::Ended(_) => Err(Error::EndedAndAsksNothing { session: SessionRef::at(place) }),
        }
    }

    /// Ends the running turn; the session goes on. A session counts as working also while a message is on its way to
    /// the agent. Then this waits for the turn to begin, because a message that was delivered cannot be taken back
    /// before.
    pub fn interrupt(&self, place: &Place) -> Result<()> {
        if self.is_job(place) {
            let running = self.living_children(place)?;
            let hint = match running.first() {
                Some(child) => format!(" (to end that of its session: ostler interrupt {})", child.id),
                None => String::new(),
            };
            let why = Some(format!("a job has no turn of its own{hint}"));
            return Err(Error::NothingToInterrupt { session: SessionRef::at(place), why });
        }
        let until = Instant::now() + UNTIL_A_TURN;
        // Subscribed before the request, so that a turn that begins in between is reported.
        let mut watch = SessionWatch::state_only(place)?;
        loop {
            let why = match request::make(self, place, RequestKind::Interrupt)? {
                Answered::Accepted => return Ok(()),
                Answered::Refused(why) => Some(why),
                Answered::Ended(_) => None,
            };
            if why.is_none() || !self.is_about_to_work(place)? || Instant::now() >= until {
                return Err(Error::NothingToInterrupt { session: SessionRef::at(place), why });
            }
            ready::wait(&watch.fd().map(Interest::read).into_iter().collect::<Vec<_>>(), Some(until))?;
            watch.take_news()?;
        }
    }

    fn is_about_to_work(&self, place: &Place) -> Result<bool> {
        let view = self.view_without_last(place)?;
        Ok(matches!(view.state, Phase::Starting | Phase::Working) && view.message_waits.is_none())
    }

    /// The texts of the messages that wait to be delivered, in their order.
    pub fn queued(&self, place: &Place) -> Result<Vec<String>> {
        let waiting = self.waiting(place)?.into_iter().filter(|message| !message.unclear);
        let text = |kind| if let RequestKind::Message { text, .. } = kind { Some(text) } else { None };
        Ok(waiting.filter_map(|message| text(message.request.kind)).collect())
    }

    /// The messages that still wait: those that the keeper has accepted, and those that it has not read yet.
    pub fn waiting(&self, place: &Place) -> Result<Vec<Waiting>> {
        let folder = place.open()?;
        let run = folder.run(folder.newest_run()?)?;
        let state = fold::state_of(&folder, &run)?;
        let mut waiting = Vec::new();
        let typing: Vec<_> = state.feeding().filter(|_| state.plan.mode() == Mode::Terminal).into_iter().collect();
        for (messages, unclear) in [(&state.mail.maybe_delivered, true), (&typing, false), (&state.mail.queue, false)] {
            for message in messages {
                let request = inbox::read_one(folder.dir(), message.at)?;
                let given_before = !unclear && state.mail.was_taken_back(message.n);
                waiting.extend(request.map(|request| Waiting { n: message.n, request, unclear, given_before }));
            }
        }
        let (unseen, _) = inbox::read(folder.dir(), state.inbox)?;
        let mut next = state.mail.accepted + 1;
        for placed in unseen {
            match placed.request.kind {
                RequestKind::Message { .. } => {
                    waiting.push(Waiting { n: next, request: placed.request, unclear: false, given_before: false });
                    next += 1;
                }
                RequestKind::Withdraw { n } => waiting.retain(|waits| waits.n != n),
                RequestKind::Again { n } => {
                    waiting.iter_mut().filter(|waits| waits.n == n).for_each(|waits| waits.unclear = false)
                }
                RequestKind::Answer { .. }
                | RequestKind::Ask { .. }
                | RequestKind::Interrupt
                | RequestKind::GoOn
                | RequestKind::Stop { .. }
                | RequestKind::Unknown => {}
            }
        }
        Ok(waiting)
    }
}

/// A message that waits, or for which it is not known whether the agent received it.
pub struct Waiting {
    /// Its number.
    pub n: u64,
    /// The request that contains it.
    pub request: Request,
    /// It is not known whether the agent received it.
    pub unclear: bool,
    /// It was given to a process that ended before it had stored it, so it will be given again. What that process did
    /// because of it is done again, too.
    pub given_before: bool,
}

fn lasting(engine: &Engine, place: &Place, kind: RequestKind) -> Result<Sent> {
    let (answered, request) = request::make_named(engine, place, kind)?;
    match answered {
        Answered::Accepted => when_delivered(engine, place, &request),
        Answered::Refused(why) => Err(Error::Refused { session: SessionRef::at(place), why }),
        Answered::Ended(_) => Ok(Sent::ForNextRun),
    }
}

/// Whether a message that was accepted is delivered in this run. A session that is stopping delivers nothing more.
fn when_delivered(engine: &Engine, place: &Place, request: &str) -> Result<Sent> {
    let view = engine.view_without_last(place)?;
    if !view.ended && view.state != Phase::Stopping {
        return Ok(Sent::Accepted);
    }
    let waits = engine.waiting(place)?.into_iter().any(|waiting| waiting.request.id == request);
    Ok(match (waits, view.ended) {
        (false, _) => Sent::Accepted,
        (true, true) => Sent::ForNextRun,
        (true, false) => Sent::AfterStop,
    })
}

/// Refuses a message that could never be delivered.
fn check(engine: &Engine, place: &Place) -> Result<()> {
    if engine.is_job(place) {
        let running = engine.living_children(place)?.into_iter().map(|child| child.id).next();
        return Err(Error::JobTakesNoMessages { session: SessionRef::at(place), running });
    }
    let folder = place.open()?;
    let number = folder.newest_run()?;
    let plan = if number == 0 { None } else { Some(folder.run(number)?.record()?.plan) };
    if plan.as_ref().is_none_or(|plan| plan.mode() == Mode::Headless && plan.speaks() == Speaks::Bytes) {
        return Err(Error::TakesNoMessages { session: SessionRef::at(place) });
    }
    refuse_archived(place)?;
    let view = look_and_record_to(Depth::Awaited, place)?;
    if view.ended && view.agent == "command" {
        return Err(Error::NoTerminal { session: (&view).into() });
    }
    Ok(())
}

/// Nothing is written to an archived session.
pub fn refuse_archived(place: &Place) -> Result<()> {
    if place.archived { Err(Error::Archived { session: SessionRef::at(place) }) } else { Ok(()) }
}
