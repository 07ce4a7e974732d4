//! `ostler diff`: what a session, or one of its turns, has changed.

use crate::args::Diff;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::{notice, tell};
use ostler_engine::Place;

pub fn run(context: &Context, args: &Diff) -> Result<Code> {
    let place = context.engine.select(&args.id)?;
    // Git prints it with the user's own settings: colours, pager and so on.
    let shown = match args.turn {
        Some(turn) => {
            for kept in [turn.saturating_sub(1), turn] {
                say_if_mixed(context, &place, kept)?;
            }
            context.engine.show_turn(&place, turn, args.stat)?
        }
        None => context.engine.show_changes(&place, args.stat, &mut notice)?,
    };
    match shown {
        0 => Ok(Code::Succeeded),
        _ => Ok(Code::Failed),
    }
}

/// Warns when the files that were kept after this turn may have changes of the next one.
pub fn say_if_mixed(context: &Context, place: &Place, turn: u32) -> Result<()> {
    if context.engine.turns_kept(place)?.is_some_and(|kept| kept.mixed.contains(&turn)) {
        let next = turn + 1;
        // A remark, not part of the result.
        tell!("ostler: turn {next} had begun when the files after turn {turn} were kept; they may have changes of it");
    }
    Ok(())
}
