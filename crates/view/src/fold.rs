//! The state of a session as its files show it: the journal, then what the keeper has not read yet, which is the end of
//! the inbox and the end of the output. The kernel is not asked.

use crate::agent_feed::AgentFeed;
use crate::newer_messages::{Newer, newer_messages};
use jiff::Timestamp;
use ostler_core::event::{Entry, Event};
use ostler_core::life::{State, event_of, step};
use ostler_core::record::{Plan, Session, Speaks};
use ostler_core::start_when::Claim;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::progress::{self, Heard, Past};
use ostler_store::{RunRecord, StoreError};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::dir::Dir;

/// Why a further run has no process, when no process of the session is left to report it.
const NEVER_STARTED: &str = "the next process was not started, because the helpers of the session ended first";

/// A state and what could not be folded into it.
#[derive(Debug)]
pub struct Folded {
    pub state: State,
    pub bad_lines: u32,
    /// The run is in the journal; otherwise it is known from its record.
    pub noted: bool,
    /// Messages that the keeper has not read yet.
    pub unseen: Newer,
}

/// The state of a session, as far as files show it: journal, then the end of the inbox, then the end of the output.
pub fn fold(folder: &Folder, run: &RunFolder, record: &RunRecord, session: &Session) -> Result<Folded, StoreError> {
    let Past { mut state, bad_lines, heard, .. } = progress::past(folder.dir(), &record.plan)?;
    let noted = state.run >= record.run;
    if !noted && record.agent.is_some() {
        state = step(state, &started(record)).0;
    } else if !noted && record.launcher.is_none() {
        // The agent writes itself into the record before it runs its program: a further run without an agent has no
        // process. While its holder is about to start it, a reader knows that from the processes that are alive.
        let reason = record.not_started.clone().unwrap_or_else(|| NEVER_STARTED.to_owned());
        state = step(state, &Entry { event: Event::NotStarted { reason }, ..started(record) }).0;
    }
    if state.is_queued()
        && let Some(claim) = run.claim()?
    {
        // The keeper has not noted it yet.
        let (at, ms, event) = match claim {
            Claim::Begun { at, ms } => (at, ms, Event::Begun),
            Claim::Never { reason, stopped } => (clock::now(), since_boot_ms(), Event::NotBegun { reason, stopped }),
        };
        state = step(state, &Entry { at, ms, event, ..started(record) }).0;
    }
    let unseen = newer_messages(folder, state.inbox)?;
    if record.plan.speaks().converses() {
        state = fold_output(state, run.dir(), session, &record.plan, heard.filter(|heard| heard.run == record.run))?;
    }
    Ok(Folded { state, bad_lines, noted, unseen })
}

/// The state of a session in this run, for callers that have neither of the two records.
pub fn state_of(folder: &Folder, run: &RunFolder) -> Result<State, StoreError> {
    Ok(fold(folder, run, &run.record()?, &folder.session()?)?.state)
}

/// The first entry of a run, from its record: the program runs before a keeper can have written the entry.
#[must_use]
pub fn started(record: &RunRecord) -> Entry {
    Entry {
        at: record.started.unwrap_or(Timestamp::UNIX_EPOCH),
        ms: record.started_ms,
        run: record.run,
        out: None,
        request: None,
        inbox: None,
        notify: None,
        event: match record.start_when {
            None => Event::Started { plan: record.plan.clone(), continues: record.continues.is_some() },
            Some(_) => Event::Queued { plan: record.plan.clone() },
        },
    }
}

/// Folds in what the agent has said since the last entry of the journal, or since the position up to which the keeper
/// has noted its progress.
fn fold_output(
    mut state: State,
    run: &Dir,
    session: &Session,
    plan: &Plan,
    heard: Option<Heard>,
) -> Result<State, StoreError> {
    let agent = ostler_agents::find_for(&session.agent, plan);
    let Some(source) = agent.and_then(|agent| ostler_agents::decoder::agent_feed(agent, plan.speaks())) else {
        return Ok(state);
    };
    // There are few hooks, and the meaning of one may depend on what came before it in its turn; an output may be long.
    // Whether a turn behind a protocol had an answer depends on what came before, too. Inside a line that has no end
    // yet nothing can be decoded.
    let within_line = state.within_line().is_some();
    let whole_turn = state.plan.speaks() == Speaks::Hooks || state.plan.opens() && !within_line;
    let begins = if whole_turn { state.output.turn_begins } else { state.output.understood };
    let heard = heard.filter(|heard| !within_line && heard.position > begins);
    let mut agent_feed = match (heard, whole_turn) {
        (Some(heard), _) => AgentFeed::going_on(&heard, begins, source, &state, session),
        (None, true) => AgentFeed::from(begins, source, &state, session),
        (None, false) => AgentFeed::behind(&state, source, session),
    };
    let Some(mut pieces) = agent_feed.pieces(run)? else {
        return Ok(state);
    };
    // Piece by piece, so that a long past is never in memory as a whole.
    while let Some(facts) = agent_feed.read(&mut pieces)? {
        for (out, fact) in facts {
            let Some(event) = event_of(fact.resolved(clock::now()), &state) else {
                continue;
            };
            let entry = Entry {
                at: Timestamp::UNIX_EPOCH,
                ms: since_boot_ms(),
                run: state.run,
                out: Some(out),
                request: None,
                inbox: None,
                notify: None,
                event,
            };
            state = step(state, &entry).0;
        }
    }
    Ok(state)
}
