//! `ostler restore`: bring archived sessions back, as they were.

use super::several;
use crate::args::Many;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::called::called_at;
use ostler_engine::quiesced::{NotQuiesced, Quiesced};
use ostler_store::archived;
use ostler_store::home::Place;

pub fn run(context: &Context, args: &Many) -> Result<Code> {
    let places = several::select(&context.engine.home, &args.ids)?;
    Ok(several::each(places, |place| {
        let name = called_at(&place);
        let alarm = bring_back(context, &place)?;
        say!("{name}: restored")?;
        if let Some(words) = alarm {
            tell!("ostler: {name}: {words}");
        }
        Ok(Code::Succeeded)
    }))
}

/// What comes back is what a person should know about what happened to it meanwhile.
fn bring_back(context: &Context, place: &Place) -> Result<Option<String>> {
    let id = place.id;
    if !place.archived {
        return Err(Failure::new(Code::Failed, format!("{} is not archived; see ostler show {id}", called_at(place))));
    }
    let still = Quiesced::take(place).map_err(|not| match not {
        NotQuiesced::Runs => Failure::new(Code::Failed, format!("another command is working on {id}; try again")),
        NotQuiesced::Failed(error) => error.into(),
    })?;
    let alarm = archived::noted(&place.open()?)?.map(|archived| archived.alarm(id)).transpose()?.flatten();
    still.rename(&context.engine.home.open_or_make(&context.engine.home.sessions())?, id.as_str())?;
    Ok(alarm)
}
