//! What is true of a session now: from files and the kernel, without locks, and without anything remembered.
//!
//! The journal is folded through the same function that the keeper uses. What the keeper has not read yet (the end of
//! `out`, the end of the inbox) is folded in as well. Then the kernel is asked which processes are alive. A session is
//! called lost only when agent, holder and keeper are found gone, in this order, and exit, outcome and output have been
//! read once more after that.

use crate::fold::{Folded, fold};
use crate::helpers::{Helpers, Processes, agent_lives, lives};
use crate::last_line::{self, Streams};
use crate::newer_messages::{Newer, newer_messages};
use crate::proof;
use jiff::Timestamp;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::life::{Conversation, Held, State, Until, step};
use ostler_core::limits::counted;
use ostler_core::outcome::{Closing, Exit, Outcome, Saved, judge};
use ostler_core::record::{Channel, Plan, Session};
use ostler_core::spending::Spent;
use ostler_core::start_when::{StartWhen, Waits};
use ostler_core::view::{LastTurn, Phase, RetryingNow, View};
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::Place;
use ostler_store::progress;
use ostler_store::{RunRecord, StoreError, archived, branch, journal};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::process::Identity;
use ostler_sys::socket;
use std::path::Path;

/// How much a look finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// All but the last line. The last line costs most by far: for a terminal, its screen is drawn.
    Standing,
    /// What a list shows, on a disk that has room: helpers that are known to be alive are not looked at.
    Listed,
    /// The same without the last line: for callers that wait for many sessions, or only check whether one has ended.
    Awaited,
    Everything,
}

impl Depth {
    /// Whether the keeper's signature is enough to know which helpers are alive.
    pub(crate) fn believes_keeper(self) -> bool {
        match self {
            Depth::Listed | Depth::Awaited => true,
            Depth::Standing | Depth::Everything => false,
        }
    }

    /// How a screen is drawn for the last line.
    fn drawn(self) -> last_line::Drawn {
        match self {
            Depth::Listed => last_line::Drawn::Nearly,
            Depth::Standing | Depth::Awaited | Depth::Everything => last_line::Drawn::Whole,
        }
    }

    /// Whether the last line is asked for.
    pub(crate) fn has_last(self) -> bool {
        match self {
            Depth::Standing | Depth::Awaited => false,
            Depth::Listed | Depth::Everything => true,
        }
    }
}

/// Looks at one session.
pub fn look(place: &Place) -> Result<View, StoreError> {
    look_to(Depth::Everything, place)
}

/// Looks at one session, to this depth.
pub fn look_to(depth: Depth, place: &Place) -> Result<View, StoreError> {
    let look = || own(look_at(depth, &place.open()?, place.archived)?, place.id);
    let mut view = look().map_err(|error| error.of(place.id))?;
    if depth == Depth::Everything && !view.ended {
        view.branch = branch::of(Path::new(&view.cwd));
    }
    Ok(view)
}

/// Looks only for the outcome, for callers that have just been told of a change; `None` when there is none yet.
pub fn look_for_outcome(place: &Place) -> Result<Option<View>, StoreError> {
    let look = || own(look_at_outcome(&place.open()?, place.archived)?.1, place.id);
    Ok(Some(look().map_err(|error| error.of(place.id))?).filter(|view| view.ended))
}

/// A folder that was copied under another id is not another session.
pub(crate) fn own(view: View, id: SessionId) -> Result<View, StoreError> {
    if view.id == id { Ok(view) } else { Err(StoreError::Copy { file: "session.json".to_owned(), id: view.id }) }
}

/// What the newest turns have used.
pub fn spent_lately(folder: &Folder) -> Result<Vec<Spent>, StoreError> {
    let number = folder.newest_run()?;
    if number == 0 {
        return Ok(Vec::new());
    }
    let plan = folder.run(number)?.record()?.plan;
    Ok(progress::past(folder.dir(), &plan)?.state.spending.turns().to_vec())
}

/// What each finished turn of a session has used, over all its runs.
pub fn spent(folder: &Folder) -> Result<Vec<Spent>, StoreError> {
    let number = folder.newest_run()?;
    if number == 0 {
        return Ok(Vec::new());
    }
    let run = folder.run(number)?;
    // From the beginning: the keeper's progress has only the newest turns.
    let entries = journal::read(folder.dir(), 0)?.entries;
    let state = State::listing_all_turns(run.record()?.plan);
    Ok(entries.iter().fold(state, |state, entry| step(state, entry).0).spending.turns().to_vec())
}

/// Looks at a session whose folder is open.
pub fn look_at(depth: Depth, folder: &Folder, archived: bool) -> Result<View, StoreError> {
    Ok(look_at_processes(depth, folder, archived)?.0)
}

/// The same, with its processes if all of them are alive and nothing is wrong with them.
pub(crate) fn look_at_processes(
    depth: Depth,
    folder: &Folder,
    archived: bool,
) -> Result<(View, Option<Processes>), StoreError> {
    let mut failed = false;
    loop {
        match look_once(depth, folder, archived) {
            // Where each message gets its own process, the run that we looked at may not be the newest any more.
            Ok((view, _)) if !view.alive && folder.newest_run()? > view.run => {}
            // A run that could not be started is removed again, perhaps while we look.
            Err(_) if !failed => failed = true,
            other => return other,
        }
    }
}

fn look_once(depth: Depth, folder: &Folder, archived: bool) -> Result<(View, Option<Processes>), StoreError> {
    if depth.believes_keeper()
        && let Ok(Some(found)) = look_at_living(depth, folder, archived)
    {
        return Ok(found);
    }
    let (session, mut view) = look_at_outcome(folder, archived)?;
    if view.ended {
        return Ok((view, None));
    }
    let run = match folder.run(view.run) {
        Err(StoreError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => None,
        other => Some(other?),
    };
    match run {
        Some(run) => running(depth, folder, &run, &session, &mut view)?,
        None => {
            view.run = 0;
            never_started(folder, &mut view)?;
        }
    }
    Ok((view, None))
}

/// The view of a session that has an outcome. The view of any other session has only what `session.json` says, and the
/// number of its newest run.
fn look_at_outcome(folder: &Folder, archived: bool) -> Result<(Session, View), StoreError> {
    let session = folder.session()?;
    if session.schema > SCHEMA {
        return Err(StoreError::Newer { file: "session.json".to_owned(), schema: u64::from(session.schema) });
    }
    let (number, outcome) = folder.newest_outcome()?;
    let mut view = blank(&session, number, archived);
    if let Some(outcome) = outcome {
        show_end(folder, outcome, &mut view)?;
        if archived && let Some(noted) = archived::noted(folder)? {
            view.alarm = noted.alarm(view.id)?.or(view.alarm);
        }
    }
    Ok((session, view))
}

/// The view of a session whose agent is alive: it has no outcome, so none is read.
fn look_at_living(
    depth: Depth,
    folder: &Folder,
    archived: bool,
) -> Result<Option<(View, Option<Processes>)>, StoreError> {
    let run = folder.run(folder.newest_or_first()?)?;
    if run.has_outcome()? {
        return Ok(None);
    }
    let record = run.record()?;
    let session = folder.session_of(&record)?;
    let mut view = blank(&session, run.number, archived);
    if session.schema > SCHEMA {
        return Ok(None);
    }
    let helpers = see(depth, folder, &run, &record, &session, &mut view)?.filter(|_| view.alive);
    Ok(helpers.map(|helpers| (view, Processes::of(&record, helpers))))
}

pub(crate) fn blank(session: &Session, run: u32, archived: bool) -> View {
    View {
        schema: SCHEMA,
        id: session.id,
        name: session.name.clone(),
        title: session.title(),
        agent: session.agent.clone(),
        native_id: None,
        cwd: session.cwd.clone(),
        branch: None,
        mode: session.mode,
        state: Phase::Starting,
        status: Phase::Starting.word(),
        since: session.created,
        alive: false,
        kept: false,
        ended: false,
        pid: None,
        holder_pid: None,
        keeper_pid: None,
        run,
        turns: 0,
        queued: 0,
        waits: None,
        message_waits: None,
        maybe_delivered: Vec::new(),
        quiet_s: 0,
        no_answer_s: None,
        created: session.created,
        updated: session.created,
        transcript: None,
        tokens: None,
        cost_usd: None,
        retrying: None,
        last_turn: None,
        resumes_at: None,
        waits_for: None,
        outcome: None,
        asking: None,
        last: None,
        alarm: None,
        parent: session.parent,
        origin: session.origin,
        archived,
        limits: session.limits,
        prompt: session.prompt.clone(),
        command: session.arguments.clone(),
        conversation_agent: None,
        labels: session.labels.clone(),
        worktree: session.worktree.clone(),
        job: session.job.clone(),
        driven: session.driven,
        group: session.group.clone(),
    }
}

/// There is a folder but no run: a launch is under way, or was killed.
fn never_started(folder: &Folder, view: &mut View) -> Result<(), StoreError> {
    let holder = folder.holder()?.map(|holder| holder.process);
    if let Some(holder) = holder
        && lives(&holder)?
    {
        view.holder_pid = Some(holder.pid());
        return Ok(());
    }
    let channel = Channel::of_program(view.mode);
    let plan = Plan {
        channel,
        keep: false,
        ending: ostler_core::record::Ending::Terminate,
        linger_ms: 0,
        rules: ostler_core::rules::Rules::default(),
    };
    let mut outcome = judge(&State::new(plan), 0);
    "the launch was cut off before the program started".clone_into(&mut outcome.cause);
    view.end(outcome);
    Ok(())
}

/// The view of a session as it was at the end of an earlier run. `None`: that end is not recorded.
pub fn at_end_of(folder: &Folder, run: u32) -> Result<Option<View>, StoreError> {
    let Some(mut outcome) = folder.run(run)?.outcome()? else {
        return Ok(None);
    };
    Ok(outcome.closing.take().map(|closing| {
        let mut view = blank(&closing.session, closing.run, false);
        ended(outcome, Some(*closing), Newer::default(), &mut view);
        view
    }))
}

fn show_end(folder: &Folder, mut outcome: Outcome, view: &mut View) -> Result<(), StoreError> {
    let closing = outcome.closing.take().map(|closing| *closing);
    let newer = newer_messages(folder, closing.as_ref().map_or(0, |closing| closing.inbox))?;
    ended(outcome, closing, newer, view);
    Ok(())
}

/// The end is final: one record has everything that a list needs, except messages that came later.
pub(crate) fn ended(outcome: Outcome, closing: Option<Closing>, newer: Newer, view: &mut View) {
    let unclear = closing.as_ref().map(|closing| closing.maybe_delivered.as_slice()).unwrap_or_default();
    view.queued = newer.with(closing.as_ref().map_or(0, |closing| closing.queued), unclear);
    view.maybe_delivered = newer.still(unclear);
    match closing {
        Some(closing) => {
            view.native_id = closing.native_id;
            view.transcript = closing.transcript;
            view.conversation_agent = closing.conversation_agent;
            view.turns = closing.turns;
            view.tokens = closing.tokens;
            view.cost_usd = closing.cost_usd;
            view.updated = closing.ended;
            view.since = closing.ended;
            view.branch = closing.branch;
            view.last = closing.last;
            view.alarm = closing.alarm;
        }
        None => view.turns = outcome.turns,
    }
    view.quiet_s = seconds_since(view.updated);
    view.end(outcome);
}

fn running(
    depth: Depth,
    folder: &Folder,
    run: &RunFolder,
    session: &Session,
    view: &mut View,
) -> Result<(), StoreError> {
    let record = run.record()?;
    if see(depth, folder, run, &record, session, view)?.is_none() {
        // The record has changed since: its launcher has written the agent into it and exited.
        see(depth, folder, run, &run.record()?, session, view)?;
    }
    Ok(())
}

/// Fills in the view and returns the helpers that were found. `None` when the record turned out to be outdated.
fn see(
    depth: Depth,
    folder: &Folder,
    run: &RunFolder,
    record: &RunRecord,
    session: &Session,
    view: &mut View,
) -> Result<Option<Helpers>, StoreError> {
    let mut folded = fold(folder, run, record, session)?;
    let begins = record.launcher.as_ref().filter(|_| record.agent.is_none()).map(lives).transpose()?.unwrap_or(false);

    // In this order: each process is restarted or outlived by the one that is looked at after it.
    let agent = record.agent.as_ref();
    view.alive = agent_lives(depth, record)?;
    if !view.alive && agent.is_some() {
        // Reads again what it said and what was noted before it ended.
        folded = fold(folder, run, record, session)?;
    }
    let helpers = Helpers::look(depth, folder, record, &folded.state, view.alive)?;
    view.pid = agent.filter(|_| view.alive).map(Identity::pid);
    view.holder_pid = helpers.holder;
    view.keeper_pid = helpers.keeper;
    view.kept = helpers.keeper.is_some();

    if !view.alive && helpers.are_gone() && !begins {
        // The socket is open as long as any helper is alive, also a helper that has not written its record yet.
        let helper_listens = socket::reach(folder.dir()).map_err(StoreError::io("sock"))?.is_some();
        if !helper_listens {
            if run.record()? != *record {
                return Ok(None);
            }
            if let Some(outcome) = run.outcome()? {
                show_end(folder, outcome, view)?;
                return Ok(Some(helpers));
            }
            folded = fold(folder, run, record, session)?;
            fill(depth, view, &folded, session, record, folder, run)?;
            if folded.state.phase() == Phase::Waiting {
                // It has not ended: the next helper that is started for it continues the wait.
                view.enter(Phase::Waiting);
                view.alarm = Some(format!("holder and keeper are gone; continue: ostler resume {} --now", view.id));
                return Ok(Some(helpers));
            }
            view.end(unrecorded_outcome(folder, run, session, record, &folded.state)?);
            return Ok(Some(helpers));
        }
    }
    fill(depth, view, &folded, session, record, folder, run)?;
    let phase = match folded.state.phase() {
        // The program runs, or is about to; the journal may not have it yet.
        _ if agent.is_none() => Phase::Starting,
        // Between two processes of a session that continues there is no process.
        phase @ (Phase::Working | Phase::Idle) if !view.alive && folded.state.goes_on_without_process() => {
            if folded.unseen.any_waits() { Phase::Working } else { phase }
        }
        Phase::Working | Phase::Stopping if !view.alive && folded.state.awaits_last_output() => Phase::Working,
        Phase::Waiting => Phase::Waiting,
        // Killed before it ran the program: the holder of a session that continues starts it again.
        _ if !view.alive && !folded.noted && record.continues.is_some() => Phase::Starting,
        // The process that was looked at is dead, but the holder has started it again since.
        _ if !view.alive && record.continues.is_some() && run.record()? != *record => return Ok(None),
        _ if !view.alive => Phase::Stopping,
        // A message that the keeper has not read yet means that a turn waits.
        Phase::Idle if folded.unseen.any_waits() => Phase::Working,
        phase @ (Phase::Queued
        | Phase::Starting
        | Phase::Working
        | Phase::Running
        | Phase::Idle
        | Phase::Asking
        | Phase::Stopping) => phase,
        Phase::Ended => Phase::Stopping,
    };
    if folded.state.phase() != phase || folded.state.since.is_none() {
        view.since = view.updated;
    }
    view.enter(phase);
    if helpers.alarm.is_some() {
        view.alarm.clone_from(&helpers.alarm);
    } else if !depth.believes_keeper() && folder.waits_for_room() {
        view.alarm = Some("the disk is full; it continues when there is space".to_owned());
    }
    Ok(Some(helpers))
}

/// The outcome of a run that ended when no process was there to record it, judged by the evidence.
pub fn unrecorded_outcome(
    folder: &Folder,
    run: &RunFolder,
    session: &Session,
    record: &RunRecord,
    state: &State,
) -> Result<Outcome, StoreError> {
    let mut state = state.clone();
    let finished_turn = state.last_turn().is_some() && !state.turn_running();
    if finished_turn && state.saved.is_none() && proof::finished_turn_is_saved(folder, session, record, &state)? {
        state.saved = Some(Saved::Verified);
    }
    if !state.has_exited() {
        state.found_gone(run.exit()?.unwrap_or(Exit::UNKNOWN));
    }
    let mut outcome = judge(&state, since_boot_ms());
    // The time of its end is unknown, and the clock of this boot says nothing about another boot.
    outcome.duration_ms = None;
    Ok(outcome)
}

fn fill(
    depth: Depth,
    view: &mut View,
    folded: &Folded,
    session: &Session,
    record: &RunRecord,
    folder: &Folder,
    run: &RunFolder,
) -> Result<(), StoreError> {
    let state = &folded.state;
    view.native_id = state.native_id.clone().or_else(|| record.native_id.clone());
    view.conversation_agent = ostler_agents::keeps_conversation(session, record).map(|agent| agent.name().to_owned());
    view.transcript = proof::location(record, state);
    view.turns = state.turns;
    (view.tokens, view.cost_usd) = state.spending.of_session();
    let unclear: Vec<u64> = state.mail.maybe_delivered.iter().map(|message| message.n).collect();
    view.queued = folded.unseen.with(u32::try_from(state.waiting()).unwrap_or(u32::MAX), &unclear);
    view.maybe_delivered = folded.unseen.still(&unclear);
    view.message_waits.clone_from(&state.mail.waits);
    let when = record.start_when.as_ref().filter(|_| state.is_queued());
    view.waits = when.map(|when| {
        Box::new(Waits { when: StartWhen { at_ms: None, arrived: None, ..(**when).clone() }, place: None })
    });
    view.asking = state.asks().first().cloned();
    view.retrying = state.retrying().map(|retrying| RetryingNow {
        reason: retrying.reason.clone(),
        attempt: retrying.attempt,
        for_s: since_boot_ms().saturating_sub(retrying.since_ms) / 1000,
    });
    (view.waits_for, view.resumes_at) = waits(state);
    view.last_turn = state.last_turn().map(|turn| LastTurn { verdict: turn.verdict, reason: turn.reason.clone() });
    let streams = Streams::of(run.dir())?;
    view.last = match depth.has_last() {
        true => last_line::line_of(folder, run, &view.agent, &record.plan, &streams, depth.drawn())?,
        false => None,
    };
    let held = state.held().map(Held::alarm);
    let retry_alarm = state.retrying().and_then(|retrying| retrying.alarm.clone());
    view.alarm = held.or(retry_alarm).or_else(|| state.alarm.clone());
    if folded.bad_lines > 0 {
        view.alarm =
            Some(format!("the journal has {} that cannot be read", counted(folded.bad_lines.into(), "line", "lines")));
    }
    let mut updated = record.started.unwrap_or(view.created);
    for stat in [streams.out, streams.err].into_iter().flatten() {
        if stat.size > 0
            && let Ok(time) = Timestamp::new(stat.modified_s, i32::try_from(stat.modified_ns).unwrap_or(0))
        {
            updated = updated.max(time);
        }
    }
    view.updated = updated;
    view.since = state.since.unwrap_or(updated);
    // A process is not quiet for longer than it has lived, whatever a changed clock says.
    let lived_s = record.agent.as_ref().and_then(Identity::lived_ms).map(|ms| ms / 1000);
    view.quiet_s = seconds_since(updated).min(lived_s.unwrap_or(u64::MAX));
    let opening = view.alive && record.plan.opens() && state.is_opening();
    view.no_answer_s = opening.then(|| since_boot_ms().saturating_sub(record.started_ms) / 1000);
    if opening && (state.conversation == Conversation::Opening { no_answer: true }) {
        let program = view.command.first().map_or("the program", String::as_str);
        view.alarm.get_or_insert_with(|| format!("{program} does not answer; is it an ACP agent?"));
    }
    Ok(())
}

/// What a session waits for, and when it continues by itself.
fn waits(state: &State) -> (Option<String>, Option<Timestamp>) {
    if state.phase() != Phase::Waiting {
        return (None, None);
    }
    if let Some(wait) = &state.wait {
        let until = match wait.until {
            Until::Time { second } => Timestamp::from_second(second).ok(),
            Until::Pause { ms } => Some(in_wall_time(ms)),
        };
        return (Some(wait.what.clone()), until);
    }
    if let Some(handover) = &state.handover {
        return (Some(format!("handover to {}", handover.agent)), None);
    }
    (Some("restart".to_owned()), state.restarts_at_ms().map(in_wall_time))
}

/// The time of day, to the second, of a moment in milliseconds since boot.
fn in_wall_time(ms: u64) -> Timestamp {
    let ahead = i64::try_from(ms).unwrap_or(i64::MAX).saturating_sub(i64::try_from(since_boot_ms()).unwrap_or(0));
    let then = clock::now().as_millisecond().saturating_add(ahead).saturating_add(500);
    Timestamp::from_second(then / 1000).unwrap_or(Timestamp::MAX)
}

pub(crate) fn seconds_since(time: Timestamp) -> u64 {
    u64::try_from(clock::now().as_second() - time.as_second()).unwrap_or(0)
}
