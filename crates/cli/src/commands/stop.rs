//! `ostler stop`: end sessions properly.

mod words;

use crate::args::Stop;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{self, say, tell};
use crate::ui::called::{called, called_at};
use crate::ui::time::parse_duration;
use ostler_core::event::StopHow;
use ostler_core::view::View;
use ostler_engine::Place;
use ostler_engine::stop::{self, Stopped, Waited, is_saved};

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
        false => context.engine.select_all(&args.ids)?,
    };
    if places.is_empty() {
        tell!("ostler: no session is running{}; nothing was stopped", if args.here { " here" } else { "" });
    }
    let why = if args.kill { "stop --kill" } else { "stop" }.to_owned();
    let stopping = context.engine.stop(places, &stop::Stop { how, grace, why })?;
    for one in stopping.iter().filter(|one| args.after_turn && one.asks_first()) {
        tell!(
            "ostler: {} asks first; answer it: ostler answer {1}, or do not wait for its turn: ostler stop {1}",
            called_at(&one.place),
            one.place.id
        );
    }
    let (mut code, mut failed) = (Code::Succeeded, None);
    stop::wait_for_all(stopping, |waited| match say_end(waited) {
        Ok(true) => {}
        Ok(false) => code = Code::NotSaved,
        // The other sessions are still stopped and reported.
        Err(failure) => failed = failed.take().or(Some(failure)),
    });
    failed.map_or(Ok(code), Err)
}

/// Prints how a session ended; returns whether its last turn is saved.
fn say_end(waited: Waited) -> Result<bool> {
    waited.notices.into_iter().for_each(say::notice);
    Ok(match waited.stopped? {
        Stopped::Damaged { damage } => {
            let words = "stopped; whether the last turn is saved is unknown, because its folder is damaged";
            say!("{}", ostler_screen::printable(&format!("{}: {words}: {damage}", waited.place.id)))?;
            false
        }
        Stopped::Ended(end) => {
            say!("{}", ostler_screen::printable(&summary(&end.view, end.was_over)))?;
            end.was_over || say_whether_saved(&end.view)
        }
    })
}

/// Every running session, or those in this folder and below it.
fn running(context: &Context, here: bool) -> Result<Vec<Place>> {
    let below = if here { Some(context.engine.environment.folder()?) } else { None };
    let running = context.engine.running(below)?;
    if let Some(id) = running.own {
        tell!("ostler: {id} is left running, because this command runs in it; to stop it too: ostler stop {id}");
    }
    Ok(running.places)
}

/// Whether its last turn is proven saved, or there was nothing to save. Prints a line when it is not.
pub fn say_whether_saved(view: &View) -> bool {
    let saved = is_saved(view);
    if !saved {
        tell!("ostler: {}", not_saved(view));
    }
    saved
}

/// The line that its last turn is not saved, and where it can be read.
pub fn not_saved(view: &View) -> String {
    format!("{}: the last turn is not in the agent's transcript; read it with: ostler logs {}", called(view), view.id)
}

/// One line about how it ended.
pub fn summary(view: &View, was_over: bool) -> String {
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
