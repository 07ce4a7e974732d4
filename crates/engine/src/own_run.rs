//! What a name means in a session that `up` has started: the jobs of its own run come first.
//!
//! Names are unique on the whole machine, but two files may have a job of the same name; then the session of the second
//! job gets another name. A command like `ostler land fix` in a file means the job of this file, and must never affect
//! the work of another file.

use crate::engine::Engine;
use crate::error::Result;
use crate::job::CHILD;
use ostler_core::id::SessionId;
use ostler_store::home::Place;
use serde_json::Value;

/// The kind of job that runs a file of jobs.
pub const UP: &str = "up";

/// The maximum number of sessions between this process and the run. A damaged record must not cause an endless loop.
const ABOVE: usize = 32;

/// The key of the step that starts a job.
#[must_use]
pub fn start_key(name: &str) -> String {
    format!("job {name}")
}

/// The key under which the result of a job is noted.
#[must_use]
pub fn result_key(name: &str) -> String {
    format!("result of {name}")
}

/// A job of the run that this process belongs to.
pub(crate) enum OwnJob {
    /// This is its session.
    Begun(Place),
    /// The job has no session yet, or its session was deleted.
    NotThere,
}

impl Engine {
    /// The job of this name in the run that this process belongs to. `None`: the process belongs to no run, or the run
    /// has no such job.
    pub(crate) fn job_of_own_run(&self, name: &str) -> Result<Option<OwnJob>> {
        let mut above = self.own_session();
        for _ in 0..ABOVE {
            let place = above.map(|id| self.home.place_of(id)).transpose()?.flatten();
            // A session that is packed in the archive does not drive jobs any more.
            let Some(place) = place.filter(|place| !place.is_packed()) else { return Ok(None) };
            let session = place.open()?.session()?;
            if session.job.as_deref() == Some(UP) && self.has_job(&place, name)? {
                let id = session_of(&self.job_steps(&place)?, name);
                let begun = id.map(|id| self.home.place_of(id)).transpose()?.flatten();
                return Ok(Some(begun.map_or(OwnJob::NotThere, OwnJob::Begun)));
            }
            above = session.parent;
        }
        Ok(None)
    }

    fn has_job(&self, run: &Place, name: &str) -> Result<bool> {
        // What another version has written may not be readable here; then it names no job.
        let spec: Value = serde_json::from_slice(&self.job_spec(run)?).unwrap_or_default();
        Ok(spec["jobs"].as_array().is_some_and(|jobs| jobs.iter().any(|job| job["name"] == name)))
    }
}

/// The session that has done a job or works on it, according to the steps of the run.
#[must_use]
pub fn session_of(steps: &[Value], name: &str) -> Option<SessionId> {
    let id = |value: &Value| value.as_str().and_then(SessionId::parse);
    let done = steps.iter().find(|step| step["key"] == result_key(name).as_str());
    if let Some(id) = done.and_then(|step| id(&step["value"]["session"])) {
        return Some(id);
    }
    let (first, again) = (start_key(name), format!("{} #", start_key(name)));
    let starts = |step: &&Value| step["key"].as_str().is_some_and(|key| key == first || key.starts_with(&again));
    steps.iter().filter(starts).filter_map(|step| id(&step[CHILD])).next_back()
}
