//! `ostler adopt`: a conversation that was started outside ostler becomes a session. `pick`: a person chooses the
//! conversation.

mod pick;

use super::ls::tilde;
use super::resume::{Going, go_on};
use super::run::{Watching, check_that_it_can_be_found, message_of, with_piped};
use crate::args::Adopt as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{notice, say, tell};
use crate::ui::table::cut;
use ostler_core::limits::counted;
use ostler_core::record::Mode;
use ostler_engine::Place;
use ostler_engine::adopt::Found;
use ostler_engine::queues::StartLater;
use ostler_engine::rules::Asked;
use ostler_engine::{Adopt, Launched};

/// What to do after the conversation has become a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    Start(Mode),
}

pub fn run(context: &Context, args: Args) -> Result<Code> {
    let watching = Watching::new(args.detach, args.output);
    let word = match &args.conversation {
        Some(word) => word.clone(),
        None => pick::choose(context)?,
    };
    let adoptable = context.engine.adoptable(&word, args.takeover, &mut notice)?;
    let message = message_of(&args.message)?.map(with_piped).transpose()?;
    let then = what_then(&args, message.is_some(), watching)?;
    check_that_it_can_be_found(watching, args.name.as_deref())?;
    let request = Adopt {
        name: args.name,
        mode: match then {
            Then::Nothing => Mode::Headless,
            Then::Start(mode) => mode,
        },
        keep: args.keep,
        model: args.model,
        limits: args.limits.asked(),
        arguments: args.arguments,
        attended: watching.attended,
    };
    let (Launched { place, session }, found) = adoptable.adopt(&request, &mut notice)?;
    tell!("ostler: adopted as {}: {}", place.id, describe(&found));
    match then {
        Then::Nothing => {
            say!("{}", place.id)?;
            Ok(Code::Succeeded)
        }
        Then::Start(_) => {
            let going = Going {
                watching,
                keep: session.keep,
                takeover: false,
                rules: Asked::default(),
                worktree: None,
                start: StartLater::default(),
            };
            go_on(context, &place, || Ok(message), going).map_err(|failure| not_started(&place, failure))
        }
    }
}

fn what_then(args: &Args, message: bool, watching: Watching) -> Result<Then> {
    let opens = !message && watching.may_open();
    if args.terminal && args.output.is_some() {
        return Err(Failure::usage("--output is for sessions without a terminal; remove it"));
    }
    let then = match (args.terminal, message || args.keep, opens) {
        (true, _, _) => Then::Start(Mode::Terminal),
        (false, true, _) => Then::Start(Mode::Headless),
        // The conversation was used in a terminal before, so the person continues it in a terminal.
        (false, false, true) => Then::Start(Mode::Terminal),
        (false, false, false) => Then::Nothing,
    };
    if then == Then::Start(Mode::Terminal) && !args.detach && !super::attach::is_possible() {
        return Err(Failure::usage("-t needs a terminal to show it on; add -d to start it without one"));
    }
    Ok(then)
}

/// `AGENT 3f8e0c1a…, ~/work, "fix the parser", 12 messages`.
fn describe(found: &Found) -> String {
    let prompt = found.about.prompt.as_deref().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    let title = prompt.map(|line| format!(", \"{}\"", cut(&ostler_screen::printable(line.trim()), 60)));
    format!(
        "{} {}, {}{}, {}",
        found.stored.agent,
        found.stored.native_id,
        found.about.cwd.as_deref().map(tilde).unwrap_or_default(),
        title.unwrap_or_default(),
        counted(found.about.messages, "message", "messages")
    )
}

/// Only the start failed: the conversation has become a session and stays one.
fn not_started(place: &Place, failure: Failure) -> Failure {
    let words = format!("{}; adopted as {}, but not started; try again: ostler resume {1}", failure.words, place.id);
    Failure::new(failure.code, words)
}
