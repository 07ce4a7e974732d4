//! Resuming: the next run of the same conversation.
//!
//! * `by_itself`: the same checks for a run that the keeper starts by itself, in a process that the keeper starts for
//!   this.
//! * `refusal`: what can be wrong with a request.
//! * `transcript`: what is repaired, restored and copied before the agent reads its transcript.
//! * `same_minute`: an agent that must not be resumed in the minute in which its conversation began.

pub(crate) mod by_itself;
mod refusal;
mod same_minute;
mod transcript;

pub use refusal::{ForkRefusal, ResumeRefusal};

use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::Result;
use crate::launch::{COMMAND, Launched};
use crate::moved;
use crate::notice::Notice;
use crate::orphans;
use crate::owners::{refuse_others, still_runs};
use crate::prepare::{Prepared, prepare};
use crate::quiesced::{NotQuiesced, Quiesced, until_settled};
use crate::repair;
use crate::request::{self, Answered};
use crate::rules::{Asked, For};
use crate::session_ref::SessionRef;
use crate::worktrees;
use ostler_core::event::Event;
use ostler_core::record::{Mode, RequestKind, Session};
use ostler_core::rules::Rules;
use ostler_core::start_when::StartWhen;
use ostler_core::view::{Phase, View};
use ostler_keeper::launch;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::{checkpoints, inbox, journal};
use ostler_view::proof;
use ostler_view::proof::Begun;
use std::path::Path;

/// How a session is continued.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// The message for the agent. Messages that wait already are delivered first.
    pub message: Option<String>,
    /// It waits for further messages after its last turn, and may be started without one.
    pub keep: bool,
    /// Every other process that uses the conversation is ended properly first.
    pub takeover: bool,
    /// A person is there who can answer questions.
    pub attended: bool,
    /// From now on it works in a git worktree of its own.
    pub worktree: Option<worktrees::Asked>,
    /// Restarts and limits of the next run, and of the runs that follow it by themselves. `None`: the rules that the
    /// session had.
    pub rules: Option<Rules>,
    /// What its program waits for before it starts; `None`: nothing.
    pub start_when: Option<Box<StartWhen>>,
}

/// A session with a conversation, as it was found. It may still be running.
#[derive(Debug)]
pub struct Resumable<'e> {
    engine: &'e Engine,
    place: Place,
    /// Its state when it was looked at.
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

    /// Makes a session that waits for a usage limit, or for its next run, continue at once.
    pub fn go_on(&self, place: &Place) -> Result<()> {
        match request::make(self, place, RequestKind::GoOn)? {
            Answered::Accepted => Ok(()),
            Answered::Refused(_) | Answered::Ended(_) => {
                let view = until_settled(place)?;
                let (session, command) = (SessionRef::from(&view), view.agent == COMMAND);
                Err(match view.state {
                    Phase::Queued => ResumeRefusal::Queued { session, command },
                    Phase::Starting
                    | Phase::Working
                    | Phase::Running
                    | Phase::Waiting
                    | Phase::Idle
                    | Phase::Asking
                    | Phase::Stopping
                    | Phase::Ended => ResumeRefusal::DoesNotWait { session },
                }
                .into())
            }
        }
    }

    /// The first half of [`Engine::resume`], for a face that asks a person something in between: refuses a session that
    /// has no conversation to continue.
    pub fn resumable(&self, place: &Place) -> Result<Resumable<'_>> {
        let view = until_settled(place).map_err(|error| moved::or_else(place, error))?;
        let session = SessionRef::from(&view);
        if place.archived {
            return Err(ResumeRefusal::Archived { session }.into());
        }
        if view.agent == COMMAND {
            return Err(ResumeRefusal::Command { session }.into());
        }
        Ok(Resumable { engine: self, place: place.clone(), view })
    }
}

impl Engine {
    /// Starts the run that follows run `after` of a session that is continued by a rule. This includes commands, which
    /// a person would start anew instead. `None`: that run has begun already. Creating its folder begins a run, so that
    /// only one of several processes that try succeeds.
    pub(crate) fn continue_by_rule(
        &self,
        place: &Place,
        after: u32,
        request: Resume,
        tell: &mut dyn FnMut(Notice),
    ) -> Result<Option<Launched>> {
        let view = until_settled(place).map_err(|error| moved::or_else(place, error))?;
        if view.run != after {
            return Ok(None);
        }
        Resumable { engine: self, place: place.clone(), view }.start(request, tell).map(Some)
    }
}

impl Resumable<'_> {
    /// Ends every process that uses the conversation.
    pub fn take_over(&mut self, tell: &mut dyn FnMut(Notice)) -> Result<()> {
        self.engine.take_over(&self.place, &self.view, tell)?;
        self.view = until_settled(&self.place)?;
        Ok(())
    }

    /// Its rules for the next run: what is asked for, else what it had. `waits`: at a usage limit, unless something
    /// else is asked for.
    pub fn rules(&self, asked: &Asked, waits: bool) -> Result<Rules> {
        let of = For { agent: &self.view.agent, mode: self.view.mode, waits };
        self.engine.rules_of_resumed(asked, of, rules_before(&self.place.open()?, &self.view)?, &self.view)
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
        // The next run of a job continues from the job's own record, and the next run of a command begins anew: neither
        // needs a message.
        let queued = request.start_when.is_some();
        let waits =
            queued || request.message.is_some() || view.queued > 0 || session.job.is_some() || session.agent == COMMAND;
        // A session that ended before it had a conversation begins one, if there is a message for it.
        if view.native_id.is_none() && session.fork.is_none() && session.mode == Mode::Terminal && !waits {
            return Err(ResumeRefusal::NeverBegun { session: SessionRef::from(&view) }.into());
        }
        // If its end could not be recorded, the session has not ended: another process has it.
        if view.run > 0 && folder.run(view.run)?.outcome()?.is_none() {
            return Err(still_running());
        }
        if let Some(n) = view.maybe_delivered.first().filter(|_| !waits && !request.keep) {
            return Err(ResumeRefusal::MaybeDelivered { id: place.id, n: *n }.into());
        }
        if !waits && !request.keep && session.mode == Mode::Headless {
            return Err(ResumeRefusal::MessageMissing { id: place.id }.into());
        }
        if request.worktree.is_some() {
            let agent = ostler_agents::find(&view.agent);
            if !agent.is_some_and(|agent| agent.continues_elsewhere()) {
                let copies = agent.is_some_and(|agent| agent.copies_elsewhere());
                return Err(ResumeRefusal::SameFolder { agent: view.agent.clone(), id: place.id, copies }.into());
            }
        }
        let recorded = session.clone();
        session.keep = request.keep;
        // A job is started again with the rules that it was launched with.
        if session.job.is_none() {
            session.rules = match request.rules {
                Some(rules) => rules,
                None => {
                    let of = For { agent: &view.agent, mode: view.mode, waits: true };
                    engine.rules_of_resumed(&Asked::default(), of, rules_before(&folder, &view)?, &view)?
                }
            };
        }
        // An agent that had to ask before still has to ask, whether or not a person is there: rights are never widened.
        session.attended |= request.attended;
        let number = view.run + 1;
        if let Some(native_id) = &view.native_id {
            refuse_others(&engine.environment, view.conversation_agent(), native_id, Some(&folder))?;
            same_minute::wait_out(&folder, &session, native_id, tell)?;
        }
        // No other command may archive or delete the session while its next run begins; the new keeper waits until this
        // lock is released.
        let quiesced = match Quiesced::take(&place) {
            Ok(quiesced) => quiesced,
            Err(NotQuiesced::Runs) => return Err(still_running()),
            Err(NotQuiesced::Failed(error)) => return Err(error),
        };
        // Another run has begun and ended since the session was looked at.
        if quiesced.view.as_ref().is_ok_and(|now| now.run != view.run) {
            return Err(still_running());
        }
        let start = |session: &Session, tell: &mut dyn FnMut(Notice)| {
            let next = Next { session, start_when: request.start_when.clone() };
            next_run(engine, &place, &folder, &view, &next, tell).map(|()| place.clone())
        };
        match &request.worktree {
            None => start(&session, tell)?,
            Some(asked) => engine.in_worktree(&mut session, asked, tell, |session, tell| {
                let moved =
                    Session { cwd: session.cwd.clone(), worktree: session.worktree.clone(), ..recorded.clone() };
                folder.replace_session(&moved)?;
                start(session, tell).inspect_err(|_| {
                    // If the old record cannot be put back, the new one still says where the next run works. The
                    // worktree is removed, and is made anew then.
                    let _ = folder.replace_session(&recorded);
                })
            })?,
        };
        drop(quiesced);
        if let Some(text) = request.message {
            inbox::append(&folder, &engine.request(number, RequestKind::Message { text, now: false }))?;
            // The keeper reads the inbox when it starts and whenever it is woken; this wakes it.
            drop(request::reach(engine, &place)?);
        }
        Ok(Launched { place, session })
    }
}

/// The rules of the newest run.
fn rules_before(folder: &Folder, view: &View) -> Result<Rules> {
    Ok(if view.run == 0 { folder.session()?.rules } else { folder.run(view.run)?.record()?.plan.rules })
}

/// How the next run is started.
struct Next<'a> {
    session: &'a Session,
    start_when: Option<Box<StartWhen>>,
}

/// Starts the next run. The caller has checked that no other run has begun, and keeps all other processes from starting
/// one.
fn next_run(
    engine: &Engine,
    place: &Place,
    folder: &Folder,
    view: &View,
    Next { session, start_when }: &Next<'_>,
    tell: &mut dyn FnMut(Notice),
) -> Result<()> {
    // Recorded for the previous run: the next one has not begun.
    let note: repair::Note<'_> = &mut |changes, backup: &Path| repair::note(folder, view.run, changes, backup);
    transcript::bring_back(&engine.environment, folder, view, tell, note)?;
    transcript::bring_back_lost(folder, view, tell, note)?;
    let begun = begun(&engine.environment, folder, view)?;
    let native_id = match &view.native_id {
        Some(known) if begun != Begun::InNameOnly => known.clone(),
        // A copy that was never made has no id yet, and is made now. The same holds for a session that ended before the
        // agent gave its conversation an id.
        Some(_) | None => uuid::Uuid::new_v4().to_string(),
    };
    let mut prepared = prepare(engine, session, view.run + 1, &native_id, begun == Begun::Yes)?;
    prepared.record.start_when.clone_from(start_when);
    if prepared.record.plan.opens() && prepared.record.behind.is_none() && view.run > 0 {
        // What the program reported about itself in the last run, where its command line does not show it: the lock
        // needs this before the start.
        prepared.record.behind = folder.run(view.run)?.record()?.behind;
    }
    let Prepared { record, files, environment } = &prepared;
    for process in orphans::end_all_of(folder, place.id, view.run, &native_id)? {
        tell(Notice::EndedLeftover { session: SessionRef::from(view), process });
    }
    // Some agents rewrite a transcript when they resume it, and a repair may rewrite it, too.
    transcript::save(folder, view, record, checkpoints::save)?;
    repair::before_resume(engine, session, record, tell, note)?;
    // What was repaired or reported here must not be reported again.
    transcript::save(folder, view, record, checkpoints::settle)?;
    let next = launch::Resume { session, run: record, files, environment };
    if launch::resume(place, next, &engine.launcher)? {
        Ok(())
    } else {
        Err(still_runs(&engine.environment, place, view))
    }
}

/// Whether there is a conversation to continue. If the agent died before it wrote anything, there is none, and it has
/// to be begun: an agent that is told to continue it would refuse each time, and waiting messages would wait for ever.
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
        // Behind a protocol, a conversation has begun when a message was taken, whether or not its turn ended.
        None => {
            let taken = |event: &Event| matches!(event, Event::FoundDelivered { .. });
            let worked = journal::read(folder.dir(), 0)?.entries.iter().any(|entry| taken(&entry.event));
            Ok(if worked { Begun::Yes } else { Begun::No })
        }
    }
}
