//! `ostler fork`: a new session that begins as a copy of a conversation and continues separately.

use super::continuing;
use super::run::{Watching, after_start, check_that_it_can_be_found, message_of, with_piped};
use crate::args::Fork as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::notice;
use ostler_core::record::Mode;
use ostler_engine::{Fork, Launched};

pub fn run(context: &Context, mut args: Args) -> Result<Code> {
    let worktree = continuing::worktree(context, &mut args.worktree, &mut args.id, &mut args.message);
    let id = args.id.ok_or_else(|| Failure::usage("ID is missing; see ostler fork --help"))?;
    let place = context.engine.select(&id)?;
    let forkable = context.engine.forkable(&place)?;
    let message = message_of(&args.message)?.map(with_piped).transpose()?;
    let watching = Watching::new(args.detach, args.output);
    let request =
        Fork { message, keep: args.keep, name: args.name, attended: watching.attended, worktree, ..Fork::default() };
    forkable.check(&request)?;
    if forkable.view.mode == Mode::Terminal && args.output.is_some() {
        return Err(Failure::usage("--output is for sessions without a terminal; remove it"));
    }
    check_that_it_can_be_found(watching, request.name.as_deref())?;
    let Launched { place, session } = forkable.start(request, &mut notice)?;
    after_start(context, &place, &session, watching)
}
