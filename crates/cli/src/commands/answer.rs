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
    let asking = look::look(&place)?.asking;
    let request = args.request.or_else(|| asking.as_ref().map(|ask| ask.request.clone()));
    let Some(request) = request else {
        return Err(Failure::new(
            Code::Failed,
            format!("{} asks nothing; ostler show {} tells its state", place.id, place.id),
        ));
    };
    let is_question = asking.is_some_and(|ask| ask.request == request && !ask.questions().is_empty());
    let allow = match (args.allow, args.deny, &args.text) {
        (_, true, _) => false,
        (_, false, Some(_)) if is_question => true,
        (true, false, Some(_)) => {
            return Err(Failure::usage(
                "--allow takes no words; --text alone, or with --deny, tells it what to do instead",
            ));
        }
        (true, false, None) if is_question => {
            return Err(Failure::usage(format!(
                "it asks a question; ostler answer {} --text \"…\" answers it",
                place.id
            )));
        }
        (true, false, None) => true,
        // Words instead of a permission are a no with its reason.
        (false, false, Some(_)) => false,
        (false, false, None) => return Err(Failure::usage("say --allow, --deny or --text \"…\"")),
    };
    match make_wish(&place, Want::Answer { request: Some(request), allow, always: args.always, text: args.text })? {
        Granted::Yes => {
            let verdict = match (allow, args.always) {
                (true, true) => "allowed, and what is like it for the rest of the run",
                (true, false) if is_question => "answered",
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
