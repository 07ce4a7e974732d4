//! `ostler run`: start a session and follow it to its end.

mod follow;
mod group;
mod later;
mod piped;
mod prompt;
mod result;
mod summary;
mod words;

pub use group::check_agent_name;
pub use piped::after as with_piped;
pub use prompt::{message_of, read_prompt};
pub use words::{nearest_agent, request as request_of};

use crate::args::{Output, Run};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::record::{Mode, Session};
use ostler_engine::Launched;
use ostler_engine::Place;
use ostler_engine::launch::recorded;
use ostler_engine::rules::For;
use std::io::IsTerminal;

pub fn run(context: &Context, mut args: Run) -> Result<Code> {
    if args.on.is_some() || args.matrix.is_some() {
        return group::run(context, args);
    }
    let mut request = words::request(context, &mut args)?;
    // What is refused because of a mistake in config.toml is reported once, by the refusal.
    context.engine.check_start(&request.start)?;
    context.warn();
    // A recording contains all its messages.
    if !recorded::is_player(&request.agent) {
        request.prompt = request.prompt.map(with_piped).transpose()?;
    }
    let watching = Watching::new(args.detach, args.output);
    check_that_it_can_be_found(watching, args.name.as_deref())?;
    request.attended = watching.attended;
    let mode = request.mode.unwrap_or(Mode::Headless);
    let waits = watching.waits_at_limit() || request.keep || mode == Mode::Terminal;
    request.rules = context.engine.rules(&args.rules.asked(), For { agent: &request.agent, mode, waits })?;
    request.piped = piped::input()?;
    let Launched { place, session } = context.engine.launch(request, &mut crate::say::notice)?;
    sweep(context, place.id);
    after_start(context, &place, &session, watching)
}

/// Archives and deletes old sessions, as set in config.toml. Its errors do not fail the command.
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

/// Refuses to start a session in the background that could not be found again: its id cannot be printed, and it has no
/// name.
pub fn check_that_it_can_be_found(watching: Watching, name: Option<&str>) -> Result<()> {
    if watching.detach && name.is_none() && ostler_engine::process::output_has_no_reader() {
        let words = "standard output is closed, so the session id cannot be printed; open it, or add --name NAME";
        return Err(Failure::usage(words));
    }
    Ok(())
}

/// How a session that has just been started is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watching {
    pub detach: bool,
    /// A person can answer questions here.
    pub attended: bool,
    pub output: Option<Output>,
}

impl Watching {
    pub fn new(detach: bool, output: Option<Output>) -> Watching {
        let attended = !detach && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Watching { detach, attended, output }
    }

    /// Whether the session waits at a usage limit: a person is present, or no command waits for its end.
    pub fn waits_at_limit(self) -> bool {
        self.detach || self.attended
    }

    /// Whether the session can be opened here, for a person to talk to it.
    pub fn may_open(self) -> bool {
        self.attended && self.output.is_none() && super::attach::is_possible()
    }
}

/// Prints the id of a session that has just been started, or shows the session. A session that is kept for further
/// messages is opened for a person, who types them there.
pub fn after_start(context: &Context, place: &Place, session: &Session, watching: Watching) -> Result<Code> {
    if watching.detach {
        say!("{}", place.id).inspect_err(|_| tell!("ostler: session {} is running", place.id))?;
        return Ok(Code::Succeeded);
    }
    if session.mode == Mode::Terminal || (session.keep && watching.may_open()) {
        return super::attach::open(context, place, session.mode, false);
    }
    follow::to_the_end(context, place, session, watching)
}
