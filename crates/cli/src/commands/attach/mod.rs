//! `ostler attach`: show a session and take keys for it, and leave it without disturbing it.
//!
//! A terminal session gets the person's whole terminal ([`terminal`]), an agent without one a chat view ([`chat`]), a
//! command its output ([`command`]). Nothing on the screen depends on a keeper staying alive, and when the person's
//! terminal fails, this only detaches.

mod ask;
mod canvas;
mod chat;
mod chat_terminal;
mod command;
mod detach_key;
mod pick;
mod terminal;
mod words;

pub use ask::{Inline, ask_inline, longer};
pub use pick::{choose, pick};

use crate::args::Attach;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::follow::{Printer, Show, Talking};
use crate::say::say;
use crate::ui::conversation::Talk;
use ostler_core::record::Mode;
use ostler_core::view::View;
use ostler_engine::Place;
use ostler_engine::content::{Kind, Runs};
use ostler_tui::frame;
use ostler_tui::terminal::TerminalGuard;

pub fn run(context: &Context, args: &Attach) -> Result<Code> {
    let id = match &args.id {
        Some(id) => id.clone(),
        None => {
            pick(context, "attach", "no session is running; list ended ones with: ostler ls -a", |view| !view.ended)?
        }
    };
    let place = context.engine.select(&id)?;
    // Its last output is not needed here: it is about to be shown.
    let view = context.engine.view_without_last(&place)?;
    if view.ended {
        return last_seen(context, &place, &context.engine.view(&place)?);
    }
    open(context, &place, view.mode, args.read_only)
}

/// What stays on the terminal when a session is no longer shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// A line about the session, and the end of a conversation.
    Words,
    /// Nothing: the caller draws the whole screen next.
    Nothing,
}

/// How showing a session ended.
pub struct Left {
    pub code: Code,
    /// The process was asked to exit, or its terminal is gone.
    pub exits: bool,
}

impl Left {
    fn with(code: Code) -> Left {
        Left { code, exits: false }
    }

    fn exiting() -> Left {
        Left { code: Code::Succeeded, exits: true }
    }
}

impl Leaves {
    fn say(self, words: &str) {
        match self {
            Leaves::Words => words::say(words),
            Leaves::Nothing => {}
        }
    }
}

/// Shows a running session, in the way that fits its kind. The terminal is restored also when this process is killed.
pub fn open(context: &Context, place: &Place, mode: Mode, read_only: bool) -> Result<Code> {
    check_place(place)?;
    let leave = [ostler_screen::Screen::reset(), frame::LEAVE.as_bytes()].concat();
    let guard = TerminalGuard::post(&leave)?;
    guard.taken();
    let left = open_and_leave(context, place, mode, read_only, Leaves::Words);
    guard.given_back();
    left.map(|left| left.code)
}

/// The same for a caller that draws again afterwards and has its own guard, such as the dashboard.
pub fn open_and_leave(context: &Context, place: &Place, mode: Mode, read_only: bool, leaves: Leaves) -> Result<Left> {
    check_place(place)?;
    match mode {
        Mode::Terminal => terminal::run(context, place, read_only, leaves),
        Mode::Headless => match context.engine.kind(place)? {
            Kind::Conversation => chat::run(context, place, read_only, leaves),
            Kind::Terminal | Kind::Command => command::run(context, place, read_only, leaves),
        },
    }
}

/// Runs something that prints on the alternate screen, so that none of its output stays.
pub fn on_a_screen_of_its_own<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    crate::say::text("\x1b[?1049h\x1b[2J\x1b[H")?;
    let ran = run();
    crate::say::text("\x1b[0m\x1b[?1049l")?;
    ran
}

/// Whether there is a terminal to show anything on.
pub fn is_possible() -> bool {
    ostler_tui::terminal::is_there()
}

/// Refuses to attach where it cannot work: without a terminal, or inside the session itself.
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
    if view.run > 0 {
        match view.mode {
            Mode::Terminal => {
                for row in context.engine.screen_text(place)? {
                    say!("{}", ostler_screen::printable(&row))?;
                }
            }
            Mode::Headless => {
                let talk = Talk::new(context.style, crate::ui::table::window());
                let mut printer =
                    Printer::new(&context.engine, place, Show::Plain, talk, Talking::Together, Runs::All)?;
                printer.print()?;
                printer.finish()?;
            }
        }
    }
    words::say(&words::ended(view));
    Ok(Code::Succeeded)
}
