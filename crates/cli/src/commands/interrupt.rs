//! `ostler interrupt`: end the running turn, keep the session.

use crate::args::One;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use crate::ui::called::called_at;

pub fn run(context: &Context, args: &One) -> Result<Code> {
    let place = context.engine.select(&args.id)?;
    context.engine.interrupt(&place)?;
    say!("{}: interrupted", called_at(&place))?;
    Ok(Code::Succeeded)
}
