//! `ostler resume`: the next run of the same conversation.

mod newest;

use super::attach;
use super::continuing;
use super::run::{Watching, after_start, message_of, with_piped};
use crate::args::Resume as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{notice, say};
use crate::ui::called::called;
use ostler_core::record::Mode;
use ostler_core::view::View;
use ostler_engine::Place;
use ostler_engine::Resume;
use ostler_engine::queues::StartLater;
use ostler_engine::rules::Asked;
use ostler_engine::worktrees;

pub fn run(context: &Context, mut args: Args) -> Result<Code> {
    let worktree = continuing::worktree(context, &mut args.worktree, &mut args.id, &mut args.message);
    let id = args.id.map_or_else(|| newest::choose(context), Ok)?;
    let place = context.engine.select(&id)?;
    if args.now {
        return now(context, &place);
    }
    let watching = Watching::new(args.detach, args.output);
    let message = || message_of(&args.message)?.map(with_piped).transpose();
    let going = Going {
        watching,
        keep: args.keep,
        takeover: args.takeover,
        rules: args.rules.asked(),
        worktree,
        start: StartLater { queue: args.queue.clone(), priority: args.priority.unwrap_or(0), ..StartLater::default() },
    };
    go_on(context, &place, message, going)
}

/// How a session continues.
#[derive(Clone, Debug)]
pub struct Going {
    pub watching: Watching,
    pub keep: bool,
    pub takeover: bool,
    pub rules: Asked,
    /// From now on it works in a worktree of its own.
    pub worktree: Option<worktrees::Asked>,
    /// Its program may wait for a slot of a queue.
    pub start: StartLater,
}

/// Starts the next run of a session. `message`: what it is told; it is read only after the session is known to be
/// resumable.
pub fn go_on(
    context: &Context,
    place: &Place,
    message: impl FnOnce() -> Result<Option<String>>,
    going: Going,
) -> Result<Code> {
    let Going { watching, keep, takeover, rules, worktree, start } = going;
    let mut resumable = context.engine.resumable(place)?;
    let message = message()?;
    if message.is_some() && resumable.view.job.is_some() {
        let words = format!(
            "{} is a job and takes no message; continue it without one: ostler resume {}",
            called(&resumable.view),
            place.id
        );
        return Err(Failure::usage(words));
    }
    if takeover {
        resumable.take_over(&mut notice)?;
    }
    // Without a message, the person at the terminal is attached to the session, whether it runs or has to be started
    // again.
    let opens = message.is_none() && watching.may_open();
    let view = &resumable.view;
    if !view.ended && opens {
        return attach::open(context, place, view.mode, false);
    }
    if view.ended && view.mode == Mode::Terminal {
        check_terminal(place, view, watching)?;
    }
    let waits = watching.waits_at_limit() || keep || opens || view.mode == Mode::Terminal;
    let ended = view.ended;
    // A running session is refused below, whatever its rules are.
    let rules = if ended { Some(resumable.rules(&rules, waits)?) } else { None };
    let attended = watching.attended;
    let keep = keep || opens;
    let start_when = context.engine.start_when(&start)?;
    let request = Resume { message, keep, takeover, attended, rules, worktree, start_when };
    let resumed = resumable.start(request, &mut notice)?;
    after_start(context, place, &resumed.session, watching)
}

/// Makes a waiting session continue at once.
fn now(context: &Context, place: &Place) -> Result<Code> {
    context.engine.go_on(place)?;
    say!("{}: continues now", place.id)?;
    Ok(Code::Succeeded)
}

fn check_terminal(place: &Place, view: &View, watching: Watching) -> Result<()> {
    if watching.output.is_some() {
        return Err(Failure::usage("--output is for sessions without a terminal; remove it"));
    }
    if watching.detach {
        return Ok(());
    }
    if !attach::is_possible() {
        return Err(Failure::usage(format!(
            "{} needs a terminal to show it on; start it without one: ostler resume -d {}",
            called(view),
            view.id
        )));
    }
    attach::check_place(place)
}
