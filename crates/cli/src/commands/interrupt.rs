//! `ostler interrupt`: end the running turn, keep the session.

use super::each_session;
use crate::args::Many;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use crate::ui::called::called_at;

pub fn run(context: &Context, args: &Many) -> Result<Code> {
    let places = context.engine.select_all(&args.ids)?;
    Ok(each_session::each(places, |place| {
        context.engine.interrupt(&place)?;
        say!("{}: interrupted", called_at(&place))?;
        Ok(Code::Succeeded)
    }))
}
