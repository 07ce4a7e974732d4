//! After a reboot: sessions that were meant to go on are continued, and nothing else.
//!
//! These sessions are meant to go on: jobs, sessions that are restarted by a rule, and sessions that wait for a limit,
//! a time or a place in a queue. Such a session is continued when its helpers died without ending it, or when they
//! ended it because the machine shut down. A session that a person has stopped, or that has finished, stays ended. A
//! session that a job has launched is left to the job.
//!
//! A session that waited goes on waiting: for the same time, for the same sessions, and at the same place in its queue.

use crate::engine::Engine;
use crate::error::Result;
use crate::launch::COMMAND;
use crate::notice::Notice;
use crate::request::look_and_record_to;
use crate::resume::Resume;
use crate::session_ref::SessionRef;
use jiff::{SignedDuration, Timestamp};
use ostler_core::event::Event;
use ostler_core::life::{SYSTEM, State, Until};
use ostler_core::outcome::Kind;
use ostler_core::record::Session;
use ostler_core::rules::Rules;
use ostler_core::start_when::{Claim, StartWhen};
use ostler_core::view::{Phase, View};
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::Place;
use ostler_store::{RunRecord, journal};
use ostler_sys::clock;
use ostler_view::fold;
use ostler_view::look::Depth;

/// The message to a session that is continued and has no message waiting.
const CONTINUE: &str = "continue";

/// The signal that a machine sends to all processes when it shuts down.
const SHUTDOWN: i32 = 15;

/// Why a session is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeantToGoOn {
    /// It is a job.
    Job,
    /// It was started with a rule that restarts it.
    Restart,
    /// It waited.
    Waited,
}

/// A session that was continued, or could not be.
pub struct Recovered {
    /// Which one.
    pub session: SessionRef,
    /// Why it is continued.
    pub why: MeantToGoOn,
    /// The result.
    pub done: Result<()>,
}

/// A session that is continued, and how.
struct GoesOn {
    place: Place,
    session: Session,
    /// The rules of its newest run.
    rules: Rules,
    view: View,
    why: MeantToGoOn,
    /// What its program waits for first.
    start_when: Option<Box<StartWhen>>,
    /// Its program was never started.
    never_began: bool,
}

/// Which process has continued a session.
enum Continued {
    /// This one.
    Here,
    /// Another one was first.
    Elsewhere,
}

impl GoesOn {
    /// Sessions that were in a queue join it again in their order: the first one may find a free slot.
    fn order(&self) -> (i64, Option<Timestamp>) {
        let when = self.start_when.as_ref();
        let priority = when.and_then(|when| when.queue.as_ref()).map_or(0, |queue| queue.priority);
        (-i64::from(priority), when.and_then(|when| when.arrived))
    }
}

impl Engine {
    /// Continues every session that was meant to go on and has no processes any more. `dry`: only returns which. May be
    /// repeated at any time: a session that runs is left alone.
    pub fn recover(&self, dry: bool, tell: &mut dyn FnMut(Notice)) -> Result<Vec<Recovered>> {
        if !dry {
            self.send_what_waits()?;
        }
        let (mut go_on, mut recovered) = (Vec::new(), Vec::new());
        for place in self.home.live_places()? {
            // A session that cannot be read must not keep the others from being continued.
            let Ok(view) = look_and_record_to(Depth::Awaited, &place) else { continue };
            if view.ended {
                go_on.extend(meant_to_go_on(place, view)?.filter(|one| !one.session.driven));
                continue;
            }
            // The session waits without helpers, so nothing would end its wait.
            let waits = view.state == Phase::Waiting && !view.kept && view.holder_pid.is_none();
            if waits && let Some(why) = why_it_goes_on(&place, &view) {
                let done = if dry { Ok(()) } else { self.tend(&place, &view) };
                recovered.push(Recovered { session: SessionRef::from(&view), why, done });
            } else if !dry {
                self.tend(&place, &view)?;
            }
        }
        go_on.sort_by_key(GoesOn::order);
        for one in go_on {
            let (session, why) = (SessionRef::from(&one.view), one.why);
            let done = match dry {
                true => Ok(()),
                false => match self.continue_session(one, tell) {
                    Ok(Continued::Here) => Ok(()),
                    // The process that was first reports it.
                    Ok(Continued::Elsewhere) => continue,
                    Err(error) => Err(error),
                },
            };
            recovered.push(Recovered { session, why, done });
        }
        Ok(recovered)
    }

    /// The same for one session. False: it runs, or is not meant to go on.
    pub fn recover_one(&self, place: &Place, tell: &mut dyn FnMut(Notice)) -> Result<bool> {
        let view = look_and_record_to(Depth::Awaited, place)?;
        if !view.ended {
            return Ok(false);
        }
        match meant_to_go_on(place.clone(), view)?.filter(|one| !one.session.driven) {
            Some(one) => self.continue_session(one, tell).map(|_| true),
            None => Ok(false),
        }
    }

    /// The same for a session that a job has launched; the job calls this. False: the session runs, has finished, or
    /// has no rule to go on.
    pub fn recover_child(&self, place: &Place) -> Result<bool> {
        let view = look_and_record_to(Depth::Awaited, place)?;
        match if view.ended { meant_to_go_on(place.clone(), view)? } else { None } {
            Some(one) => self.continue_session(one, &mut |_| {}).map(|_| true),
            None => Ok(false),
        }
    }

    /// Continues the run that was looked at, and no other: a run that has begun since may have finished.
    fn continue_session(&self, one: GoesOn, tell: &mut dyn FnMut(Notice)) -> Result<Continued> {
        let GoesOn { place, session, rules, view, why, start_when, never_began } = one;
        // A session that was never started has its prompt among its messages.
        let is_told = why != MeantToGoOn::Job && session.agent != COMMAND && view.queued == 0 && !never_began;
        let message = (is_told && !session.keep).then(|| CONTINUE.to_owned());
        self.configure_queue(start_when.as_ref().and_then(|when| when.queue.as_ref()))?;
        let request =
            Resume { message, keep: session.keep, rules: Some(rules.counted_on()), start_when, ..Resume::default() };
        let failed = match self.continue_by_rule(&place, view.run, request, tell) {
            Ok(Some(_)) => return Ok(Continued::Here),
            Ok(None) => return Ok(Continued::Elsewhere),
            Err(error) => error,
        };
        let now = look_and_record_to(Depth::Awaited, &place)?;
        if now.ended && now.run == view.run { Err(failed) } else { Ok(Continued::Elsewhere) }
    }
}

/// Why a session that waits is continued. `None`: it cannot be read.
fn why_it_goes_on(place: &Place, view: &View) -> Option<MeantToGoOn> {
    let folder = place.open().ok()?;
    let rules = folder.run(view.run).ok()?.record().ok()?.plan.rules;
    Some(if folder.session().ok()?.job.is_some() {
        MeantToGoOn::Job
    } else if rules.restart.is_some() {
        MeantToGoOn::Restart
    } else {
        MeantToGoOn::Waited
    })
}

/// Whether this session, which has ended, is continued, and how. A session that cannot be read is not.
fn meant_to_go_on(place: Place, view: View) -> Result<Option<GoesOn>> {
    let Ok(folder) = place.open() else { return Ok(None) };
    let Ok(session) = folder.session() else { return Ok(None) };
    if view.run == 0 {
        return Ok(None);
    }
    let run = folder.run(view.run)?;
    let record = run.record()?;
    // The rules of the run: a person may have given others when resuming it.
    let rules = record.plan.rules.clone();
    let claim = run.claim()?;
    let never_began = record.start_when.is_some() && !matches!(claim, Some(Claim::Begun { .. }));
    let waited = if never_began { None } else { waited(&folder, &run, &record, &session)? };
    let why = if session.job.is_some() {
        MeantToGoOn::Job
    } else if rules.restart.is_some() {
        MeantToGoOn::Restart
    } else if never_began || waited.is_some() {
        MeantToGoOn::Waited
    } else {
        return Ok(None);
    };
    // The newest stop request decides: a person who stops a session that a shutdown has begun to stop wants it to stay
    // ended.
    let stopped_by = journal::newest(folder.dir(), |entry| match entry.event {
        Event::StopRequested { by, .. } if entry.run == view.run => Some(by),
        _ => None,
    })?;
    let outcome = run.outcome()?;
    let goes_on = match stopped_by {
        Some(by) => by == SYSTEM,
        // SIGTERM to the process that waits also means that the machine shuts down: nothing else has a reason to send
        // it.
        None if never_began => {
            outcome.is_none_or(|outcome| outcome.kind == Kind::Lost || outcome.signal == Some(SHUTDOWN))
        }
        // Its helpers, or its process before it ran the program, were killed while the next run was being started.
        None if record.not_started.is_some() || record.agent.is_none() => true,
        // A keeper that ends a session records its duration; an outcome without a duration was not written by a keeper.
        None => outcome.is_none_or(|outcome| outcome.duration_ms.is_none()),
    };
    if !goes_on {
        return Ok(None);
    }
    let start_when = if never_began {
        record.start_when.as_deref().map(|when| again(when, &record))
    } else {
        // It has already waited for everything else. Only its slot is gone, and its time may not have come yet.
        let first = folder.run(record.continues.unwrap_or(record.run))?.record()?;
        let before = first.start_when.as_deref().map(|when| again(when, &first));
        let (queue, arrived) = before.map(|when| (when.queue, when.arrived)).unwrap_or_default();
        let at = waited.and_then(|waited| waited.until).filter(|at| *at > clock::now());
        Some(StartWhen { at, arrived: arrived.filter(|_| queue.is_some()), queue, ..StartWhen::default() })
    };
    let start_when = start_when.filter(|when| !when.is_now()).map(Box::new);
    Ok(Some(GoesOn { place, session, rules, view, why, start_when, never_began }))
}

/// The same conditions once more: a duration that began in another boot becomes a time, and the place in the queue
/// stays the same.
fn again(when: &StartWhen, record: &RunRecord) -> StartWhen {
    let same_boot = record.agent.as_ref().is_some_and(|agent| agent.lived_ms().is_some());
    // It is not recorded when a session that had to wait for others joined the queue.
    let arrived = when.arrived.or(if when.after.is_empty() { when.at.max(record.started) } else { None });
    let arrived = arrived.filter(|_| when.queue.is_some());
    StartWhen { at_ms: when.at_ms.filter(|_| same_boot), arrived, ..when.clone() }
}

/// A run that waited when its helpers died, for a limit or for its next process.
struct Waited {
    until: Option<Timestamp>,
}

fn waited(folder: &Folder, run: &RunFolder, record: &RunRecord, session: &Session) -> Result<Option<Waited>> {
    let mut state = fold::fold(folder, run, record, session)?.state;
    // Both came later: the end that was recorded since, and the stop that a shutdown may have requested.
    (state.outcome, state.stop) = (None, None);
    Ok((state.phase() == Phase::Waiting).then(|| Waited { until: until(&state, record) }))
}

fn until(state: &State, record: &RunRecord) -> Option<Timestamp> {
    let ms = match state.wait.as_ref().map(|wait| wait.until) {
        Some(Until::Time { second }) => return Timestamp::from_second(second).ok(),
        Some(Until::Pause { ms }) => ms,
        None => state.restarts_at_ms()?,
    };
    // Both clocks are known for the moment at which the run began.
    let after = SignedDuration::from_millis(i64::try_from(ms.saturating_sub(record.started_ms)).ok()?);
    record.started?.checked_add(after).ok()
}
