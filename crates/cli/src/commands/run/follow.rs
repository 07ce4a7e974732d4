//! `ostler run` without `-d`: prints what comes until the session ends or asks something, or until the user leaves.

use super::Watching;
use super::result::Format;
use super::summary::conclude;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::follow::{Left, follow};
use crate::say::tell;
use crate::ui::asking::{UNSEEN, in_a_line};
use crate::ui::called::{called, called_at};
use crate::ui::style::Style;
use ostler_core::event::StopHow;
use ostler_core::outcome::Kind;
use ostler_core::record::{RequestKind, Session};
use ostler_core::view::Phase;
use ostler_engine::request::{self, Answered};
use ostler_engine::{Engine, Place};
use ostler_tui::terminal::{Signal, Signals};
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// How following one session ended.
enum Followed {
    Over(Code),
    /// At a usage limit it was handed over to another agent, which continues in this session.
    ContinuesIn(Place),
}

/// Prints what comes, also from the session in which another agent continues at a usage limit. Ctrl-C interrupts, a
/// second one stops; for a session that has not begun one is enough. The session keeps running after Ctrl-\, SIGTERM,
/// or when the terminal disappears. For the last two the exit code says so.
pub fn to_the_end(context: &Context, place: &Place, session: &Session, watching: Watching) -> Result<Code> {
    let signals = Signals::take(&Signal::LEAVING)?;
    let mut followed = follow_one(context, place, session, watching, &signals)?;
    loop {
        match followed {
            Followed::Over(code) => return Ok(code),
            Followed::ContinuesIn(next) => {
                let session = context.engine.record(&next)?;
                tell!("ostler: {} continues in {}", session.agent, called_at(&next));
                followed = follow_one(context, &next, &session, watching, &signals)?;
            }
        }
    }
}

fn follow_one(
    context: &Context,
    place: &Place,
    session: &Session,
    watching: Watching,
    signals: &Signals,
) -> Result<Followed> {
    let engine = &context.engine;
    let style = Style::detect(std::io::stderr().is_terminal());
    let format = Format::of(engine, place, session, watching)?;
    let mut printer = format.printer(engine, place, session, style)?;
    let mut interrupted = false;
    loop {
        match follow(engine, place, &mut printer, signals.as_fd())? {
            Left::Ended(view) => {
                if view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Failed)
                    && let Some(next) = engine.continued_in(place)?
                {
                    printer.finish()?;
                    return Ok(Followed::ContinuesIn(next));
                }
                let told = printer.ended_with();
                format.conclude(context, place, &view, &mut printer)?;
                if format != Format::Bytes {
                    printer.finish()?;
                }
                return Ok(Followed::Over(conclude(&view, style, told.as_deref())));
            }
            Left::Asks(view) if watching.attended => {
                if let Some(ask) = &view.asking {
                    printer.show_again(ask)?;
                }
                crate::commands::attach::ask_inline(engine, place, &view, style)?;
            }
            Left::Asks(view) => {
                let what = view.asking.as_ref().map(|ask| in_a_line(ask, style, UNSEEN)).unwrap_or_default();
                tell!("ostler: {} asks: {what}", called(&view));
                let question = view.asking.as_ref().is_some_and(|ask| !ask.questions().is_empty());
                let how = if question { "--text \"…\"" } else { "--allow (or --deny)" };
                tell!("ostler: answer it: ostler answer {} {how}; then: ostler wait {}", view.id, view.id);
                format.conclude(context, place, &view, &mut printer)?;
                return Ok(Followed::Over(Code::Asks));
            }
            Left::Called => {
                while let Some(signal) = signals.next()? {
                    if signal != Signal::Interrupt {
                        let words = format!(
                            "\nostler: {} is still running; reattach: ostler attach {1}; wait for its end: ostler wait {1}\n",
                            called_at(place),
                            place.id
                        );
                        // The signal may mean that the terminal is gone.
                        let _ = crate::follow::err(words.as_bytes());
                        // A script must not mistake this for the successful end of the turn. A person who presses
                        // Ctrl-\ knows.
                        let by_hand = signal == Signal::Quit;
                        return Ok(Followed::Over(if by_hand { Code::Succeeded } else { Code::TimedOut }));
                    }
                    interrupt_or_stop(engine, place, &mut interrupted)?;
                }
            }
        }
    }
}

fn interrupt_or_stop(engine: &Engine, place: &Place, interrupted: &mut bool) -> Result<()> {
    let stop = |why: &str| RequestKind::Stop { how: StopHow::Interrupt, grace_ms: 5000, why: why.to_owned() };
    // A session that has not begun has no turn to interrupt.
    let withdrawn = engine.view_without_last(place)?.state == Phase::Queued;
    let kind = match (withdrawn, *interrupted) {
        (true, _) => stop("Ctrl-C"),
        (false, true) => stop("second Ctrl-C"),
        (false, false) => RequestKind::Interrupt,
    };
    let first = !std::mem::replace(interrupted, true) && !withdrawn;
    match request::make(engine, place, kind)? {
        Answered::Accepted if first => tell!("\nostler: interrupted; press Ctrl-C again to stop the session"),
        Answered::Accepted => tell!("\nostler: stopping"),
        Answered::Refused(_) | Answered::Ended(_) => {}
    }
    Ok(())
}
