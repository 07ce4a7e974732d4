//! Which processes keep a session now. A list needs this for hundreds of sessions, so the kernel is not asked twice for
//! the same fact.

use crate::look::Depth;
use ostler_core::life::State;
use ostler_core::record::Channel;
use ostler_store::folder::Folder;
use ostler_store::{HelperRecord, RunRecord, StoreError};
use ostler_sys::process::{Identity, Life, Seen, Serial};
use std::io;

/// Holder and keeper, as far as they are alive.
#[derive(Debug, Default)]
pub struct Helpers {
    pub holder: Option<i32>,
    pub keeper: Option<i32>,
    /// What is wrong with them.
    pub alarm: Option<String>,
    /// The keeper that signed the journal, when that was enough to know that both are alive.
    pub signed: Option<Identity>,
}

/// The processes of a session that are all alive, and the channel to its agent.
#[derive(Debug)]
pub(crate) struct Processes {
    pub agent: Identity,
    pub serial: Serial,
    pub holder: i32,
    pub keeper: Identity,
    pub channel: Channel,
}

impl Processes {
    /// For a run whose agent was found alive, and whose helpers were identified by the keeper's signature.
    pub fn of(record: &RunRecord, helpers: Helpers) -> Option<Processes> {
        Some(Processes {
            agent: record.agent.clone()?,
            serial: record.serial?,
            holder: record.holder?,
            keeper: helpers.signed?,
            channel: record.plan.channel,
        })
    }
}

impl Helpers {
    #[must_use]
    pub fn are_gone(&self) -> bool {
        self.holder.is_none() && self.keeper.is_none()
    }

    /// Looks at the helpers of a run whose agent was looked at just before. The holder comes next, then the keeper:
    /// each of the three is restarted or outlived by the one that is looked at after it.
    pub fn look(
        depth: Depth,
        folder: &Folder,
        record: &RunRecord,
        state: &State,
        agent_lives: bool,
    ) -> Result<Helpers, StoreError> {
        if depth.believes_keeper()
            && agent_lives
            && let Some(helpers) = by_the_keeper(record, state)?
        {
            return Ok(helpers);
        }
        let (holder, unreadable) = readable(folder.holder())?;
        let holder_life = holder.as_ref().map_or(Ok(Life::Gone), |holder| life(&holder.process))?;
        let (keeper, also_unreadable) = readable(folder.keeper())?;
        let keeper_life = keeper.as_ref().map_or(Ok(Life::Gone), |keeper| life(&keeper.process))?;
        let damaged = unreadable.or(also_unreadable);
        let alarm = match &holder {
            _ if damaged.is_some() => damaged,
            Some(holder) if keeper_life == Life::Gone && holder.crashes > 3 => {
                let rest =
                    if holder.gave_up { "; it is not restarted before the next command for this session" } else { "" };
                Some(format!("the keeper died {} times in a row{rest}", holder.crashes))
            }
            _ if agent_lives && keeper_life == Life::Gone && holder_life == Life::Gone => {
                Some("holder and keeper are gone; start new ones: ostler upgrade".to_owned())
            }
            _ if holder_life == Life::Stopped || keeper_life == Life::Stopped => {
                Some("its helpers are stopped (SIGSTOP); the next ostler stop or send continues them".to_owned())
            }
            _ => None,
        };
        Ok(Helpers {
            holder: holder.filter(|_| holder_life != Life::Gone).map(|holder| holder.process.pid()),
            keeper: keeper.filter(|_| keeper_life != Life::Gone).map(|keeper| keeper.process.pid()),
            alarm,
            signed: None,
        })
    }
}

/// A helper whose record is damaged may still be alive: the damage is reported, and the session can still be ended.
fn readable(
    record: Result<Option<HelperRecord>, StoreError>,
) -> Result<(Option<HelperRecord>, Option<String>), StoreError> {
    match record {
        Ok(record) => Ok((record, None)),
        Err(error @ StoreError::Damaged { .. }) => Ok((None, Some(error.to_string()))),
        Err(error) => Err(error),
    }
}

/// The keeper that signed the journal of this run last, if it is alive and not stopped, and with it the holder, which
/// is its parent. When a holder ends, the kernel gives its children another parent at once. That parent was alive at
/// the same time as the holder, so it cannot have the same pid. Only for a run whose agent is alive: only then was the
/// pid noted in this boot.
fn by_the_keeper(record: &RunRecord, state: &State) -> Result<Option<Helpers>, StoreError> {
    let noted = state.keepers.newest.and_then(|(pid, start)| Identity::of_this_boot(pid, start));
    let (Some(keeper), Some(holder)) = (noted, record.holder) else {
        return Ok(None);
    };
    let seen = seen(&keeper)?;
    let stands = seen.life == Life::Alive && seen.parent == holder;
    Ok(stands.then(|| Helpers { holder: Some(holder), keeper: Some(keeper.pid()), alarm: None, signed: Some(keeper) }))
}

/// Whether the agent of a run lives.
pub fn agent_lives(depth: Depth, record: &RunRecord) -> Result<bool, StoreError> {
    match (&record.agent, record.serial) {
        (Some(agent), Some(serial)) => {
            let is_it = agent.lives_as(serial).map_err(|error| could_not_look(agent, error))?;
            Ok(is_it && (depth.believes_keeper() || lives(agent)?))
        }
        (Some(agent), None) => lives(agent),
        (None, _) => Ok(false),
    }
}

pub fn lives(process: &Identity) -> Result<bool, StoreError> {
    Ok(life(process)? != Life::Gone)
}

fn life(process: &Identity) -> Result<Life, StoreError> {
    Ok(seen(process)?.life)
}

fn seen(process: &Identity) -> Result<Seen, StoreError> {
    process.see().map_err(|error| could_not_look(process, error))
}

fn could_not_look(process: &Identity, error: io::Error) -> StoreError {
    StoreError::Io { file: format!("process {}", process.pid()), error }
}
