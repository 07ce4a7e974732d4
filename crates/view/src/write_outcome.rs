//! Writing the outcome, once. The keeper does it at the end of a run. If no helper is left, the next command that does
//! more than read does it instead.

use crate::delivery::{Ended, Fate};
use crate::fold::fold;
use crate::last_line;
use crate::look::{Depth, look_at, unrecorded_outcome};
use crate::proof;
use ostler_agents::job::STEPS;
use ostler_core::event::{Entry, Event};
use ostler_core::life::State;
use ostler_core::moment;
use ostler_core::outcome::{Closing, Kind, Outcome, Source, Unparsed};
use ostler_core::record::{Mode, Session};
use ostler_core::view::View;
use ostler_store::folder::{Folder, RunFolder, session_size};
use ostler_store::journal::Journal;
use ostler_store::{RunRecord, StoreError, branch, limits};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::lock;
use ostler_sys::process::Identity;
use rustix::fs::OFlags;
use serde_json::Value;
use std::path::Path;

/// Publishes the outcome and returns the valid one: that of another process, if it was first.
pub fn publish(
    folder: &Folder,
    run: &RunFolder,
    session: &Session,
    record: &RunRecord,
    state: &State,
    mut outcome: Outcome,
) -> Result<Outcome, StoreError> {
    // The exit code of a driver says only whether its job is done.
    if outcome.source == Source::Exit
        && outcome.exit_code.is_some()
        && session.job.is_some()
        && let Some(words) = last_word_of_job(folder, outcome.kind)?
    {
        outcome.cause = words;
    }
    let limit_hit = limits::limit_hit(session, record);
    if let Some(words) = &limit_hit {
        outcome.cause = format!("{}; {words}", outcome.cause);
    }
    let missing = state.missing_output();
    if let Some(words) = &missing {
        outcome.cause = format!("{}; {words}", outcome.cause);
    }
    if outcome.kind == Kind::Failed
        && outcome.source == Source::Exit
        && record.plan.speaks().converses()
        // A process that was killed from outside did not end because of what it had printed before.
        && !outcome.signal.is_some_and(is_from_outside)
        && let Some(words) = last_line::complaint_of(run.dir())?
    {
        // It had no turn in which it could report the reason.
        outcome.cause = format!("{}: {words}", outcome.cause);
    }
    // For a conversation that went wrong, a person wants to read why.
    let went_wrong = matches!(outcome.kind, Kind::Failed | Kind::Lost) && record.plan.speaks().converses();
    let last = match went_wrong {
        true => Some(outcome.cause.clone()),
        false => last_line::line(folder, run, &session.agent, &record.plan)?,
    };
    let (tokens, cost_usd) = state.spending.of_session();
    let closing = Closing {
        native_id: state.native_id.clone().or_else(|| record.native_id.clone()),
        transcript: proof::location(record, state),
        conversation_agent: ostler_agents::keeps_conversation(session, record).map(|agent| agent.name().to_owned()),
        branch: branch::of(Path::new(&session.cwd)),
        turns: state.turns,
        tokens,
        cost_usd,
        queued: u32::try_from(state.waiting()).unwrap_or(u32::MAX),
        maybe_delivered: state.mail.maybe_delivered.iter().map(|message| message.n).collect(),
        inbox: state.inbox,
        last,
        // A limit that ended the run quickly has not been reported before.
        alarm: state.alarm.clone().or(limit_hit).or(missing),
        helpers: helpers_of(folder),
        ..of(session, run.number)
    };
    outcome.closing = Some(Box::new(closing));
    let mut written = folder.even_when_full(|| run.publish_outcome(&outcome, record));
    // That it has ended matters more than a copy of its last answer: `logs` has all of it.
    if written.as_ref().is_err_and(StoreError::is_full_disk) && shorten(&mut outcome) {
        written = folder.even_when_full(|| run.publish_outcome(&outcome, record));
    }
    written?;
    let published = run.outcome()?.ok_or_else(|| StoreError::Missing { file: "outcome.json".to_owned() })?;
    // From the published outcome: the process that was first may have read less of the inbox than we have.
    if let Some(closing) = &published.closing {
        folder.write_summary(run, closing.inbox);
    }
    Ok(Outcome { closing: None, ..published })
}

/// What a job has noted as its result, if that agrees with the outcome.
fn last_word_of_job(folder: &Folder, kind: Kind) -> Result<Option<String>, StoreError> {
    let steps = folder.dir().read(STEPS).map_err(StoreError::io(STEPS))?.unwrap_or_default();
    let ends = steps.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let end = ends.into_iter().find(|step| step["key"] == "end");
    let noted = end.and_then(|step| serde_json::from_value::<(bool, String)>(step["value"].clone()).ok());
    Ok(noted.filter(|(succeeded, _)| *succeeded == (kind == Kind::Succeeded)).map(|(_, words)| words))
}

/// How much of an answer is kept in an outcome on a full disk.
const SHORT: usize = 1024;

/// Cuts a long answer and says so. False when there is nothing to cut.
fn shorten(outcome: &mut Outcome) -> bool {
    let Some(text) = outcome.text.as_mut().filter(|text| text.len() > SHORT) else {
        return false;
    };
    text.truncate(text.floor_char_boundary(SHORT));
    text.push('…');
    outcome.cause.push_str("; the disk was full, so only the beginning of its answer is kept here: see ostler logs");
    true
}

/// Whether a signal is sent from outside, and not by the kernel for a fault of the program.
fn is_from_outside(signal: i32) -> bool {
    [1, 2, 9, 15].contains(&signal)
}

fn helpers_of(folder: &Folder) -> Option<Unparsed> {
    let processes: Vec<Identity> = folder.helpers().into_iter().map(|helper| helper.process).collect();
    Unparsed::of(&processes).ok().filter(|_| !processes.is_empty())
}

/// What is always known at the end of a session.
#[must_use]
pub fn of(session: &Session, run: u32) -> Closing {
    Closing {
        session_size: session_size(session),
        session: session.clone(),
        run,
        ended: clock::now(),
        native_id: None,
        transcript: None,
        conversation_agent: None,
        branch: None,
        turns: 0,
        tokens: None,
        cost_usd: None,
        queued: 0,
        maybe_delivered: Vec::new(),
        inbox: 0,
        last: None,
        alarm: None,
        helpers: None,
    }
}

/// Records the end of a run that ended while no helper was alive, as a caller has just seen (`view`). Does nothing when
/// the end is already recorded.
pub fn record_if_lost(folder: &Folder, view: &View) -> Result<(), StoreError> {
    if !view.ended || view.run == 0 {
        return Ok(());
    }
    let run = folder.run(view.run)?;
    if run.has_outcome()? {
        // The outcome is visible before its writer has synced its name, and the caller is about to report it to a
        // person.
        return run.dir().sync().map_err(StoreError::io("outcome.json"));
    }
    let name = "keeper.lock";
    let file = folder.dir().file(name, OFlags::RDWR | OFlags::CREATE).map_err(StoreError::io(name))?;
    let Some(_held) = lock::try_exclusive(file).map_err(StoreError::io(name))? else {
        return Ok(());
    };
    // Its next run may have begun before we had the lock.
    let again = look_at(Depth::Standing, folder, false)?;
    if !again.ended || again.run != view.run || run.outcome()?.is_some() {
        return Ok(());
    }
    let (session, record) = (folder.session()?, run.record()?);
    let mut state = fold(folder, &run, &record, &session)?.state;
    let outcome = unrecorded_outcome(folder, &run, &session, &record, &state)?;
    let note = |event: Event, notify| {
        let (at, ms, run) = (clock::now(), since_boot_ms(), run.number);
        let entry = Entry { at, ms, run, out: None, request: None, inbox: None, notify, event };
        folder.even_when_full(|| Journal::open(folder.dir())?.append(&entry))
    };
    if let Some(event) = fate_of_last(folder, &session, &record, &state)? {
        note(event, None)?;
        state = fold(folder, &run, &record, &session)?.state;
    }
    let outcome = publish(folder, &run, &session, &record, &state, outcome)?;
    limits::clear(&record);
    // The process that sends it checks whether a person wants to be notified.
    let notify = moment::of_end(&outcome, state.stop.is_some()).first().copied();
    note(Event::Ended { outcome }, notify)?;
    folder.tidy(&run);
    Ok(())
}

/// The event about the message that the run ended with, if any.
fn fate_of_last(
    folder: &Folder,
    session: &Session,
    record: &RunRecord,
    state: &State,
) -> Result<Option<Event>, StoreError> {
    let agent = ostler_agents::find_for(&session.agent, &record.plan);
    // A message that was typed and is not known to have arrived is looked for as well.
    let by_sight = record.plan.mode() == Mode::Terminal && agent.is_some_and(|agent| agent.prompt().is_some());
    let typing = state.feeding().filter(|_| by_sight);
    let Some(message) = state.without_answer().or(typing) else {
        return Ok(None);
    };
    let given = state.mail.fed.as_ref().map(|fed| fed.given.clone()).unwrap_or_default();
    let ended = Ended { folder, session, record, state, message, given: &given };
    // If the conversation cannot be read now, it is unknown whether the message is in it.
    let fate = ended.fate(|agent, kept, marks| Ok::<_, StoreError>(kept.holds(agent, marks).ok()))?;
    let (n, place) = (message.n, message.at);
    Ok(match fate {
        Fate::NotTaken => Some(Event::Returned { n, place }),
        Fate::Unknown => Some(Event::MaybeDelivered { n, place }),
        Fate::Taken => record.plan.opens().then_some(Event::FoundDelivered { n }),
    })
}
