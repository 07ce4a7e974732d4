//! `up`: runs the jobs of a file, each as soon as what it needs has succeeded.
//!
//! When a job fails, only the jobs that need it are not run. What has succeeded is not run again: a driver that was
//! killed continues by its record, and a later run of the same file takes over what an earlier one has finished, unless
//! the description of the job or of something that it needs has changed.
//!
//! * `file`: what is in the file. `place`: where it is. `plan`: what has to be done, and in which order.
//! * `load`: from a path to a plan that can be started.
//! * `running`: one job, from its start to its result.
//! * `rows`: how far each job is, for people.

pub mod file;
mod load;
pub mod place;
pub mod plan;
mod rows;
mod running;

pub use load::{LoadError, load};
pub use rows::{Row, rows};

use crate::{Driver, End, JobError, Waited};
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_engine::list::{self, Filter, Listed, Sort, Wanted};
use ostler_engine::own_run::{self, result_key};
use ostler_engine::{Engine, Place};
use plan::Planned;
use running::Running;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The kind of job.
pub const KIND: &str = own_run::UP;

/// The label of its sessions: the path of the file.
pub const LABEL: &str = "up";

/// The spec of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Up {
    /// The path of the file.
    pub file: PathBuf,
    /// The jobs, each after what it needs.
    pub jobs: Vec<Planned>,
    /// An earlier run of the same file, whose results count.
    #[serde(default)]
    pub previous: Option<SessionId>,
}

/// The result of a job, as it is noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Whether it succeeded.
    pub succeeded: bool,
    /// It was not run, because something that it needs did not succeed.
    #[serde(default)]
    pub skipped: bool,
    /// It was run by an earlier run of the file.
    #[serde(default)]
    pub earlier: bool,
    /// One line, for people.
    pub words: String,
    /// Its session.
    #[serde(default)]
    pub session: Option<SessionId>,
    /// The version of its description.
    pub version: String,
}

/// Drives the jobs of a file.
///
/// # Errors
/// When it is to stop, or when a step cannot be taken.
pub fn drive(driver: &mut Driver, spec: Up) -> Result<End, JobError> {
    let earlier = earlier(driver.engine(), spec.previous)?;
    // The results of jobs that this run leaves out (`--only`) count for the next run, also when the earlier runs are
    // deleted by then.
    for (name, before) in earlier.iter().filter(|(name, _)| spec.jobs.iter().all(|job| job.name != **name)) {
        driver.note(&result_key(name), &Done { earlier: true, ..before.clone() })?;
    }
    let mut done: BTreeMap<String, Done> = BTreeMap::new();
    let mut running: Vec<Running> = Vec::new();
    loop {
        for job in &spec.jobs {
            if done.contains_key(&job.name) || running.iter().any(|one| one.job.name == job.name) {
                continue;
            }
            if let Some(known) = known(driver, job, &done, &earlier)? {
                done.insert(job.name.clone(), known);
            } else if job.needs.iter().all(|need| done.get(need).is_some_and(|need| need.succeeded)) {
                match Running::start(driver, job, &done) {
                    Ok(begun) => running.push(begun),
                    Err(JobError::Stopped) => return Err(JobError::Stopped),
                    // The driver is started again, and then tries again.
                    Err(error) if error.may_pass() => return Err(error),
                    Err(error) => {
                        let failed = Done { words: error.to_string(), ..result(job, false) };
                        finish(driver, job, failed, &mut done)?;
                    }
                }
            }
        }
        if done.len() == spec.jobs.len() {
            return Ok(end(&done));
        }
        let places: Vec<Place> = running.iter().map(|one| one.place.clone()).collect();
        // The jobs that are left wait for a job that was just skipped.
        if places.is_empty() {
            continue;
        }
        let Waited::Ended((which, view)) = driver.wait_any(&places, None)? else { continue };
        let one = running.swap_remove(which);
        match one.ended(driver, &view, &done)? {
            running::After::Again(again) => running.push(*again),
            running::After::Done(job, result) => finish(driver, &job, *result, &mut done)?,
        }
    }
}

/// The result of a job that has one already, or that will not be run.
fn known(
    driver: &mut Driver,
    job: &Planned,
    done: &BTreeMap<String, Done>,
    earlier: &BTreeMap<String, Done>,
) -> Result<Option<Done>, JobError> {
    if let Some(known) = driver.noted(&result_key(&job.name))? {
        return Ok(Some(known));
    }
    if let Some(before) = earlier.get(&job.name).filter(|before| before.succeeded && before.version == job.version) {
        let result = Done { earlier: true, ..before.clone() };
        driver.progress(&format!("{}: done before", job.name))?;
        driver.note(&result_key(&job.name), &result)?;
        return Ok(Some(result));
    }
    let failed = |need: &&String| done.get(*need).is_some_and(|need| !need.succeeded);
    if let Some(need) = job.needs.iter().find(failed) {
        let words = format!("not run, because {need} did not succeed");
        let result = Done { skipped: true, words: words.clone(), ..result(job, false) };
        driver.progress(&format!("{}: {words}", job.name))?;
        driver.note(&result_key(&job.name), &result)?;
        return Ok(Some(result));
    }
    Ok(None)
}

fn result(job: &Planned, succeeded: bool) -> Done {
    let words = if succeeded { "succeeded" } else { "failed" }.to_owned();
    Done { succeeded, skipped: false, earlier: false, words, session: None, version: job.version.clone() }
}

fn finish(driver: &mut Driver, job: &Planned, result: Done, done: &mut BTreeMap<String, Done>) -> Result<(), JobError> {
    let how = if result.succeeded || result.words.starts_with("failed") { "" } else { "failed: " };
    driver.progress(&format!("{}: {how}{}", job.name, result.words))?;
    driver.note(&result_key(&job.name), &result)?;
    done.insert(job.name.clone(), result);
    Ok(())
}

fn end(done: &BTreeMap<String, Done>) -> End {
    let count = |which: fn(&&Done) -> bool| done.values().filter(which).count();
    let failed = count(|one| !one.succeeded && !one.skipped);
    let skipped = count(|one| one.skipped);
    let all = counted(done.len() as u64, "job", "jobs");
    if failed + skipped == 0 {
        return End::succeeded(format!("{all} succeeded"));
    }
    let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} not run") };
    End::failed(format!("{failed} of {all} failed{skipped}"))
}

/// The results that a run of a file has noted.
fn results(engine: &Engine, place: &Place) -> Result<BTreeMap<String, Done>, JobError> {
    let mut results = BTreeMap::new();
    for step in engine.job_steps(place)? {
        let name = step["key"].as_str().and_then(|key| key.strip_prefix(&result_key("")));
        if let (Some(name), Some(value)) = (name, step.get("value"))
            && let Ok(result) = serde_json::from_value::<Done>(Value::clone(value))
        {
            results.entry(name.to_owned()).or_insert(result);
        }
    }
    Ok(results)
}

/// The newest result of each job in a run and the runs before it. A run may have left jobs out, and may have been
/// stopped before it had taken over what it found.
fn earlier(engine: &Engine, newest: Option<SessionId>) -> Result<BTreeMap<String, Done>, JobError> {
    let (mut found, mut next) = (BTreeMap::new(), newest);
    // The steps of a run that is archived in one file cannot be read. Later runs have taken over its results.
    let known = |id| Ok::<_, JobError>(engine.settled(id)?.filter(|place| !place.is_packed()));
    while let Some(place) = next.take().map(known).transpose()?.flatten() {
        for (name, result) in results(engine, &place)? {
            found.entry(name).or_insert(result);
        }
        // A run that another version has written does not count.
        next = serde_json::from_slice::<Up>(&engine.job_spec(&place)?).ok().and_then(|spec| spec.previous);
    }
    Ok(found)
}

/// Finds a run of a file, or starts one. Only one process at a time does so: the next one begins when the one before
/// has finished, and finds what that has started.
///
/// # Errors
/// When the others cannot be waited for, or as `find_or_start` fails.
pub fn one_at_a_time<T, E: From<ostler_engine::Error>>(
    engine: &Engine,
    find_or_start: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let _held = engine.home.lock_up().map_err(ostler_engine::Error::from)?;
    find_or_start()
}

/// The newest run of a file, with its spec.
///
/// # Errors
/// When sessions cannot be listed.
pub fn newest(engine: &Engine, file: &std::path::Path) -> Result<Option<(Place, Up)>, JobError> {
    let label = (LABEL.to_owned(), Some(file.to_string_lossy().into_owned()));
    let filter = Filter { labels: vec![label], ..Filter::default() };
    let wanted = Wanted { all: true, filter, sort: Sort::Created, ..Wanted::default() };
    for one in list::find(engine, &wanted)?.listed {
        let Listed::Good(view) = one else { continue };
        if view.job.as_deref() != Some(KIND) {
            continue;
        }
        let Some(place) = engine.settled(view.id)? else { continue };
        // A run that another version has written does not count.
        if let Ok(spec) = serde_json::from_slice(&engine.job_spec(&place)?) {
            return Ok(Some((place, spec)));
        }
    }
    Ok(None)
}
