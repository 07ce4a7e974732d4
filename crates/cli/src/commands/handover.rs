//! `ostler handover`: another agent continues the work of a session.

use super::run::{Watching, after_start, check_agent_name, check_that_it_can_be_found, message_of, with_piped};
use crate::args::Handover as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::notice;
use ostler_core::record::Mode;
use ostler_engine::{Handover, Launched};

pub fn run(context: &Context, args: Args) -> Result<Code> {
    let engine = &context.engine;
    let place = engine.select(&args.id)?;
    check_agent_name(context, &args.to)?;
    let watching = Watching::new(args.detach, args.output);
    let mut request = Handover {
        to: args.to,
        mode: Some(if args.terminal { Mode::Terminal } else { Mode::Headless }),
        keep: args.keep,
        name: args.name,
        model: args.model,
        attended: watching.attended,
        ..Handover::default()
    };
    engine.check_handover(&engine.view(&place)?, &request)?;
    if args.terminal && args.output.is_some() {
        return Err(Failure::usage("--output is for sessions without a terminal; remove it"));
    }
    check_that_it_can_be_found(watching, request.name.as_deref())?;
    request.message = message_of(&args.message)?.map(with_piped).transpose()?;
    let Launched { place, session } = engine.handover(&place, request, &mut notice)?;
    after_start(context, &place, &session, watching)
}
