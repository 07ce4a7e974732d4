//! `ostler attach`: sit down at a session, and leave it without disturbing it.
//!
//! A terminal session gets the person's whole terminal ([`terminal`]), an agent without one a chat view ([`chat`]), a
//! command its output ([`command`]). In all three the files are read here and the keeper only says that they have grown,
//! so nothing on the screen depends on a keeper staying alive. Whatever happens to the person's terminal only detaches.

mod ask;
mod canvas;
mod chat;
mod command;
mod detach_key;
mod line;
mod pick;
mod seat;
mod shown;
mod terminal;
mod tty;
mod typed;
mod words;

pub use ask::{Inline, ask_inline, longer};
pub use pick::{choose, pick};

use crate::args::Attach;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::follow::{Printer, Show, Talking};
use crate::say::say;
use crate::ui::conversation::Talk;
use ostler_core::record::{Mode, Speaks};
use ostler_core::view::View;
use ostler_engine::request::look_and_record;
use ostler_store::home::Place;
use ostler_view::look::{Depth, look_to};
use tty::Tty;

pub fn run(context: &Context, args: &Attach) -> Result<Code> {
    let id = match &args.id {
        Some(id) => id.clone(),
        None => {
            pick(context, "attach", "no session is running; list ended ones with: ostler ls -a", |view| !view.ended)?
        }
    };
    let place = context.engine.select(&id)?;
    // What it drew last is about to be seen anyway.
    let view = look_to(Depth::Standing, &place)?;
    if view.ended {
        return last_seen(context, &place, &look_and_record(&place)?);
    }
    open(context, &place, view.mode, args.read_only)
}

/// Shows a session that runs, in the way that fits it.
pub fn open(context: &Context, place: &Place, mode: Mode, read_only: bool) -> Result<Code> {
    match mode {
        Mode::Terminal => terminal(context, place, read_only),
        Mode::Headless => {
            check_place(place)?;
            let folder = place.open()?;
            match folder.run(folder.newest_run()?)?.record()?.plan.speaks {
                Speaks::Turns | Speaks::OneTurn => chat::run(context, place, read_only),
                Speaks::Bytes | Speaks::Hooks => command::run(context, place, read_only),
            }
        }
    }
}

/// Whether there is a terminal to show anything on.
pub fn is_possible() -> bool {
    Tty::is_there()
}

/// Shows a terminal session until it ends or the person leaves it.
pub fn terminal(context: &Context, place: &Place, read_only: bool) -> Result<Code> {
    check_place(place)?;
    terminal::run(context, place, read_only)
}

/// Refuses what could not work: no terminal to show it on, or a terminal that the session itself draws.
pub fn check_place(place: &Place) -> Result<()> {
    if variable("OSTLER_SESSION").as_deref() == Some(place.id.as_str()) {
        return Err(Failure::usage(format!(
            "{} cannot be shown inside itself; attach to it from another terminal",
            place.id
        )));
    }
    if !is_possible() {
        return Err(Failure::usage(format!("attach needs a terminal; without one use: ostler logs -f {}", place.id)));
    }
    Ok(())
}

/// A session that has ended: what was last seen of it, as text.
fn last_seen(context: &Context, place: &Place, view: &View) -> Result<Code> {
    let folder = place.open()?;
    if view.run > 0 {
        match view.mode {
            Mode::Terminal => {
                let at = ostler_view::terminal::now(folder.run(view.run)?.dir())?;
                let rows = at.screen.text();
                let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
                for row in &rows[..used] {
                    say!("{}", ostler_screen::printable(row))?;
                }
            }
            Mode::Headless => {
                let talk = Talk::new(context.style, crate::ui::table::window());
                let mut printer = Printer::new(&folder, Show::Plain, talk, Talking::Together, 1)?;
                printer.print()?;
                printer.finish()?;
            }
        }
    }
    words::say(&words::ended(view));
    Ok(Code::Succeeded)
}
