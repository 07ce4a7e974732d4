//! `ostler rename`: another name for a session. What was asked for at its start stays as it was written; the name has a record
//! of its own beside that.

use super::run::check_name;
use crate::args::Rename;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called_at;
use ostler_core::record::Renamed;
use ostler_sys::clock;

pub fn run(context: &Context, args: &Rename) -> Result<Code> {
    let place = context.engine.home.select(&args.id)?;
    if place.archived {
        return Err(Failure::usage(format!(
            "{} is archived; restore it first: ostler restore {}",
            called_at(&place),
            place.id
        )));
    }
    // Of several that want one name at once, one gets it.
    let _names = context.engine.home.lock_names()?;
    let folder = place.open()?;
    if folder.session()?.name.as_deref() != Some(args.name.as_str()) {
        check_name(context, Some(&args.name))?;
        folder.rename(
            &context.engine.home,
            place.id,
            &Renamed { name: args.name.clone(), at: clock::now(), by: context.engine.actor() },
        )?;
    }
    say!("{} ({}): renamed", args.name, place.id)?;
    Ok(Code::Succeeded)
}
