//! `ostler answer`: answer what a session asks.

use crate::args::Answer;
use crate::client::{Granted, make_wish};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use ostler_core::record::Want;
use ostler_store::look;

pub fn run(context: &Context, args: Answer) -> Result<Code> {
    let place = context.home.select(&args.id)?;
    // Which question is meant is settled now: an answer must never hit the next one.
    let request = match args.request {
        Some(request) => Some(request),
        None => look::look(&place)?.asking.map(|ask| ask.request),
    };
    let Some(request) = request else {
        return Err(Failure::new(
            Code::Failed,
            format!("{} asks nothing; ostler show {} tells its state", place.id, place.id),
        ));
    };
    let allow = args.allow || (!args.deny && args.text.is_some());
    match make_wish(&place, Want::Answer { request: Some(request), allow, always: args.always, text: args.text })? {
        Granted::Yes => {
            let verdict = match (allow, args.always) {
                (true, true) => "allowed, and what is like it for the rest of the run",
                (true, false) => "allowed",
                (false, _) => "denied",
            };
            say!("{}: {verdict}", place.id)?;
            Ok(Code::Succeeded)
        }
        Granted::Refused(why) => Err(Failure::new(Code::Failed, format!("{}: {why}", place.id))),
        Granted::Ended(_) => Err(Failure::new(Code::Failed, format!("{} has ended; it asks nothing", place.id))),
    }
}
