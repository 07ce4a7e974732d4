//! `ostler archive`: put sessions away. One that still runs is ended first, as `stop` does it. What was put away is out
//! of the way of `ls`; `show` and `logs` read it as before, and `restore` brings it back.

use super::several;
use super::stop::{End, end, is_saved};
use super::sweep::{is_older, is_over};
use crate::args::Archive;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::called::{called, called_at};
use crate::ui::time::parse_duration;
use jiff::tz::TimeZone;
use ostler_core::event::StopHow;
use ostler_core::record::Want;
use ostler_core::view::{Phase, View};
use ostler_engine::owners::refuse_others;
use ostler_engine::quiesced::{NotQuiesced, Quiesced};
use ostler_engine::request::{self, Answered};
use ostler_store::home::Place;
use ostler_store::{archived, checkpoints, look};
use ostler_sys::clock;
use std::path::Path;
use std::time::Duration;

pub fn run(context: &Context, args: &Archive) -> Result<Code> {
    let idle = args.idle.as_deref().map(parse_duration).transpose().map_err(Failure::usage)?;
    let places = match idle {
        Some(age) => idle_for(context, age)?,
        None => several::select(&context.engine.home, &args.ids)?,
    };
    let want = Want::Stop {
        how: StopHow::Interrupt,
        grace_ms: u64::try_from(context.engine.config.grace.as_millis()).unwrap_or(u64::MAX),
        why: "archive".to_owned(),
    };
    // All of them are told before any is waited for.
    let told: Vec<(Place, Result<Answered>)> = places
        .into_iter()
        .map(|place| {
            let granted = if place.archived {
                Err(Failure::new(
                    Code::Failed,
                    format!("{} is already archived; see ostler show {}", called_at(&place), place.id),
                ))
            } else {
                request::make(&context.engine, &place, want.clone()).map_err(|failure| about(&place, failure.into()))
            };
            (place, granted)
        })
        .collect();
    Ok(several::each(told, |(place, granted)| {
        let End { view, was_over } = end(&place, granted?)?;
        // What somebody else is writing is not over.
        if let Some(native_id) = &view.native_id {
            refuse_others(&context.engine.environment, view.conversation_agent(), native_id, Some(&place.open()?))
                .map_err(|failure| about(&place, failure.into()))?;
        }
        put_away(context, &place)?;
        say!("{}: archived", called(&view))?;
        Ok(if was_over || is_saved(&view) { Code::Succeeded } else { Code::NotSaved })
    }))
}

/// What nobody has wanted anything of for so long: ended, or kept and waiting for a message.
fn idle_for(context: &Context, age: Duration) -> Result<Vec<Place>> {
    let waits = |view: &View| view.state == Phase::Idle && view.queued == 0 && is_older(view.updated, age);
    let mut places = context.engine.home.live_places()?;
    places.retain(|place| look::look(place).is_ok_and(|view| is_over(&view, age) || waits(&view)));
    places.sort_by_key(|place| place.id);
    Ok(places)
}

/// Of several sessions, which one.
fn about(place: &Place, failure: Failure) -> Failure {
    Failure { words: format!("{}: {}", called_at(place), failure.words), ..failure }
}

pub fn put_away(context: &Context, place: &Place) -> Result<()> {
    let id = place.id;
    let still = Quiesced::take(place).map_err(|not| match not {
        NotQuiesced::Runs => {
            Failure::new(Code::Failed, format!("{id} was just started again; stop it first: ostler stop {id}"))
        }
        NotQuiesced::Failed(error) => error.into(),
    })?;
    let view = match &still.view {
        Ok(view) => view,
        Err(damage) => {
            return Err(Failure::ours(format!(
                "{id}: {damage}; a damaged session cannot be archived, delete it with: ostler purge {id}"
            )));
        }
    };
    let folder = place.open()?;
    // What it was is kept, also when somebody writes it while nobody looks.
    if let (Some(transcript), true) = (&view.transcript, context.engine.config.autosave.is_some())
        && let Some(words) = checkpoints::save(&folder, Path::new(transcript), clock::now())?.words(id)
    {
        tell!("ostler: {id}: {words}");
    }
    archived::note(&folder, &context.engine.actor(), view.updated, view.transcript.as_deref())?;
    let month = view.created.to_zoned(TimeZone::UTC).strftime("%Y-%m").to_string();
    let archive = context.engine.home.archive();
    let into = context.engine.home.open_or_make(&archive.join(month))?;
    // The month's own name has to be on the disk as well before a session goes there.
    context.engine.home.open_or_make(&archive)?.sync()?;
    Ok(still.rename(&into, id.as_str())?)
}
