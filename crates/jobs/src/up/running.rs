//! One job of a file, from its start to its result. A session whose process was killed from outside is continued or run
//! again, a few times, because its work is not done.

use super::plan::{Planned, Prompt, Turns, Work};
use super::{Done, result};
use crate::{Driver, JobError, looping};
use ostler_core::outcome::Kind;
use ostler_core::review::ReviewVerdict;
use ostler_core::view::View;
use ostler_engine::launch::COMMAND;
use ostler_engine::own_run::start_key;
use ostler_engine::queues::StartLater;
use ostler_engine::review::{ReviewRequest, Reviewed};
use ostler_engine::{Error, Launch, Place, Resume, worktrees};
use std::collections::BTreeMap;

/// At most this many attempts.
const ATTEMPTS: u32 = 8;

/// A job that runs.
pub struct Running {
    pub job: Planned,
    pub place: Place,
    attempt: u32,
}

/// What follows when its session has ended.
pub enum After {
    /// The job continues with another attempt.
    Again(Box<Running>),
    /// The job has ended.
    Done(Box<Planned>, Box<Done>),
}

impl Running {
    /// Starts a job, or finds it started.
    pub fn start(driver: &mut Driver, job: &Planned, done: &BTreeMap<String, Done>) -> Result<Running, JobError> {
        let mut attempt = 1;
        while driver.noted::<bool>(&killed(&job.name, attempt))?.is_some() {
            driver.progress(&interrupted(&job.name))?;
            attempt += 1;
        }
        Running::attempt(driver, job, done, attempt)
    }

    fn attempt(
        driver: &mut Driver,
        job: &Planned,
        done: &BTreeMap<String, Done>,
        attempt: u32,
    ) -> Result<Running, JobError> {
        let first = start_key(&job.name);
        let numbered = if attempt == 1 { first.clone() } else { format!("{first} #{attempt}") };
        let place = match &job.work {
            Work::Prompt(prompt) => {
                let place = child(driver, &first, job, |driver| {
                    let rules = driver.child_rules(&prompt.agent, prompt.budget_usd)?;
                    let launch = for_prompt(driver, job, prompt);
                    Ok(Launch { agent: prompt.agent.clone(), model: prompt.model.clone(), rules, ..launch })
                })?;
                if attempt > 1 {
                    driver.continue_task(&numbered, &place, &prompt.prompt)?;
                }
                place
            }
            Work::Loop { prompt, turns } => {
                let place = child(driver, &first, job, |driver| {
                    let spec = looped(driver, prompt, turns)?;
                    crate::as_job(looping::KIND, &spec, for_prompt(driver, job, prompt))
                })?;
                if attempt > 1 {
                    // The loop continues where its own record ends.
                    driver.engine().resume_once(&place, Resume::default(), &mut |_| {})?;
                }
                place
            }
            Work::Review { of, by, prompt } => {
                let reviewed = session_of(driver, done, of)?;
                let (by, prompt, start) = (by.clone(), prompt.clone(), later(job));
                driver.child_by(&numbered, |engine, id| {
                    let request = ReviewRequest { by, prompt, start, id: Some(id) };
                    engine.start_review(&reviewed, &request, &mut |_| {})
                })?
            }
            Work::Run { command } => {
                child(driver, &numbered, job, |driver| Ok(command_of(driver, job, command, done)))?
            }
        };
        if attempt == 1 {
            driver.progress(&format!("{}: started as {}", job.name, place.id))?;
        }
        Ok(Running { job: job.clone(), place, attempt })
    }

    /// What follows when its session has ended.
    pub fn ended(self, driver: &mut Driver, view: &View, done: &BTreeMap<String, Done>) -> Result<After, JobError> {
        if driver.cut_off(&self.place, view)?.is_some() && self.attempt < ATTEMPTS {
            driver.progress(&interrupted(&self.job.name))?;
            driver.note(&killed(&self.job.name, self.attempt), &true)?;
            let again = Running::attempt(driver, &self.job, done, self.attempt + 1)?;
            return Ok(After::Again(Box::new(again)));
        }
        let (succeeded, words) = match self.job.work {
            Work::Review { .. } => match driver.engine().finish_review(&self.place)? {
                Reviewed::Done(review) => {
                    let more = review.reason.or(review.summary).map(|more| format!(": {more}")).unwrap_or_default();
                    (review.verdict == ReviewVerdict::Pass, format!("{}{more}", review.verdict.word()))
                }
                Reviewed::Asks(_) => (false, "the review asks something".to_owned()),
            },
            Work::Prompt(_) | Work::Loop { .. } | Work::Run { .. } => match &view.outcome {
                Some(outcome) if outcome.kind == Kind::Succeeded => (true, "succeeded".to_owned()),
                Some(outcome) => (false, format!("{}: {}", outcome.kind.word(), outcome.cause)),
                None => (false, "how it ended is not known".to_owned()),
            },
        };
        let over = Done { words, session: Some(self.place.id), ..result(&self.job, succeeded) };
        Ok(After::Done(Box::new(self.job), Box::new(over)))
    }
}

/// At most this many sessions of other files may have the name of a job.
const NAMESAKES: u32 = 100;

/// Launches the session of a job, once. When another session has the name of the job, a number is added to the name.
fn child(
    driver: &mut Driver,
    key: &str,
    job: &Planned,
    launch: impl Fn(&Driver) -> Result<Launch, JobError>,
) -> Result<Place, JobError> {
    let mut number = 1;
    loop {
        let name = if number == 1 { job.name.clone() } else { format!("{}-{number}", job.name) };
        let launch = Launch { name: Some(name), ..launch(driver)? };
        match driver.child(key, launch) {
            Err(JobError::Engine(error)) if number < NAMESAKES && matches!(*error, Error::NameTaken { .. }) => {
                number += 1;
            }
            done => return done,
        }
    }
}

/// The progress line for an interrupted job.
fn interrupted(name: &str) -> String {
    format!("{name}: was interrupted and is continued")
}

fn killed(name: &str, attempt: u32) -> String {
    format!("{name} was interrupted #{attempt}")
}

/// The job waits in its queue for a free slot.
fn later(job: &Planned) -> StartLater {
    StartLater { queue: job.queue.clone(), priority: job.priority.unwrap_or(0), ..StartLater::default() }
}

fn for_prompt(driver: &Driver, job: &Planned, prompt: &Prompt) -> Launch {
    Launch {
        prompt: Some(prompt.prompt.clone()),
        start: later(job),
        worktree: prompt.worktree.then(worktrees::Asked::default),
        labels: BTreeMap::from([("job".to_owned(), job.name.clone())]),
        ..driver.child_launch()
    }
}

fn looped(driver: &Driver, prompt: &Prompt, turns: &Turns) -> Result<looping::Loop, JobError> {
    Ok(looping::Loop {
        rules: driver.child_rules(&prompt.agent, None)?,
        agent: prompt.agent.clone(),
        model: prompt.model.clone(),
        prompt: prompt.prompt.clone(),
        until: turns.until.clone(),
        until_text: turns.until_text.clone(),
        max: turns.max,
        budget_usd: prompt.budget_usd,
        same: turns.same,
        ..looping::Loop::default()
    })
}

/// A command finds the sessions of the jobs by their names (`engine/src/own_run.rs`), and those of jobs before it also
/// in the variables `OSTLER_JOB_NAME`.
fn command_of(driver: &Driver, job: &Planned, command: &str, done: &BTreeMap<String, Done>) -> Launch {
    let variable = |name: &str| format!("OSTLER_JOB_{}", name.to_uppercase().replace('-', "_"));
    let known = done.iter().filter_map(|(name, done)| Some(format!("{}={}", variable(name), done.session?)));
    let words = ["sh", "-c", command].map(str::to_owned);
    Launch {
        agent: COMMAND.to_owned(),
        arguments: std::iter::once("env".to_owned()).chain(known).chain(words).collect(),
        start: later(job),
        labels: BTreeMap::from([("job".to_owned(), job.name.clone())]),
        ..driver.child_launch()
    }
}

fn session_of(driver: &Driver, done: &BTreeMap<String, Done>, name: &str) -> Result<Place, JobError> {
    let id = done.get(name).and_then(|done| done.session);
    let place = id.map(|id| driver.engine().settled(id)).transpose()?.flatten();
    place.ok_or_else(|| JobError::Gone(name.to_owned()))
}
