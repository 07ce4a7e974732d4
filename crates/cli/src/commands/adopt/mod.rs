//! `ostler adopt`: a conversation that was begun outside ostler becomes a session.
//!
//! * `find`: which conversation is meant. `pick`: which of them a person wants.
//! * `strangers`: nobody else may be at it; whoever is may be ended properly first.
//! * `keep`: makes the session, whole or not at all, without starting anything.
//!
//! What is started afterwards is the next run of that session, as `resume` starts it.

mod find;
mod keep;
mod pick;
mod strangers;

use super::ls::tilde;
use super::resume::{Going, go_on};
use super::run::{Watching, check_that_it_can_be_found, message_of, with_piped};
use crate::args::Adopt;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::table::cut;
use find::Found;
use ostler_core::limits::counted;
use ostler_core::record::Mode;
use ostler_store::home::Place;
use std::path::Path;

/// What is to happen once it is a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    Start(Mode),
}

pub fn run(context: &Context, args: Adopt) -> Result<Code> {
    let watching = Watching::new(args.detach, args.output);
    let word = match &args.conversation {
        Some(word) => word.clone(),
        None => pick::choose(context)?,
    };
    let mut found = find::find(context, &word)?;
    let strangers = strangers::at(context, &found.stored, args.takeover)?;
    if strangers.is_empty() {
        refuse_what_cannot_go_on(&found)?;
    } else {
        // What else there is to know of it may not be written yet.
        refuse_without_folder(&found)?;
    }
    let message = message_of(&args.message)?.map(with_piped).transpose()?;
    let then = what_then(&args, message.is_some(), watching)?;
    check_that_it_can_be_found(watching, args.name.as_deref())?;
    if let Some(name) = &args.name {
        context.engine.check_name(name)?;
    }
    check_agent(context, &found, &args)?;
    if !strangers.is_empty() {
        strangers::end(context, &found, &strangers)?;
        found.read_again()?;
        refuse_what_cannot_go_on(&found)?;
    }
    let (place, session) = keep::keep(context, &found, &args, then, watching.attended)?;
    tell!("ostler: adopted as {}: {}", place.id, describe(&found));
    match then {
        Then::Nothing => {
            say!("{}", place.id)?;
            Ok(Code::Succeeded)
        }
        Then::Start(_) => {
            let going = Going { watching, keep: session.keep, takeover: false };
            go_on(context, &place, || Ok(message), going).map_err(|failure| not_started(&place, failure))
        }
    }
}

fn what_then(args: &Adopt, message: bool, watching: Watching) -> Result<Then> {
    let opens = !message && watching.may_open();
    if args.terminal && args.output.is_some() {
        return Err(Failure::usage("--output is for sessions without a terminal; remove it"));
    }
    let then = match (args.terminal, message || args.keep, opens) {
        (true, _, _) => Then::Start(Mode::Terminal),
        (false, true, _) => Then::Start(Mode::Headless),
        // A person had it in a terminal before, and gets it back there.
        (false, false, true) => Then::Start(Mode::Terminal),
        (false, false, false) => Then::Nothing,
    };
    if then == Then::Start(Mode::Terminal) && !args.detach && !super::attach::is_possible() {
        return Err(Failure::usage("-t needs a terminal to show it on; add -d to start it without one"));
    }
    Ok(then)
}

/// Refuses what the agent would refuse, before anything is made or ended.
fn refuse_what_cannot_go_on(found: &Found) -> Result<()> {
    let (agent, id) = (found.stored.agent, &found.stored.native_id);
    if found.about.messages == 0 {
        return Err(Failure::usage(format!("{id} has no messages; start a new conversation: ostler run {agent}")));
    }
    if found.about.cwd.is_none() {
        return Err(Failure::usage(format!(
            "the transcript of {id} does not name its folder; continue it with {agent} itself"
        )));
    }
    refuse_without_folder(found)
}

/// Agents go on with a conversation in the folder in which it was begun.
fn refuse_without_folder(found: &Found) -> Result<()> {
    let (agent, id) = (found.stored.agent, &found.stored.native_id);
    match found.about.cwd.as_deref().filter(|cwd| !Path::new(cwd).is_dir()) {
        Some(gone) => Err(Failure::usage(format!(
            "the folder of {id} is gone: {}; {agent} continues a conversation only there: create the folder and try again",
            tilde(gone)
        ))),
        None => Ok(()),
    }
}

/// Refuses arguments that would work against us, as `run` does.
fn check_agent(context: &Context, found: &Found, args: &Adopt) -> Result<()> {
    let agent = ostler_agents::find(found.stored.agent).ok_or_else(|| Failure::ours("an agent is missing"))?;
    if let Some(why) = agent.conflicts(&args.arguments) {
        return Err(Failure::usage(why));
    }
    if agent.named_conversation(&args.arguments).is_some() {
        return Err(Failure::usage("the conversation is already named; remove it from the arguments behind --"));
    }
    ostler_engine::prepare::check_installed(agent)?;
    context.engine.home.open_or_make(&context.engine.home.sessions())?;
    Ok(())
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

/// It is a session by now, and stays one.
fn not_started(place: &Place, failure: Failure) -> Failure {
    let words = format!("{}; adopted as {}, but not started; try again: ostler resume {1}", failure.words, place.id);
    Failure::new(failure.code, words)
}
