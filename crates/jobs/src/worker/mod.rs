//! `worker`: works on the newest state of a branch, lands what passes a check, and sleeps until the branch moves.
//!
//! Each round has a git worktree of its own, on a new branch from the newest commit. What has landed is removed; what
//! could not land stays where it is. Landings of workers that were started together wake none of them: otherwise they
//! would wake each other without end.
//!
//! * `roles`: the agents of a worker, and to which agent an answer hands over.

mod roles;

pub use roles::{Mistake, Role, load, usual};

use crate::{Driver, End, JobError, Waited};
use ostler_core::limits::counted;
use ostler_core::outcome::Kind;
use ostler_core::record::Origin;
use ostler_core::view::View;
use ostler_engine::launch::Relative;
use ostler_engine::worktrees::{self, Land, Landing, Repository};
use ostler_engine::{Error, Launch, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of job.
pub const KIND: &str = "worker";

/// The label of the sessions of workers that were started together.
pub const LABEL: &str = "worker";

/// At most this many agents in a round hand over to each other.
const HANDOVERS: u32 = 20;

/// A session that was cut off is continued, up to this many attempts in all.
const ATTEMPTS: u32 = 8;

/// The spec of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The workers that were started together.
    pub crew: String,
    /// The branch that it works for.
    pub branch: String,
    /// The command that has to succeed before work lands.
    pub check: Option<String>,
    /// Its agents; the first one begins.
    pub roles: Vec<Role>,
}

/// How a round ended, as it is noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    words: String,
    /// The newest commit of the branch that the worker has seen.
    knows: String,
}

/// Drives a worker.
///
/// # Errors
/// When it is to stop, or when a step cannot be taken.
pub fn drive(driver: &mut Driver, spec: Worker) -> Result<End, JobError> {
    let repository = driver.engine().repository(&driver.folder())?;
    for number in 1u64.. {
        let key = format!("round {number}");
        let ended: Ended = match driver.noted(&key)? {
            Some(known) => known,
            None => {
                let ended = round(driver, &spec, &repository, number)?;
                driver.note(&key, &ended)?;
                ended
            }
        };
        driver.progress(&format!("round {number}: {}", ended.words))?;
        let moved = format!("after round {number}");
        if driver.noted::<String>(&moved)?.is_none() {
            let now = next_move(driver, &spec, &repository, ended.knows)?;
            driver.note(&moved, &now)?;
        }
    }
    Ok(End::succeeded("all rounds are over"))
}

/// Waits until the branch was moved by something other than these workers.
fn next_move(
    driver: &mut Driver,
    spec: &Worker,
    repository: &Repository,
    mut known: String,
) -> Result<String, JobError> {
    loop {
        let now = driver.wait_for_move(repository, &spec.branch, &known)?;
        if driver.engine().moved_by_others(repository, &known, &now, &spec.crew)? {
            return Ok(now);
        }
        known = now;
    }
}

fn round(driver: &mut Driver, spec: &Worker, repository: &Repository, number: u64) -> Result<Ended, JobError> {
    let Some(first) = spec.roles.first() else {
        return Ok(Ended { words: "no role names an agent".to_owned(), knows: String::new() });
    };
    let labels = BTreeMap::from([(LABEL.to_owned(), spec.crew.clone())]);
    let launch = Launch {
        agent: first.agent.clone(),
        model: first.model.clone(),
        prompt: Some(first.prompt.clone()),
        worktree: Some(worktrees::Asked { base: Some(spec.branch.clone()), ..worktrees::Asked::default() }),
        labels: labels.clone(),
        rules: driver.child_rules(&first.agent, None)?,
        ..driver.child_launch()
    };
    let entry = driver.child(&format!("round {number} agent 1"), launch)?;
    let session = driver.engine().record(&entry)?;
    let base = session.worktree.as_ref().map(|tree| tree.base.clone()).unwrap_or_default();
    let mut view = finished(driver, &format!("round {number} agent 1"), &entry, &first.prompt)?;
    let mut role = first;
    for hop in 2..=HANDOVERS {
        let said = view.outcome.as_ref().and_then(|outcome| outcome.text.clone()).unwrap_or_default();
        let succeeded = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Succeeded);
        if !succeeded {
            let cause = view.outcome.map(|outcome| outcome.cause).unwrap_or_default();
            return Ok(Ended { words: format!("{} failed ({}): {cause}", role.name, view.id), knows: base });
        }
        let Some(name) = roles::next(&said) else { break };
        let Some(next) = spec.roles.iter().find(|role| role.name == name) else {
            let words = format!("{} handed over to {name:?}, and there is no such agent ({})", role.name, view.id);
            return Ok(Ended { words, knows: base });
        };
        let prompt = format!("{}\n\nThe agent before you, {}, said:\n\n{said}", next.prompt, role.name);
        let key = format!("round {number} agent {hop}");
        let launch = Launch {
            agent: next.agent.clone(),
            model: next.model.clone(),
            prompt: Some(prompt.clone()),
            cwd: Some(session.cwd.clone().into()),
            labels: labels.clone(),
            rules: driver.child_rules(&next.agent, None)?,
            relative: Some(Relative { parent: entry.id, origin: Origin::Handover, worktree: session.worktree.clone() }),
            ..Launch::default()
        };
        let place = driver.child(&key, launch)?;
        view = finished(driver, &key, &place, &prompt)?;
        role = next;
    }
    landed(driver, spec, repository, &entry, base)
}

/// Waits until an agent has ended. An agent whose process was killed from outside is continued.
fn finished(driver: &mut Driver, key: &str, place: &Place, prompt: &str) -> Result<View, JobError> {
    let mut attempt = 1;
    loop {
        let interrupted = format!("{key} was interrupted #{attempt}");
        if driver.noted::<bool>(&interrupted)?.is_none() {
            let Waited::Ended(view) = driver.wait(place, None)? else { continue };
            if driver.cut_off(place, &view)?.is_none() || attempt == ATTEMPTS {
                return Ok(*view);
            }
            driver.note(&interrupted, &true)?;
        }
        driver.progress(&format!("{key}: was interrupted and is continued"))?;
        attempt += 1;
        driver.continue_task(&format!("{key} #{attempt}"), place, prompt)?;
    }
}

/// Lands the work of a round. Work that a killed driver has landed already is recognised.
fn landed(
    driver: &mut Driver,
    spec: &Worker,
    repository: &Repository,
    entry: &Place,
    base: String,
) -> Result<Ended, JobError> {
    let land = Land { into: Some(spec.branch.clone()), check: spec.check.clone(), ..Land::default() };
    let landing = driver.land(entry, &land)?;
    // After a driver that was killed after landing, there is nothing to land, or not even a worktree.
    let before = match &landing {
        Ok(Landing::Nothing { .. }) | Err(Error::Git(_)) => {
            driver.engine().landed_since(repository, entry.id, &base, &spec.branch)?
        }
        Ok(_) | Err(_) => None,
    };
    let landing = match before.map_or(landing, Ok) {
        Ok(landing) => landing,
        Err(error @ (Error::Git(_) | Error::BranchMoves { .. } | Error::StillWorks { .. })) => {
            return Ok(Ended { words: format!("could not land ({}): {error}", entry.id), knows: base });
        }
        Err(error) => return Err(error.into()),
    };
    let kept = |words: String| format!("{words}; the work stays in the tree of {}", entry.id);
    let (words, knows, goes) = match landing {
        Landing::Landed { commit, files, .. } => {
            let short = commit.get(..7).unwrap_or(&commit).to_owned();
            (format!("landed {} as {short}", counted(files as u64, "changed file", "changed files")), commit, true)
        }
        Landing::Nothing { .. } => ("nothing to land".to_owned(), base, true),
        Landing::Conflict { files, .. } => (kept(format!("a conflict in {}", files.join(", "))), base, false),
        Landing::CheckFailed { check, .. } => (kept(format!("the check failed ({})", check.id)), base, false),
        Landing::InTheWay { words, .. } => (kept(words), base, false),
    };
    if goes && let Some(tree) = driver.engine().record(entry)?.worktree {
        // A worktree with work that exists nowhere else stays.
        match driver.engine().remove_worktree(repository, &tree.name, false) {
            Ok(_) | Err(Error::WouldLose { .. } | Error::WorktreeInUse { .. } | Error::Git(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Ended { words, knows })
}
