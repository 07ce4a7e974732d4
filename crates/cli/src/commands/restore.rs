//! `ostler restore`: bring archived sessions back, as they were.

use super::several;
use crate::args::Many;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::still::{NotStill, Still};
use ostler_store::home::Place;

pub fn run(context: &Context, args: &Many) -> Result<Code> {
    let places = several::select(&context.home, &args.ids)?;
    Ok(several::each(places, |place| {
        bring_back(context, &place)?;
        say!("{}: restored", place.id)?;
        Ok(Code::Succeeded)
    }))
}

fn bring_back(context: &Context, place: &Place) -> Result<()> {
    let id = place.id;
    if !place.archived {
        return Err(Failure::new(Code::Failed, format!("{id} is not archived; ostler show {id} shows it")));
    }
    let still = Still::take(place).map_err(|not| match not {
        NotStill::Runs => Failure::new(Code::Failed, format!("somebody works on {id} just now; try again")),
        NotStill::Failed(failure) => failure,
    })?;
    still.rename(&context.home.open_or_make(&context.home.sessions())?, id.as_str())
}
