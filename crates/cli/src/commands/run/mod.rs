//! `ostler run`: start a session and follow it to its end.

mod asked;
mod default_agent;
mod piped;
mod recorded;
mod result;
mod summary;

pub use asked::{message_of, nearest_agent};
pub use piped::after as with_piped;

use crate::args::{Output, Run};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::follow::{Left, follow};
use crate::say::{say, tell};
use crate::ui::asking::{UNSEEN, in_a_line};
use crate::ui::called::{called, called_at};
use crate::ui::style::Style;
use asked::{Asked, check, describe};
use ostler_core::event::StopHow;
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::record::{Mode, Session, Want};
use ostler_engine::Engine;
use ostler_engine::owners::refuse_others;
use ostler_engine::prepare::{Prepared, prepare};
use ostler_engine::request::{self, Answered};
use ostler_keeper::launch::{Launch, launch};
use ostler_store::home::Place;
use ostler_sys::signals::Signals;
use result::Format;
use rustix::fd::AsFd;
use rustix::process::Signal;
use std::io::IsTerminal;
use summary::conclude;

pub fn run(context: &Context, args: Run) -> Result<Code> {
    let mut asked = check(context, &args)?;
    context.warn();
    if !asked.agent.starts_with(ostler_agents::replay::PREFIX) {
        asked.prompt = asked.prompt.map(with_piped).transpose()?;
    }
    let watching = Watching::new(args.detach, args.output);
    check_that_it_can_be_found(watching, args.name.as_deref())?;
    // Of several who want one name at once, one gets it: nobody else looks until the session stands.
    let names = args.name.as_ref().map(|_| context.engine.home.lock_names()).transpose()?;
    let session = describe(context, args, &asked, watching.attended)?;
    let place = start(context, &session, asked)?;
    drop(names);
    sweep(context, place.id);
    after_start(context, &place, &session, watching)
}

/// Puts away and deletes what is old, as config.toml wants it. It never fails the command.
fn sweep(context: &Context, started: SessionId) {
    let said = |done: &str, count: usize, setting: &str| {
        if count > 0 {
            tell!("ostler: {done} {} ({setting} in config.toml)", counted(count as u64, "session", "sessions"));
        }
    };
    match context.engine.sweep_when_due(started, &mut crate::say::notice) {
        Ok(swept) => {
            said("archived", swept.archived, "archive_after");
            said("purged", swept.purged, "purge_after");
        }
        Err(error) => tell!("ostler: automatic archiving (config.toml) failed: {}", Failure::from(error)),
    }
}

/// Refuses to start in the background what nobody could find again: its id cannot be printed, and it has no name.
pub fn check_that_it_can_be_found(watching: Watching, name: Option<&str>) -> Result<()> {
    if watching.detach && name.is_none() && ostler_sys::entry::nobody_reads_output() {
        let words = "standard output is closed, so the session id cannot be printed; open it, or add --name NAME";
        return Err(Failure::usage(words));
    }
    Ok(())
}

/// How a session that has just been started is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watching {
    pub detach: bool,
    /// A person is there who can answer questions.
    pub attended: bool,
    pub output: Option<Output>,
}

impl Watching {
    pub fn new(detach: bool, output: Option<Output>) -> Watching {
        let attended = !detach && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Watching { detach, attended, output }
    }

    /// Whether the session can be opened here, for a person to talk to it.
    pub fn may_open(self) -> bool {
        self.attended && self.output.is_none() && super::attach::is_possible()
    }
}

/// Leaves a session that has just been started to itself, or shows it. One that is kept for further messages is opened for a
/// person: that is where they are typed.
pub fn after_start(context: &Context, place: &Place, session: &Session, watching: Watching) -> Result<Code> {
    if watching.detach {
        say!("{}", place.id).inspect_err(|_| tell!("ostler: session {} is running", place.id))?;
        return Ok(Code::Succeeded);
    }
    if session.mode == Mode::Terminal || (session.keep && watching.may_open()) {
        return super::attach::open(context, place, session.mode, false);
    }
    follow_to_the_end(context, place, session, watching)
}

fn start(context: &Context, session: &Session, asked: Asked) -> Result<Place> {
    if let Some(conversation) = &asked.conversation {
        refuse_others(&context.engine.environment, &session.agent, conversation, None)?;
    }
    let resume = asked.conversation.is_some();
    let native_id = asked.conversation.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let Prepared { record, files, environment } = prepare(&context.engine, session, 1, &native_id, resume)?;
    let messages = asked.prompt.into_iter().chain(asked.further);
    let prompts: Vec<_> = messages.map(|text| context.engine.wish(1, Want::Message { text, now: false })).collect();
    let reads = session.mode == Mode::Headless && !record.plan.has_input();
    let piped = if reads { piped::input()? } else { None };
    let launched = Launch { session, run: &record, prompts: &prompts, files: &files, piped, environment: &environment };
    let place = launch(&context.engine.home, launched)?;
    // A refusal speaks for itself, and before the first session there is no folder to ask.
    warn_when_low(context);
    Ok(place)
}

fn warn_when_low(context: &Context) {
    const LOW: u64 = 64 << 20;
    let free = ostler_sys::dir::Dir::open(context.engine.home.root()).and_then(ostler_sys::dir::free_space);
    if let Ok(free) = free
        && free < LOW
    {
        tell!(
            "ostler: only {} of disk space left for {}",
            crate::ui::time::size(free),
            context.engine.home.root().display()
        );
    }
}

/// Prints what comes. Ctrl-C interrupts, a second one stops; Ctrl-\, a vanished terminal and SIGTERM leave it running. Of the
/// last two the exit code says so.
fn follow_to_the_end(context: &Context, place: &Place, session: &Session, watching: Watching) -> Result<Code> {
    let signals = Signals::take(&[Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM])?;
    let folder = place.open()?;
    let style = Style::detect(std::io::stderr().is_terminal());
    let format = Format::of(&folder, session, watching)?;
    let mut printer = format.printer(&folder, session, style)?;
    let mut interrupted = false;
    loop {
        match follow(place, &mut printer, Some(signals.as_fd()), false)? {
            Left::Ended(view) => {
                let told = printer.ended_with();
                format.conclude(context, place, &view, &mut printer)?;
                if format != Format::Bytes {
                    printer.finish()?;
                }
                return Ok(conclude(&view, style, told.as_deref()));
            }
            Left::Asks(view) if watching.attended => {
                if let Some(ask) = &view.asking {
                    printer.show_again(ask)?;
                }
                super::attach::ask_inline(&context.engine, place, &view, style)?;
            }
            Left::Asks(view) => {
                let what = view.asking.as_ref().map(|ask| in_a_line(ask, style, UNSEEN)).unwrap_or_default();
                tell!("ostler: {} asks: {what}", called(&view));
                let question = view.asking.as_ref().is_some_and(|ask| !ask.questions().is_empty());
                let how = if question { "--text \"…\"" } else { "--allow (or --deny)" };
                tell!("ostler: answer it: ostler answer {} {how}; then: ostler wait {}", view.id, view.id);
                format.conclude(context, place, &view, &mut printer)?;
                return Ok(Code::Asks);
            }
            Left::Called => {
                while let Some(signal) = signals.next()? {
                    if signal != Signal::INT.as_raw() {
                        let words = format!(
                            "\nostler: {} is still running; reattach: ostler attach {1}; wait for its end: ostler wait {1}\n",
                            called_at(place),
                            place.id
                        );
                        // It may be the terminal that is gone.
                        let _ = crate::follow::err(words.as_bytes());
                        // A script may not take this for the end of the turn, and a good one; a person who leaves knows.
                        let by_hand = signal == Signal::QUIT.as_raw();
                        return Ok(if by_hand { Code::Succeeded } else { Code::TimedOut });
                    }
                    interrupt_or_stop(&context.engine, place, &mut interrupted)?;
                }
            }
        }
    }
}

fn interrupt_or_stop(engine: &Engine, place: &Place, interrupted: &mut bool) -> Result<()> {
    let want = if *interrupted {
        Want::Stop { how: StopHow::Interrupt, grace_ms: 5000, why: "second Ctrl-C".to_owned() }
    } else {
        Want::Interrupt
    };
    let first = !std::mem::replace(interrupted, true);
    match request::make(engine, place, want)? {
        Answered::Accepted if first => tell!("\nostler: interrupted; press Ctrl-C again to stop the session"),
        Answered::Accepted => tell!("\nostler: stopping"),
        Answered::Refused(_) | Answered::Ended(_) => {}
    }
    Ok(())
}
