//! `ostler resume`: the next run of the same conversation.

mod newest;

use super::attach;
use super::run::{Watching, after_start, message_of, with_piped};
use crate::args::Resume as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::notice;
use crate::ui::called::called;
use ostler_core::record::Mode;
use ostler_core::view::View;
use ostler_engine::Place;
use ostler_engine::Resume;

pub fn run(context: &Context, args: Args) -> Result<Code> {
    let id = args.id.map_or_else(|| newest::choose(context), Ok)?;
    let place = context.engine.select(&id)?;
    let watching = Watching::new(args.detach, args.output);
    let message = || message_of(&args.message)?.map(with_piped).transpose();
    go_on(context, &place, message, Going { watching, keep: args.keep, takeover: args.takeover })
}

/// How a session goes on.
#[derive(Clone, Copy, Debug)]
pub struct Going {
    pub watching: Watching,
    pub keep: bool,
    pub takeover: bool,
}

/// Starts the next run of a session. `message`: what it is told, read only once it is known that there is one to tell it to.
pub fn go_on(
    context: &Context,
    place: &Place,
    message: impl FnOnce() -> Result<Option<String>>,
    going: Going,
) -> Result<Code> {
    let Going { watching, keep, takeover } = going;
    let mut resumable = context.engine.resumable(place)?;
    let message = message()?;
    if takeover {
        resumable.take_over(&mut notice)?;
    }
    // A person who says nothing wants to sit down at it, whether it runs or has to be started again.
    let opens = message.is_none() && watching.may_open();
    let view = &resumable.view;
    if !view.ended && opens {
        return attach::open(context, place, view.mode, false);
    }
    if view.ended && view.mode == Mode::Terminal {
        check_terminal(place, view, watching)?;
    }
    let request = Resume { message, keep: keep || opens, takeover, attended: watching.attended };
    let resumed = resumable.start(request, &mut notice)?;
    after_start(context, place, &resumed.session, watching)
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
