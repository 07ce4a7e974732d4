//! `ostler pick`: lands the work of one session of a group, and archives the others.

use super::each_session;
use super::land;
use crate::args::Land;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::{notice, say};
use crate::ui::called::called_at;
use ostler_core::view::Phase;
use ostler_engine::Place;

pub fn run(context: &Context, args: &Land) -> Result<Code> {
    let engine = &context.engine;
    let place = engine.select(&args.id)?;
    let others: Vec<Place> = engine.others_in_group(&place)?.into_iter().filter(|other| !other.archived).collect();
    let view = engine.view(&place)?;
    // Landing refuses a session that still works.
    if view.ended || view.state == Phase::Idle {
        engine.check_changed(&view)?;
    }
    // If landing fails, the others stay as they are. Repeated after a kill, it finds that the work has already landed.
    land::run(context, args)?;
    if args.dry_run {
        return Ok(Code::Succeeded);
    }
    Ok(each_session::each(engine.stop_to_archive(others.clone()).into_iter().zip(others), |(archiving, other)| {
        engine.archive(archiving, &mut notice)?;
        say!("{}: archived; its worktree stays until: ostler worktree rm", called_at(&other))?;
        Ok(Code::Succeeded)
    }))
}
