//! `ostler answer`: answer what a session asks.

use super::attach::{Inline, ask_inline, pick};
use crate::args::Answer;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::asking::{UNSEEN, how_to_answer, in_a_line};
use crate::ui::called::called_at;
use crate::ui::conversation::Talk;
use crate::ui::style::Style;
use ostler_core::asking::Shown;
use ostler_core::fact::Ask;
use ostler_core::record::Mode;
use ostler_core::view::View;
use ostler_engine::Place;
use ostler_engine::send;
use std::io::IsTerminal;

pub fn run(context: &Context, args: Answer) -> Result<Code> {
    let id = match &args.id {
        Some(id) => id.clone(),
        None => pick(context, "answer", "no session is asking anything; list them with: ostler ls", |view| {
            view.asking.is_some()
        })?,
    };
    let place = context.engine.select(&id)?;
    let view = context.engine.view(&place)?;
    if !args.allow && !args.deny && args.text.is_none() && args.request.is_none() && view.asking.is_some() {
        return ask_person(context, &place, &view, args.id.is_none());
    }
    // The question is fixed now, so that the answer never goes to the next question.
    let asking = view.asking;
    let request = args.request.or_else(|| asking.as_ref().map(|ask| ask.request.clone()));
    let Some(request) = request else {
        return Err(Failure::new(
            Code::Failed,
            format!("{} is not asking anything; see ostler show {}", called_at(&place), place.id),
        ));
    };
    let asking = asking.filter(|ask| ask.request == request);
    let is_question = asking.as_ref().is_some_and(|ask| !ask.questions().is_empty());
    let allow = match (args.allow, args.deny, &args.text) {
        (_, true, _) => false,
        (_, false, Some(_)) if is_question => true,
        (true, false, Some(_)) => {
            return Err(Failure::usage(
                "--allow takes no --text; to say what to do instead, use --text alone or --deny --text",
            ));
        }
        (true, false, None) if is_question => {
            return Err(Failure::usage(format!(
                "it asks a question in words; answer it: ostler answer {} --text \"…\"",
                place.id
            )));
        }
        (true, false, None) => true,
        // Text alone denies the permission and is the reason.
        (false, false, Some(_)) => false,
        (false, false, None) => {
            return Err(Failure::usage("an answer is missing; add --allow, --deny or --text \"…\""));
        }
    };
    context.engine.answer(&place, send::Answer { request, allow, always: args.always, text: args.text })?;
    tell_verdict(&place, asking.as_ref(), allow, args.always)?;
    Ok(Code::Succeeded)
}

/// Shows the question in full and, at a terminal, asks the person for the answer. `found`: the person has not named the
/// session.
fn ask_person(context: &Context, place: &Place, view: &View, found: bool) -> Result<Code> {
    let Some(ask) = &view.asking else {
        return Ok(Code::Succeeded);
    };
    let attended = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if view.mode == Mode::Terminal || !attended {
        let question = in_a_line(ask, Style { colour: false }, UNSEEN);
        return Err(Failure::usage(format!("{} asks: {question}; answer: {}", called_at(place), how_to_answer(view))));
    }
    if found {
        tell!("ostler: {} asks", called_at(place));
    }
    let columns = ostler_engine::process::window(std::io::stderr()).map(|(_, columns)| usize::from(columns));
    tell!("{}", Talk::new(context.style, columns).question(ask).trim_end());
    match ask_inline(&context.engine, place, view, context.style)? {
        Inline::Answered(answer) => {
            tell_verdict(place, Some(ask), answer.allow, answer.always)?;
            Ok(Code::Succeeded)
        }
        Inline::Settled => {
            tell!("ostler: {} is no longer asking this", called_at(place));
            Ok(Code::Succeeded)
        }
        Inline::Refused => Ok(Code::Failed),
        Inline::Called => {
            Err(Failure::new(Code::Asks, format!("{} is still asking; nothing was answered", called_at(place))))
        }
    }
}

/// What was decided, and about what.
fn tell_verdict(place: &Place, ask: Option<&Ask>, allow: bool, always: bool) -> Result<()> {
    let is_question = ask.is_some_and(|ask| !ask.questions().is_empty());
    let verdict = match (allow, always) {
        (true, true) => "allowed, and this kind for the rest of the run",
        (true, false) if is_question => "answered",
        (true, false) => "allowed",
        (false, _) => "denied",
    };
    let what = ask.map(|ask| format!(": {}", Shown::of(ask).line(UNSEEN).asked)).unwrap_or_default();
    say!("{}: {verdict}{what}", called_at(place))
}
