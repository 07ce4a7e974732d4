//! Resuming: the next run of the same conversation.
//!
//! * `refusal`: what can be wrong with a request.
//! * `transcript`: what is repaired, restored and copied before the agent reads its transcript.
//! * `same_minute`: an agent that must not be resumed in the minute in which its conversation began.

mod refusal;
mod same_minute;
mod transcript;

pub use refusal::{ForkRefusal, ResumeRefusal};

use crate::environment::Environment;
use crate::error::Result;
use crate::launch::Launched;
use crate::moved;
use crate::notice::Notice;
use crate::orphans;
use crate::owners::{refuse_others, still_runs};
use crate::prepare::{Prepared, prepare};
use crate::quiesced::{NotQuiesced, Quiesced, until_settled};
use crate::repair;
use crate::session_ref::SessionRef;
use crate::settings::Engine;
use ostler_core::event::Event;
use ostler_core::record::{Mode, RequestKind};
use ostler_core::view::View;
use ostler_keeper::launch;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::{checkpoints, inbox, journal};
use ostler_view::proof;
use ostler_view::proof::Begun;

/// How a session goes on.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// What it is told. Messages that wait already are told first.
    pub message: Option<String>,
    /// It waits for further messages after its last turn, and is started without one.
    pub keep: bool,
    /// Every other process that uses the conversation is ended properly first.
    pub takeover: bool,
    /// A person is there who can answer questions.
    pub attended: bool,
}

/// A session with a conversation, as it was found. It may still be running.
#[derive(Debug)]
pub struct Resumable<'e> {
    engine: &'e Engine,
    place: Place,
    /// What it looks like.
    pub view: View,
}

impl Engine {
    /// Starts the next run of a session that has ended. When this returns, its program runs and its helpers exist.
    pub fn resume(&self, place: &Place, request: Resume, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
        let mut resumable = self.resumable(place)?;
        if request.takeover {
            resumable.take_over(tell)?;
        }
        resumable.start(request, tell)
    }

    /// The first half of [`Engine::resume`], for a face that asks a person something in between: refuses what has no conversation
    /// to continue.
    pub fn resumable(&self, place: &Place) -> Result<Resumable<'_>> {
        let view = until_settled(place).map_err(|error| moved::or_else(place, error))?;
        let session = SessionRef::from(&view);
        if place.archived {
            return Err(ResumeRefusal::Archived { session }.into());
        }
        if view.agent == crate::launch::COMMAND {
            return Err(ResumeRefusal::Command { session }.into());
        }
        Ok(Resumable { engine: self, place: place.clone(), view })
    }
}

impl Resumable<'_> {
    /// Ends every process that uses the conversation.
    pub fn take_over(&mut self, tell: &mut dyn FnMut(Notice)) -> Result<()> {
        self.engine.take_over(&self.place, &self.view, tell)?;
        self.view = until_settled(&self.place)?;
        Ok(())
    }

    /// Starts the next run.
    pub fn start(self, request: Resume, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
        let place = self.place.clone();
        self.start_run(request, tell).map_err(|error| moved::or_else(&place, error))
    }

    fn start_run(self, request: Resume, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
        let Resumable { engine, place, view } = self;
        let still_running = || still_runs(&engine.environment, &place, &view);
        if !view.ended {
            return Err(still_running());
        }
        let folder = place.open()?;
        let mut session = folder.session()?;
        let waits = request.message.is_some() || view.queued > 0;
        // One that ended before it had a conversation begins one, if there is something to say in it.
        if view.native_id.is_none() && session.fork.is_none() && session.mode == Mode::Terminal && !waits {
            return Err(ResumeRefusal::NeverBegun { session: SessionRef::from(&view) }.into());
        }
        // An end that cannot be recorded is none: another process has the session.
        if view.run > 0 && folder.run(view.run)?.outcome()?.is_none() {
            return Err(still_running());
        }
        if let Some(n) = view.maybe_delivered.first().filter(|_| !waits && !request.keep) {
            return Err(ResumeRefusal::MaybeDelivered { id: place.id, n: *n }.into());
        }
        if !waits && !request.keep && session.mode == Mode::Headless {
            return Err(ResumeRefusal::MessageMissing { id: place.id }.into());
        }
        session.keep = request.keep;
        // An agent that had to ask before has to ask again, no matter who watches: rights never widen.
        session.attended |= request.attended;
        let number = view.run + 1;
        if let Some(native_id) = &view.native_id {
            refuse_others(&engine.environment, view.conversation_agent(), native_id, Some(&folder))?;
            same_minute::wait_out(&folder, &session, native_id, tell)?;
        }
        // Nobody may archive or delete it while its next run begins; the new keeper waits until this is released.
        let quiesced = match Quiesced::take(&place) {
            Ok(quiesced) => quiesced,
            Err(NotQuiesced::Runs) => return Err(still_running()),
            Err(NotQuiesced::Failed(error)) => return Err(error),
        };
        transcript::bring_back(&engine.environment, &folder, &view, tell)?;
        transcript::bring_back_lost(&folder, &view, tell)?;
        let begun = begun(&engine.environment, &folder, &view)?;
        let native_id = match &view.native_id {
            Some(known) if begun != Begun::InNameOnly => known.clone(),
            // A copy that was never made has no name yet, and is made now; so is what ended before the agent named it.
            Some(_) | None => uuid::Uuid::new_v4().to_string(),
        };
        let mut prepared = prepare(engine, &session, number, &native_id, begun == Begun::Yes)?;
        if prepared.record.plan.opens() && prepared.record.behind.is_none() && view.run > 0 {
            // What the program has told about itself, where its command tells nothing: the lock needs it before the start.
            prepared.record.behind = folder.run(view.run)?.record()?.behind;
        }
        let Prepared { record, files, environment } = &prepared;
        for process in orphans::end_all_of(&folder, place.id, view.run, &native_id)? {
            tell(Notice::EndedLeftover { session: SessionRef::from(&view), process });
        }
        // Some agents rewrite a transcript when they resume it, and so may we.
        transcript::save(&folder, &view, record, checkpoints::save)?;
        repair::before_resume(engine, &folder, &session, record, tell)?;
        // What was repaired, and what was told, is no surprise to anyone.
        transcript::save(&folder, &view, record, checkpoints::settle)?;
        let next = launch::Resume { session: &session, run: record, files, environment };
        if !launch::resume(&place, next, &engine.launcher)? {
            return Err(still_running());
        }
        drop(quiesced);
        if let Some(text) = request.message {
            inbox::append(&folder, &engine.request(number, RequestKind::Message { text, now: false }))?;
            // The keeper looks into the inbox when it starts and whenever it is woken; this wakes it.
            drop(launch::reach(&place, &engine.launcher)?);
        }
        Ok(Launched { place, session })
    }
}

/// Whether there is a conversation to go on with. One whose agent died before it wrote anything down has left no trace, and
/// is begun: told to go on with it, the agent would refuse, each time, and what waits would wait for ever.
pub(crate) fn begun(environment: &Environment, folder: &Folder, view: &View) -> Result<Begun> {
    let Some(native_id) = &view.native_id else {
        return Ok(Begun::No);
    };
    let agent = ostler_agents::find(view.conversation_agent());
    let known = agent.and_then(|agent| {
        proof::begun_with(agent, native_id, &view.cwd, view.transcript.as_deref(), &environment.lookup())
    });
    match known {
        Some(known) => Ok(known),
        None if view.turns > 0 => Ok(Begun::Yes),
        // Behind a protocol, one that has worked for a message has begun, whether or not it came to an end.
        None => {
            let taken = |event: &Event| matches!(event, Event::FoundDelivered { .. });
            let worked = journal::read(folder.dir(), 0)?.entries.iter().any(|entry| taken(&entry.event));
            Ok(if worked { Begun::Yes } else { Begun::No })
        }
    }
}
