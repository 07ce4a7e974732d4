//! Jobs: sessions that drive other sessions.
//!
//! A job is a session whose program is ostler itself. Its driver is kept by a holder and a keeper like any command, and
//! may be killed at any moment: then it is started again, and continues where its own record of steps ends.
//!
//! # How to write a kind of job
//!
//! 1. A type for the description of the job, with serde: the spec.
//! 2. A function `drive(&mut Driver, Spec) -> Result<End, JobError>`, which is run **from its beginning** each time the
//!    driver starts. Everything that has an effect goes through the [`Driver`] under a key of its own, such as
//!    `turn 3`. A step that was taken before the driver was killed is then found by its key: it is not done again, and
//!    its result is the same.
//! 3. A line in [`KINDS`].
//! 4. In `cli`, the command: checks what it was given, then [`launch`] with the kind and the spec.
//!
//! ```no_run
//! use ostler_engine::Launch;
//! use ostler_jobs::{Driver, End, JobError, Waited};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Twice { agent: String, prompt: String }
//!
//! fn drive(driver: &mut Driver, spec: Twice) -> Result<End, JobError> {
//!     for turn in 1..=2 {
//!         // The id of the child is on the disk before it is launched.
//!         let launch = Launch { agent: spec.agent.clone(), prompt: Some(spec.prompt.clone()), ..driver.child_launch() };
//!         let child = driver.child(&format!("turn {turn}"), launch)?;
//!         driver.progress(&format!("turn {turn} of 2"))?;
//!         let Waited::Ended(view) = driver.wait(&child, None)? else { return Ok(End::failed("too late")) };
//!         let check = driver.check(&format!("check {turn}"), "make test", &driver.folder())?;
//!         if check.code == Some(0) {
//!             return Ok(End::succeeded("the check passes"));
//!         }
//!         // Anything else that must be the same when the driver starts again.
//!         driver.note(&format!("cost {turn}"), &view.cost_usd)?;
//!     }
//!     Ok(End::failed("the check does not pass"))
//! }
//! ```
//!
//! Rules:
//! * A key is used once for one thing. Keys must not depend on the time or on what a person does meanwhile, unless that
//!   was noted first.
//! * `?` on a [`JobError`] is right: when the job is stopped, every waiting step returns [`JobError::Stopped`]. The
//!   framework ends the children before the driver exits.
//! * What a driver prints is its log. The last line is what `ls` shows: use [`Driver::progress`].
//! * The exit code of a job is that of `wait`: 0 for [`End::succeeded`], 1 for [`End::failed`].

#![warn(missing_docs)]

mod driver;
mod error;
pub mod fan;
pub mod group;
pub mod looping;
mod steps;
pub mod up;
pub mod worker;

pub use driver::{Check, CutOff, Driver, Waited};
pub use error::JobError;

use ostler_core::rules::{Restart, Rules};
use ostler_engine::launch::{JOB, Job};
use ostler_engine::process::JOB_ENTRY;
use ostler_engine::{Engine, Launch, Launched, Notice};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How a job ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether the goal of the job was reached.
    pub succeeded: bool,
    /// One line, for people.
    pub words: String,
}

impl End {
    /// The goal of the job was reached.
    #[must_use]
    pub fn succeeded(words: impl Into<String>) -> End {
        End { succeeded: true, words: words.into() }
    }

    /// The goal of the job was not reached. `words` says why.
    #[must_use]
    pub fn failed(words: impl Into<String>) -> End {
        End { succeeded: false, words: words.into() }
    }
}

/// A kind of job: its name, and what its driver does.
type Drive = fn(&mut Driver, &[u8]) -> Result<End, JobError>;

/// All kinds of jobs.
const KINDS: &[(&str, Drive)] = &[
    (looping::KIND, |driver, spec| with_spec(driver, spec, looping::drive)),
    (fan::KIND, |driver, spec| with_spec(driver, spec, fan::drive)),
    (worker::KIND, |driver, spec| with_spec(driver, spec, worker::drive)),
    (up::KIND, |driver, spec| with_spec(driver, spec, up::drive)),
    (group::KIND, |driver, spec| with_spec(driver, spec, group::drive)),
];

/// Parses the spec of a job and passes it to `drive`.
fn with_spec<Spec: DeserializeOwned>(
    driver: &mut Driver,
    spec: &[u8],
    drive: impl FnOnce(&mut Driver, Spec) -> Result<End, JobError>,
) -> Result<End, JobError> {
    let spec = serde_json::from_slice(spec).map_err(JobError::Spec)?;
    drive(driver, spec)
}

/// Launches a job. `launch` has what a person chose for it: its name, folder, worktree, labels, and a prompt for its
/// title.
pub fn launch<Spec: Serialize>(
    engine: &Engine,
    kind: &str,
    spec: &Spec,
    launch: Launch,
    tell: &mut dyn FnMut(Notice),
) -> Result<Launched, JobError> {
    Ok(engine.launch(as_job(kind, spec, launch)?, tell)?)
}

/// The launch of a job, for a driver that starts one as its child.
pub(crate) fn as_job<Spec: Serialize>(kind: &str, spec: &Spec, launch: Launch) -> Result<Launch, JobError> {
    let spec = serde_json::to_vec(spec).map_err(JobError::Spec)?;
    let job = Job { kind: kind.to_owned(), spec };
    let rules = Rules { restart: Some(Restart::WhenKilled), ..launch.rules };
    Ok(Launch { agent: JOB.to_owned(), job: Some(job), rules, ..launch })
}

/// Runs the driver of a job to its end, when these are the arguments of a driver, and returns its exit code. To be
/// called first in `main`.
#[must_use]
pub fn enter(arguments: &[String]) -> Option<u8> {
    if arguments.get(1).map(String::as_str) != Some(JOB_ENTRY) {
        return None;
    }
    let kind = arguments.get(2).map(String::as_str).unwrap_or_default();
    Some(driver::run(kind, KINDS))
}
