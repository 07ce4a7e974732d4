//! `ostler interrupt`: end the running turn, keep the session.

use crate::args::One;
use crate::client::{Granted, make_wish};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called_at;
use ostler_core::record::Want;

pub fn run(context: &Context, args: &One) -> Result<Code> {
    let place = context.home.select(&args.id)?;
    match make_wish(&place, Want::Interrupt)? {
        Granted::Yes => {
            say!("{}: interrupted", called_at(&place))?;
            Ok(Code::Succeeded)
        }
        Granted::Refused(why) => {
            Err(Failure::new(Code::Failed, format!("{}: {why}; nothing to interrupt", called_at(&place))))
        }
        Granted::Ended(_) => {
            Err(Failure::new(Code::Failed, format!("{} has ended; nothing to interrupt", called_at(&place))))
        }
    }
}
