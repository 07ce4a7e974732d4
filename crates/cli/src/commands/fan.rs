//! `ostler fan`: copies a session once per prompt, and sends the results back to it.

use super::job_follow;
use super::looping::failure;
use super::run::{Watching, check_that_it_can_be_found};
use crate::args::Fan as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{notice, say, tell};
use ostler_core::MESSAGE_LIMIT;
use ostler_core::limits::counted;
use ostler_engine::Launch;
use ostler_jobs::fan;

pub fn run(context: &Context, args: Args) -> Result<Code> {
    let engine = &context.engine;
    let place = engine.select(&args.id)?;
    let forkable = engine.forkable(&place)?;
    if let Some(prompt) = args.prompts.iter().find(|prompt| prompt.trim().is_empty() || prompt.len() > MESSAGE_LIMIT) {
        let what = if prompt.len() > MESSAGE_LIMIT { "longer than 16 MiB" } else { "empty" };
        return Err(Failure::usage(format!("a prompt is {what}; give one prompt for each copy")));
    }
    let watching = Watching::new(args.detach, None);
    check_that_it_can_be_found(watching, args.name.as_deref())?;
    let launch = Launch {
        cwd: Some(forkable.view.cwd.clone().into()),
        name: args.name,
        prompt: Some(format!("{} of {}", counted(args.prompts.len() as u64, "copy", "copies"), place.id)),
        ..Launch::default()
    };
    let spec = fan::Fan { session: place.id, prompts: args.prompts };
    let job = ostler_jobs::launch(engine, fan::KIND, &spec, launch, &mut notice).map_err(failure)?.place;
    if args.detach {
        say!("{}", job.id).inspect_err(|_| tell!("ostler: fan {} is running", job.id))?;
        return Ok(Code::Succeeded);
    }
    job_follow::to_the_end(context, &job)
}
