//! `ostler diff`: what a session, or one of its turns, has changed.

use crate::args::Diff;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::notice;

pub fn run(context: &Context, args: &Diff) -> Result<Code> {
    let place = context.engine.select(&args.id)?;
    // Git shows it as the person likes it: colours, pager, and all.
    let shown = match args.turn {
        Some(turn) => context.engine.show_turn(&place, turn, args.stat)?,
        None => context.engine.show_changes(&place, args.stat, &mut notice)?,
    };
    match shown {
        0 => Ok(Code::Succeeded),
        _ => Ok(Code::Failed),
    }
}
