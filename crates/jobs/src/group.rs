//! `run --on`, `run --matrix`: a group of sessions for one task, each in a worktree of its own.
//!
//! * `matrix`: the members that a file describes.

pub mod matrix;

use crate::{Driver, End, JobError, Waited};
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::outcome::Kind;
use ostler_core::rules::Rules;
use ostler_core::start_when::InQueue;
use ostler_core::view::View;
use ostler_engine::groups::name_of;
use ostler_engine::job::CHILD;
use ostler_engine::queues::StartLater;
use ostler_engine::worktrees::Asked;
use ostler_engine::{Engine, Launch, Place, limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use ostler_engine::groups::KIND;

/// The spec of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its members, in this order.
    pub members: Vec<Member>,
    /// The commit that all of them begin with.
    pub base: String,
    /// The branch whose newest commit that was.
    #[serde(default)]
    pub from: Option<String>,
    /// Whether the members wait for further messages after their turns.
    #[serde(default)]
    pub keep: bool,
    /// Labels of each member.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Limits of each member: memory, processors, processes.
    #[serde(default)]
    pub limits: (Option<String>, Option<String>, Option<String>),
    /// Restarts and limits of members that have none of their own: in older groups all members had the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rules: Rules,
    /// The queue that each member waits in, and its priority there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<InQueue>,
}

fn is_default(rules: &Rules) -> bool {
    *rules == Rules::default()
}

/// One session of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, which follows the name of the group.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// Further arguments of the agent's own.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The model, by the agent's own name for it.
    #[serde(default)]
    pub model: Option<String>,
    /// Its prompt.
    pub prompt: String,
    /// The values that were filled in, as labels.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Restarts and limits, as they apply to its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Rules>,
}

impl Group {
    /// How a member is launched.
    #[must_use]
    pub fn launch(&self, group: &str, member: &Member, beginning: Launch) -> Launch {
        let (memory, cpus, processes) = self.limits.clone();
        Launch {
            agent: member.agent.clone(),
            arguments: member.arguments.clone(),
            model: member.model.clone(),
            prompt: Some(member.prompt.clone()),
            name: Some(format!("{group}-{}", member.name)),
            labels: self.labels.clone().into_iter().chain(member.variables.clone()).collect(),
            limits: limits::Asked { memory, cpus, processes },
            rules: member.rules.clone().unwrap_or_else(|| self.rules.clone()),
            start: StartLater::in_queue(self.queue.clone()),
            keep: self.keep,
            // The branch as well, so that it is known where the work belongs, as long as the branch is at that commit.
            worktree: Some(Asked { name: None, base: Some(self.base.clone()), from: self.from.clone() }),
            group: Some(group.to_owned()),
            ..beginning
        }
    }
}

/// How many times a start is tried.
const STARTS: u32 = 5;

/// How many times a driver continues a member.
const CONTINUED: u32 = 8;

/// Why a member could not be started, as it is noted.
type Started = Option<String>;

/// Drives a group.
///
/// # Errors
/// When it is to stop, or when a step cannot be taken.
pub fn drive(driver: &mut Driver, spec: Group) -> Result<End, JobError> {
    let group = name_of(&driver.engine().record(driver.place())?);
    let mut members = Vec::new();
    for (number, member) in spec.members.iter().enumerate() {
        let (key, failed) = (format!("member {}", number + 1), format!("member {} not started", number + 1));
        if let Some(Some(_)) = driver.noted::<Started>(&failed)? {
            continue;
        }
        match start(driver, &key, &spec, &group, member) {
            Ok(place) => {
                driver.progress(&format!("{} started as {}", member.name, place.id))?;
                // The machine may have been shut down since an earlier driver started the member.
                goes_on(driver, member, &place)?;
                members.push((member, place));
            }
            // A member that cannot be started does not keep the others from their work.
            Err(JobError::Engine(error)) => {
                let words: Started = Some(error.to_string());
                driver.progress(&format!("{} was not started: {error}", member.name))?;
                driver.note(&failed, &words)?;
            }
            Err(error) => return Err(error),
        }
    }
    let views = until_all_ended(driver, &members)?;
    let all = spec.members.len();
    let succeeded = views.iter().filter(|view| succeeded(view)).count();
    let words = format!(
        "{succeeded} of {} succeeded; compare them: ostler compare {group}",
        counted(all as u64, "session", "sessions")
    );
    Ok(if succeeded == all { End::succeeded(words) } else { End::failed(words) })
}

/// Whether each member exists, or could not be started: from then on the members of the group are known.
///
/// # Errors
/// When the record of the job cannot be read.
pub fn all_started(engine: &Engine, job: &Place, spec: &Group) -> Result<bool, JobError> {
    let steps = engine.job_steps(job)?;
    for number in 1..=spec.members.len() {
        let (key, failed) = (format!("member {number}"), format!("member {number} not started"));
        let with = |key: &str| steps.iter().find(|step| step["key"] == key);
        let id = with(&key).and_then(|step| SessionId::parse(step[CHILD].as_str()?));
        let exists = id.map(|id| engine.home.place_of(id)).transpose().map_err(ostler_engine::Error::from)?.flatten();
        if exists.is_none() && with(&failed).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A start that was killed half-way is repeated under the same id: it finds what exists already.
fn start(driver: &mut Driver, key: &str, spec: &Group, group: &str, member: &Member) -> Result<Place, JobError> {
    let mut tries = 1;
    loop {
        match driver.child(key, spec.launch(group, member, driver.child_launch())) {
            Err(JobError::Engine(_)) if tries < STARTS => tries += 1,
            done => return done,
        }
    }
}

/// Waits for all members, and reports the end of each.
fn until_all_ended(driver: &mut Driver, members: &[(&Member, Place)]) -> Result<Vec<View>, JobError> {
    let mut left: Vec<&(&Member, Place)> = members.iter().collect();
    let (mut ended, mut continued) = (Vec::new(), BTreeMap::<SessionId, u32>::new());
    while !left.is_empty() {
        let places: Vec<Place> = left.iter().map(|(_, place)| place.clone()).collect();
        let Waited::Ended((at, view)) = driver.wait_any(&places, None)? else { continue };
        let lost = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Lost);
        if lost && let Some((member, place)) = left.get(at) {
            let times = continued.entry(place.id).or_default();
            *times += 1;
            if *times <= CONTINUED && goes_on(driver, member, place)? {
                continue;
            }
        }
        let (member, _) = left.remove(at);
        let outcome = view.outcome.as_ref().map_or("ended", |outcome| outcome.kind.word());
        driver.progress(&format!(
            "{} {outcome}, {} of {} have ended",
            member.name,
            members.len() - left.len(),
            members.len()
        ))?;
        ended.push(view);
    }
    Ok(ended)
}

/// Continues a member that was meant to go on (it restarts, or it was in a queue) and lost all of its processes. False:
/// it was not continued.
fn goes_on(driver: &mut Driver, member: &Member, place: &Place) -> Result<bool, JobError> {
    match driver.recover(place) {
        Ok(true) => driver.progress(&format!("{} was interrupted and is continued", member.name)).map(|()| true),
        // A member that cannot be continued does not keep the others from their work.
        Err(JobError::Engine(error)) => {
            let words = format!("{} was interrupted and could not be continued: {error}", member.name);
            driver.progress(&words).map(|()| false)
        }
        Ok(false) => Ok(false),
        Err(error) => Err(error),
    }
}

fn succeeded(view: &View) -> bool {
    view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Succeeded)
}

/// The members of `--on AGENT,OTHER:2`: each agent the given number of times, with the same prompt.
pub fn on(list: &str, prompt: &str, model: Option<&str>, arguments: &[String]) -> Result<Vec<Member>, String> {
    let mut members: Vec<Member> = Vec::new();
    for word in list.split(',').map(str::trim) {
        let (agent, count) = match word.rsplit_once(':') {
            Some((agent, count)) => {
                let wrong = || format!("{count:?} in --on {list} is not a number from 1 to {MOST}");
                (agent, count.parse::<usize>().ok().filter(|count| (1..=MOST).contains(count)).ok_or_else(wrong)?)
            }
            None => (word, 1),
        };
        if agent.is_empty() {
            return Err(format!("--on {list:?} has an empty name; for example: --on demo,demo:2"));
        }
        for _ in 0..count {
            members.push(Member {
                agent: agent.to_owned(),
                model: model.map(str::to_owned),
                prompt: prompt.to_owned(),
                arguments: arguments.to_owned(),
                ..Member::default()
            });
        }
    }
    named(members)
}

/// A group has at most this many sessions.
pub const MOST: usize = 100;

/// Gives each member a name that is unique in the group: its agent, with a number where there are several.
pub(crate) fn named(mut members: Vec<Member>) -> Result<Vec<Member>, String> {
    if members.len() > MOST {
        return Err(format!("that would be {} sessions; a group has at most {MOST}", members.len()));
    }
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for member in &members {
        *count.entry(member.agent.clone()).or_default() += 1;
    }
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for member in &mut members {
        let number = numbers.entry(member.agent.clone()).or_default();
        *number += 1;
        let several = count.get(&member.agent).is_some_and(|&count| count > 1);
        member.name = if several { format!("{}-{number}", member.agent) } else { member.agent.clone() };
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_is_a_member_so_many_times() {
        let names = |list: &str| {
            on(list, "p", None, &[]).map(|members| members.into_iter().map(|member| member.name).collect::<Vec<_>>())
        };
        assert_eq!(
            names("claude,codex:2,gemini"),
            Ok(["claude", "codex-1", "codex-2", "gemini"].map(str::to_owned).into())
        );
        assert_eq!(names("demo, demo"), Ok(["demo-1", "demo-2"].map(str::to_owned).into()));
        for wrong in ["", "claude,", "claude:0", "claude:x", "claude:-1", "claude:101", ":2", "a:60,b:60"] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }
}
