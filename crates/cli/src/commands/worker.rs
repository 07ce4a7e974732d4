//! `ostler worker`: works on the newest state of a branch, whenever the branch moves.

use super::job_follow;
use super::looping::failure;
use super::run::{Watching, check_that_it_can_be_found};
use crate::args::Worker as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{notice, say, tell};
use ostler_engine::Launch;
use ostler_jobs::worker;
use std::collections::BTreeMap;

pub fn run(context: &Context, args: Args) -> Result<Code> {
    let engine = &context.engine;
    let folder = engine.environment.folder()?.to_owned();
    let repository = engine.repository(&folder)?;
    let branch = args.branch.unwrap_or_else(|| "main".to_owned());
    if !repository.has_branch(&branch).map_err(ostler_engine::Error::from)? {
        return Err(Failure::usage(format!("there is no branch {branch:?}; name another one with --branch")));
    }
    // Checked now: its work costs money before it lands.
    repository.check_identity().map_err(ostler_engine::Error::from)?;
    let files = if args.agents.is_empty() { worker::usual(&repository.root) } else { args.agents };
    if files.is_empty() {
        return Err(Failure::usage("no agents are named, and there are none in .ostler/agents; add --agents FILE.md"));
    }
    let roles = worker::load(engine, &files).map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(check) = &args.check {
        engine.check_shell_command(check, &folder)?;
    }
    let many = args.number.get();
    let follows = !args.detach && many == 1;
    check_that_it_can_be_found(Watching::new(!follows, None), None)?;
    let crew = engine.reserve_session().to_string();
    let spec = worker::Worker { crew: crew.clone(), branch, check: args.check, roles };
    let mut last = None;
    for _ in 0..many {
        let launch = Launch {
            cwd: Some(folder.clone()),
            labels: BTreeMap::from([(worker::LABEL.to_owned(), crew.clone())]),
            prompt: spec.roles.first().map(|role| role.prompt.clone()),
            ..Launch::default()
        };
        let place = ostler_jobs::launch(engine, worker::KIND, &spec, launch, &mut notice).map_err(failure)?.place;
        if !follows {
            say!("{}", place.id).inspect_err(|_| tell!("ostler: worker {} is running", place.id))?;
        }
        last = Some(place);
    }
    match last.filter(|_| follows) {
        Some(place) => job_follow::to_the_end(context, &place),
        None => Ok(Code::Succeeded),
    }
}
