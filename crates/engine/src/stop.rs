//! Ending sessions properly: all are asked before any is waited for.

mod damaged;

pub use damaged::Helpers;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::job::why_with_job;
use crate::list::{Listed, list};
use crate::notice::Notice;
use crate::orphans;
use crate::request::{self, Answered};
use crate::session_ref::SessionRef;
use crate::wait;
pub use ostler_core::event::StopHow;
use ostler_core::id::SessionId;
use ostler_core::outcome::Saved;
use ostler_core::record::RequestKind;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_sys::threads::{many_at_once, many_in_order};
use ostler_view::look::{Depth, look_to};
use std::path::Path;
use std::time::Duration;

/// How many sessions are asked to end at the same time.
const AT_ONCE: usize = 16;

/// The time that the driver of a job needs in addition to the grace period of its children.
const CHILDREN: Duration = Duration::from_secs(5);

/// How sessions are to end.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Which steps are taken.
    pub how: StopHow,
    /// How long the agent may take before it is killed.
    pub grace: Duration,
    /// For the journal and the outcome: which command asks for it.
    pub why: String,
}

impl Stop {
    /// The request to the session's keeper.
    fn kind(&self) -> RequestKind {
        let grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
        RequestKind::Stop { how: self.how, grace_ms, why: self.why.clone() }
    }

    /// The same for a job, whose driver ends its children first: each of them may take the whole grace period.
    fn of_job(&self) -> Stop {
        let grace = match self.how {
            StopHow::Kill => self.grace,
            StopHow::Interrupt | StopHow::AfterTurn => self.grace * 2 + CHILDREN,
        };
        Stop { grace, ..self.clone() }
    }
}

/// A session that was asked to end.
pub struct Stopping {
    /// Where it is.
    pub place: Place,
    grace: Duration,
    asked: Asked,
    /// For the children of a job that its driver could not end.
    children: Option<Children>,
}

/// What is needed to end the children of a job.
struct Children {
    engine: Engine,
    stop: Stop,
}

/// Which process was asked.
enum Asked {
    /// Its answer, and the run that is to end.
    Keeper((Answered, u32)),
    /// Its records cannot be read, so its helpers got the signal of a machine that shuts down.
    Helpers(Helpers),
}

/// How a stop ended.
pub enum Stopped {
    /// It has ended.
    Ended(End),
    /// It has ended; whether its last turn is saved is not known, because its folder is damaged.
    Damaged {
        /// What is wrong with its folder.
        damage: String,
    },
}

/// A session that has ended.
pub struct End {
    /// Its view, with its outcome.
    pub view: Box<View>,
    /// It had ended before it was asked.
    pub was_over: bool,
}

impl End {
    /// Whether its last turn is proven saved, or there was nothing to save.
    #[must_use]
    pub fn is_saved(&self) -> bool {
        is_saved(&self.view)
    }
}

/// Whether its last turn is proven saved, or there was nothing to save.
#[must_use]
pub fn is_saved(view: &View) -> bool {
    view.outcome.as_ref().is_none_or(|outcome| outcome.saved != Saved::Unverified)
}

/// The sessions that run.
pub struct Running {
    /// Where they are.
    pub places: Vec<Place>,
    /// The session that this process runs in. It is separate, because this process would be ended before it could
    /// report on the others.
    pub own: Option<SessionId>,
}

impl Engine {
    /// Every session that runs, or those that work in this folder and below it.
    pub fn running(&self, below: Option<&Path>) -> Result<Running> {
        let own = self.own_session().map(|id| id.to_string());
        let meant = list(self, false, |one| match one {
            Listed::Good(view) => {
                let there = below.is_none_or(|folder| Path::new(&view.cwd).starts_with(folder));
                (!view.ended && there).then(|| view.id.to_string())
            }
            Listed::Bad(damaged) => (damaged.alive && below.is_none()).then_some(damaged.id),
        })?;
        let (own, others): (Vec<String>, Vec<String>) =
            meant.into_iter().flatten().partition(|id| own.as_ref() == Some(id));
        let places = others.iter().map(|id| self.select(id)).collect::<Result<_>>()?;
        Ok(Running { places, own: own.first().and_then(|id| SessionId::parse(id)) })
    }

    /// Asks all of these sessions to end. Wait for them with [`wait_for_all`].
    pub fn stop(&self, places: Vec<Place>, stop: &Stop) -> Result<Vec<Stopping>> {
        // Several at a time, because each request is synced to the disk before its keeper answers.
        many_at_once(AT_ONCE, &places, |place| self.ask_to_stop(place.clone(), stop)).into_iter().collect()
    }

    /// Asks one session to end.
    pub fn ask_to_stop(&self, place: Place, stop: &Stop) -> Result<Stopping> {
        let asked = match damaged::tell_helpers(&place)? {
            Some(helpers) => Asked::Helpers(helpers),
            None if self.is_job(&place) => {
                let asked = Asked::Keeper(request::make_to_run(self, &place, stop.of_job().kind())?);
                let children = Some(Children { engine: self.clone(), stop: stop.clone() });
                return Ok(Stopping { place, grace: stop.of_job().grace, asked, children });
            }
            None => Asked::Keeper(request::make_to_run(self, &place, stop.kind())?),
        };
        Ok(Stopping { place, grace: stop.grace, asked, children: None })
    }
}

impl Stopping {
    /// Whether it was asked to end after its turn, and asks a question first.
    #[must_use]
    pub fn asks_first(&self) -> bool {
        matches!(self.asked, Asked::Keeper((Answered::Accepted, _)))
            && look_to(Depth::Standing, &self.place).is_ok_and(|view| view.asking.is_some())
    }

    /// Waits until it has ended. Processes that a lost session has left running are ended, each with a notice.
    pub fn wait(self, tell: &mut dyn FnMut(Notice)) -> Result<Stopped> {
        let place = self.place;
        let end = match self.asked {
            Asked::Helpers(helpers) => return helpers.until_gone(self.grace).map(|damage| Stopped::Damaged { damage }),
            Asked::Keeper(answered) => end(&place, answered)?,
        };
        if end.was_over {
            orphans::end_of_lost(&place, &end.view, tell)?;
        }
        // The driver has ended its children, unless it was killed before. Then one of its launches may have been under
        // way, too.
        if let Some(Children { engine, stop }) = self.children {
            let stop = Stop { why: why_with_job(place.id), ..stop };
            for child in engine.living_children(&place)? {
                engine.ask_to_stop(child, &stop)?.wait(tell)?;
            }
        }
        Ok(Stopped::Ended(end))
    }
}

/// The result of one of many sessions, and the notices about it.
pub struct Waited {
    /// Where it is.
    pub place: Place,
    /// In the order in which they came.
    pub notices: Vec<Notice>,
    /// How it ended.
    pub stopped: Result<Stopped>,
}

/// Waits until all of these sessions have ended, and passes the result of each to `each`, in order. Several at a time,
/// because each end is synced to the disk before it is reported.
pub fn wait_for_all(stopping: Vec<Stopping>, each: impl FnMut(Waited)) {
    let wait = |stopping: Stopping| {
        let (place, mut notices) = (stopping.place.clone(), Vec::new());
        let stopped = stopping.wait(&mut |notice| notices.push(notice));
        Waited { place, notices, stopped }
    };
    many_in_order(AT_ONCE, stopping, wait, each);
}

/// Waits for the end that was asked for.
pub fn end(place: &Place, (answered, run): (Answered, u32)) -> Result<End> {
    match answered {
        Answered::Ended(view) => Ok(End { view, was_over: true }),
        Answered::Accepted => Ok(End { view: Box::new(wait::until_run_ended(place, run)?), was_over: false }),
        Answered::Refused(why) => Err(Error::Refused { session: SessionRef::at(place), why }),
    }
}
