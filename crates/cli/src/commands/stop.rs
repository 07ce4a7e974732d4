//! `ostler stop`: end sessions properly.

mod damaged;
mod words;

use super::wait;
use crate::args::Stop;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::called::{called, called_at};
use crate::ui::time::parse_duration;
use ostler_core::event::StopHow;
use ostler_core::outcome::{Kind, Saved};
use ostler_core::record::Want;
use ostler_core::view::View;
use ostler_engine::list::{Listed, list};
use ostler_engine::orphans;
use ostler_engine::request::{self, Answered};
use ostler_store::home::Place;
use ostler_store::look::{Depth, look_to};
use std::path::Path;

pub fn run(context: &Context, args: &Stop) -> Result<Code> {
    let grace = match &args.grace {
        Some(text) => parse_duration(text).map_err(Failure::usage)?,
        None => context.engine.config.grace,
    };
    let how = match (args.kill, args.after_turn) {
        (true, _) => StopHow::Kill,
        (false, true) => StopHow::AfterTurn,
        (false, false) => StopHow::Interrupt,
    };
    let places = match args.all || args.here {
        true => running(context, args.here)?,
        false => args.ids.iter().map(|id| Ok(context.engine.home.select(id)?)).collect::<Result<Vec<_>>>()?,
    };
    if places.is_empty() {
        tell!("ostler: no session is running{}; nothing was stopped", if args.here { " here" } else { "" });
    }
    let want = Want::Stop {
        how,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        why: if args.kill { "stop --kill" } else { "stop" }.to_owned(),
    };
    // All of them are told before any is waited for.
    let told: Vec<(Place, Told)> = places
        .into_iter()
        .map(|place| {
            let told = match damaged::tell_helpers(&place)? {
                Some(helpers) => Told::Helpers(helpers),
                None => Told::Wish(request::make(&context.engine, &place, want.clone())?),
            };
            Ok((place, told))
        })
        .collect::<Result<_>>()?;
    let mut code = Code::Succeeded;
    for (place, told) in told {
        let granted = match told {
            Told::Wish(granted) => granted,
            Told::Helpers(helpers) => {
                say!("{}", ostler_screen::printable(&helpers.until_gone(grace)?))?;
                code = Code::NotSaved;
                continue;
            }
        };
        if args.after_turn
            && matches!(granted, Answered::Accepted)
            && let Ok(view) = look_to(Depth::Standing, &place)
            && view.asking.is_some()
        {
            tell!(
                "ostler: {} asks first; answer it: ostler answer {1}, or do not wait for its turn: ostler stop {1}",
                called_at(&place),
                place.id
            );
        }
        let End { view, was_over } = end(&place, granted)?;
        let is_lost = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Lost);
        if was_over && is_lost && !place.archived && damaged::still_runs(&place)? {
            for process in orphans::end_contained(&place.open()?, place.id, view.run)? {
                tell!("ostler: {}: ended a process that it had left running: {process}", called_at(&place));
            }
        }
        say!("{}", ostler_screen::printable(&summary(&view, was_over)))?;
        if !was_over && !is_saved(&view) {
            code = Code::NotSaved;
        }
    }
    Ok(code)
}

/// Every session that runs, or those in this folder and below it. The one that this command runs in would be ended before
/// it could tell what became of the others.
fn running(context: &Context, here: bool) -> Result<Vec<Place>> {
    let below = here.then(std::env::current_dir).transpose()?;
    let own = variable("OSTLER_SESSION");
    let meant = list(&context.engine, false, |one| match one {
        Listed::Good(view) => {
            let there = below.as_ref().is_none_or(|folder| Path::new(&view.cwd).starts_with(folder));
            (!view.ended && there).then(|| view.id.to_string())
        }
        Listed::Bad(damaged) => (damaged.alive && below.is_none()).then_some(damaged.id),
    })?;
    let (own, others): (Vec<String>, Vec<String>) =
        meant.into_iter().flatten().partition(|id| own.as_ref() == Some(id));
    for id in own {
        tell!("ostler: {id} is left running, because this command runs in it; to stop it too: ostler stop {id}");
    }
    others.iter().map(|id| Ok(context.engine.home.select(id)?)).collect()
}

/// Who was told to end it.
enum Told {
    Wish(Answered),
    Helpers(damaged::Helpers),
}

/// A session that has ended.
pub struct End {
    pub view: View,
    /// It had ended before anyone asked.
    pub was_over: bool,
}

/// Waits for the end that was asked for.
pub fn end(place: &Place, granted: Answered) -> Result<End> {
    match granted {
        Answered::Ended(view) => Ok(End { view: *view, was_over: true }),
        Answered::Accepted => Ok(End { view: wait::until_ended(place)?, was_over: false }),
        Answered::Refused(why) => Err(Failure::new(Code::Failed, format!("{}: {why}", called_at(place)))),
    }
}

/// Whether its last turn is proven saved, or there was nothing to save. Says so when it is not.
pub fn is_saved(view: &View) -> bool {
    let unsaved = view.outcome.as_ref().is_some_and(|outcome| outcome.saved == Saved::Unverified);
    if unsaved {
        let id = view.id;
        tell!(
            "ostler: {}: the last turn is not in the agent's transcript; read it with: ostler logs {id}",
            called(view)
        );
    }
    !unsaved
}

/// One line about how it ended.
fn summary(view: &View, was_over: bool) -> String {
    let how = match (&view.outcome, was_over) {
        (None, _) => "ended".to_owned(),
        (Some(outcome), true) => words::had_ended(outcome),
        (Some(outcome), false) => words::ended(outcome),
    };
    let waiting = match view.queued {
        0 => String::new(),
        1 => format!("; 1 message waits for the next resume: ostler send {} --list", view.id),
        more => format!("; {more} messages wait for the next resume: ostler send {} --list", view.id),
    };
    format!("{}: {how}{waiting}", called(view))
}
