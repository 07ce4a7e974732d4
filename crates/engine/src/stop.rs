//! Ending sessions properly: all are asked before any is waited for.

mod damaged;

pub use damaged::Helpers;

use crate::error::{Error, Result};
use crate::job::why_with_job;
use crate::list::{Listed, list};
use crate::notice::Notice;
use crate::orphans;
use crate::request::{self, Answered};
use crate::session_ref::SessionRef;
use crate::settings::Engine;
use crate::wait;
pub use ostler_core::event::StopHow;
use ostler_core::id::SessionId;
use ostler_core::outcome::{Kind, Saved};
use ostler_core::record::RequestKind;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_sys::threads::{many_at_once, many_in_order};
use ostler_view::look::{Depth, look_to};
use std::path::Path;
use std::time::Duration;

/// So many sessions are asked to end at the same time.
const AT_ONCE: usize = 16;

/// What the driver of a job needs beside the grace of its children.
const CHILDREN: Duration = Duration::from_secs(5);

/// How sessions are to end.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Which steps are taken.
    pub how: StopHow,
    /// How long the agent may take before it is killed.
    pub grace: Duration,
    /// For the journal and the outcome: which command wants it.
    pub why: String,
}

impl Stop {
    /// What the session's keeper is asked for.
    fn kind(&self) -> RequestKind {
        let grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
        RequestKind::Stop { how: self.how, grace_ms, why: self.why.clone() }
    }

    /// The same for a job, whose driver ends its children first: each of them may take all of the grace.
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

/// What ends the children of a job.
struct Children {
    engine: Engine,
    stop: Stop,
}

/// Which process was asked.
enum Asked {
    Keeper(Answered),
    /// Its records cannot be read, so its helpers were told as a machine that shuts down tells them.
    Helpers(Helpers),
}

/// What became of it.
pub enum Stopped {
    /// It has ended.
    Ended(End),
    /// It has ended; whether its last turn is saved is not known, because its folder is damaged like this.
    Damaged {
        /// What is wrong with its folder.
        damage: String,
    },
}

/// A session that has ended.
pub struct End {
    /// What it looks like, with its outcome.
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
    /// The one that this process runs in. It would be ended before it could tell what became of the others, so it is apart.
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
        // Several at a time: each request is on the disk before its keeper answers.
        many_at_once(AT_ONCE, &places, |place| self.ask_to_stop(place.clone(), stop)).into_iter().collect()
    }

    /// Asks one session to end.
    pub fn ask_to_stop(&self, place: Place, stop: &Stop) -> Result<Stopping> {
        let asked = match damaged::tell_helpers(&place)? {
            Some(helpers) => Asked::Helpers(helpers),
            None if self.is_job(&place) => {
                let asked = Asked::Keeper(request::make(self, &place, stop.of_job().kind())?);
                let children = Some(Children { engine: self.clone(), stop: stop.clone() });
                return Ok(Stopping { place, grace: stop.of_job().grace, asked, children });
            }
            None => Asked::Keeper(request::make(self, &place, stop.kind())?),
        };
        Ok(Stopping { place, grace: stop.grace, asked, children: None })
    }
}

impl Stopping {
    /// Whether it was asked to end after its turn, and asks a question first.
    #[must_use]
    pub fn asks_first(&self) -> bool {
        matches!(self.asked, Asked::Keeper(Answered::Accepted))
            && look_to(Depth::Standing, &self.place).is_ok_and(|view| view.asking.is_some())
    }

    /// Waits until it has ended. Processes that a session which is lost has left are ended, each with a notice.
    pub fn wait(self, tell: &mut dyn FnMut(Notice)) -> Result<Stopped> {
        let place = self.place;
        let end = match self.asked {
            Asked::Helpers(helpers) => return helpers.until_gone(self.grace).map(|damage| Stopped::Damaged { damage }),
            Asked::Keeper(answered) => end(&place, answered)?,
        };
        let is_lost = end.view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Lost);
        if end.was_over && is_lost && !place.archived && damaged::still_runs(&place)? {
            for process in orphans::end_contained(&place.open()?, place.id, end.view.run)? {
                tell(Notice::EndedOrphan { session: SessionRef::at(&place), process });
            }
        }
        // The driver has ended them. One that was killed on its way has not, and a launch of its may have been under way.
        if let Some(Children { engine, stop }) = self.children {
            let stop = Stop { why: why_with_job(place.id), ..stop };
            for child in engine.living_children(&place)? {
                engine.ask_to_stop(child, &stop)?.wait(tell)?;
            }
        }
        Ok(Stopped::Ended(end))
    }
}

/// What became of one of many sessions, and what happened on the way.
pub struct Waited {
    /// Where it is.
    pub place: Place,
    /// In the order in which they came.
    pub notices: Vec<Notice>,
    /// How it ended.
    pub stopped: Result<Stopped>,
}

/// Waits until all of these sessions have ended, and hands over what became of each, in their order. Several at a time: before
/// anybody is told of an end it is made sure that it is on the disk.
pub fn wait_for_all(stopping: Vec<Stopping>, each: impl FnMut(Waited)) {
    let wait = |stopping: Stopping| {
        let (place, mut notices) = (stopping.place.clone(), Vec::new());
        let stopped = stopping.wait(&mut |notice| notices.push(notice));
        Waited { place, notices, stopped }
    };
    many_in_order(AT_ONCE, stopping, wait, each);
}

/// Waits for the end that was asked for.
pub fn end(place: &Place, answered: Answered) -> Result<End> {
    match answered {
        Answered::Ended(view) => Ok(End { view, was_over: true }),
        Answered::Accepted => Ok(End { view: Box::new(wait::until_ended(place)?), was_over: false }),
        Answered::Refused(why) => Err(Error::Refused { session: SessionRef::at(place), why }),
    }
}
