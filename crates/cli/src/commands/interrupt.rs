//! `ostler interrupt`: end the running turn, keep the session.

use crate::args::One;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called_at;
use ostler_core::record::Want;
use ostler_engine::request::{self, Answered};

pub fn run(context: &Context, args: &One) -> Result<Code> {
    let place = context.engine.home.select(&args.id)?;
    match request::make(&context.engine, &place, Want::Interrupt)? {
        Answered::Accepted => {
            say!("{}: interrupted", called_at(&place))?;
            Ok(Code::Succeeded)
        }
        Answered::Refused(why) => {
            Err(Failure::new(Code::Failed, format!("{}: {why}; nothing to interrupt", called_at(&place))))
        }
        Answered::Ended(_) => {
            Err(Failure::new(Code::Failed, format!("{} has ended; nothing to interrupt", called_at(&place))))
        }
    }
}
