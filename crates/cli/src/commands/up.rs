//! `ostler up`: runs the jobs of a file.
//!
//! * `watch`: a table with a line for each job.

mod watch;

use super::job_follow;
use super::looping::failure;
use super::run::{Watching, check_that_it_can_be_found};
use crate::args::Up as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{notice, say, tell};
use crate::ui::table::{Cell, lay_out};
use ostler_core::outcome::Kind;
use ostler_core::visible::visible;
use ostler_engine::{Launch, Place, Resume};
use ostler_jobs::up::{self, LoadError, Up};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub fn run(context: &Context, args: &Args) -> Result<Code> {
    let path = args.file.clone().unwrap_or_else(|| PathBuf::from("ostler.toml"));
    let plan = up::load(&context.engine, &path, &args.only).map_err(not_loaded)?;
    if args.dry_run {
        crate::say::text(&describe(&plan))?;
        return Ok(Code::Succeeded);
    }
    context.warn();
    let watching = Watching::new(args.detach, None);
    check_that_it_can_be_found(watching, None)?;
    let (place, spec) = up::one_at_a_time(&context.engine, || -> Result<_> {
        Ok(match continued(context, &plan, args.fresh)? {
            Earlier::Continue(place, spec) => (place, *spec),
            Earlier::New(previous) => {
                let spec = Up { previous, ..plan };
                (start(context, &spec)?, spec)
            }
        })
    })?;
    if args.detach {
        say!("{}", place.id).inspect_err(|_| tell!("ostler: up {} is running", place.id))?;
        return Ok(Code::Succeeded);
    }
    if args.watch { watch::to_the_end(context, &place, &spec) } else { job_follow::to_the_end(context, &place) }
}

fn not_loaded(error: LoadError) -> Failure {
    match error {
        LoadError::File { .. } => Failure::usage(format!("{error}; name another file: ostler up FILE")),
        LoadError::Mistake(mistake) => Failure::usage(mistake.to_string()),
    }
}

/// What is done with an earlier run of the file.
enum Earlier {
    /// The earlier run continues.
    Continue(Place, Box<Up>),
    /// A new run starts; the results of an earlier one count.
    New(Option<ostler_core::id::SessionId>),
}

fn continued(context: &Context, plan: &Up, fresh: bool) -> Result<Earlier> {
    let engine = &context.engine;
    let Some((place, earlier)) = up::newest(engine, &plan.file).map_err(failure)? else {
        return Ok(Earlier::New(None));
    };
    let view = engine.view_without_last(&place)?;
    let same = earlier.jobs == plan.jobs;
    if !view.ended {
        if same && !fresh {
            return Ok(Earlier::Continue(place, Box::new(earlier)));
        }
        let why = if fresh { "it is still running" } else { "it still runs with other jobs than these" };
        let words = format!(
            "session {0} runs {1}, and {why}; wait for it: ostler wait {0}, or stop it: ostler stop {0}",
            place.id,
            plan.file.display()
        );
        return Err(Failure::new(Code::Refused, words));
    }
    if fresh || place.archived {
        return Ok(Earlier::New((!fresh).then_some(place.id)));
    }
    // All of its processes were killed: it continues from its record.
    if same && view.outcome.as_ref().is_none_or(|outcome| outcome.kind == Kind::Lost) {
        engine.resume_once(&place, Resume::default(), &mut notice)?;
        return Ok(Earlier::Continue(place, Box::new(earlier)));
    }
    Ok(Earlier::New(Some(place.id)))
}

fn start(context: &Context, spec: &Up) -> Result<Place> {
    let launch = Launch {
        cwd: spec.file.parent().map(PathBuf::from),
        labels: BTreeMap::from([(up::LABEL.to_owned(), spec.file.to_string_lossy().into_owned())]),
        // Its title; a job takes no messages.
        prompt: spec.file.file_name().map(|name| name.to_string_lossy().into_owned()),
        ..Launch::default()
    };
    let launched = ostler_jobs::launch(&context.engine, up::KIND, spec, launch, &mut notice).map_err(failure)?;
    Ok(launched.place)
}

/// The plan, job by job.
fn describe(plan: &Up) -> String {
    let mut rows = vec![["JOB", "KIND", "NEEDS", "WHAT"].map(Cell::new).into()];
    for job in &plan.jobs {
        let needs = if job.needs.is_empty() { "-".to_owned() } else { job.needs.join(", ") };
        let what = job.work.words();
        rows.push(vec![
            Cell::new(&job.name),
            Cell::new(job.work.word()),
            Cell::new(&needs),
            Cell::new(&visible(&what)),
        ]);
    }
    lay_out(&rows, None)
}
