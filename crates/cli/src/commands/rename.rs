//! `ostler rename`: another name for a session. The record of what was asked for at its start stays unchanged; the name
//! has a record of its own.

use crate::args::Rename;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;

pub fn run(context: &Context, args: &Rename) -> Result<Code> {
    let place = context.engine.select(&args.id)?;
    context.engine.rename(&place, &args.name)?;
    say!("{} ({}): renamed", args.name, place.id)?;
    Ok(Code::Succeeded)
}
