//! `ostler wait`: block, without polling, until sessions have reached a state.

use crate::args::{Until, Wait};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::asking::{UNSEEN, how_to_answer, in_a_line};
use crate::ui::style::Style;
use crate::ui::time::parse_duration;
use ostler_core::fact::Verdict;
use ostler_core::outcome::Kind;
use ostler_core::view::{Phase, View};
use ostler_engine::wait::{self, Over, Reached, Waited};
use std::time::Instant;

pub fn run(context: &Context, args: &Wait) -> Result<Code> {
    let duration = |text: &Option<String>| text.as_deref().map(parse_duration).transpose().map_err(Failure::usage);
    let limit = duration(&args.timeout)?.or(duration(&args.poll)?);
    // A group has ended when its job has ended, even while members do not exist yet.
    let to_the_end = args.until == Until::Ended && !args.any;
    let select = || match to_the_end {
        true => context.engine.select_to_the_end(&args.ids),
        false => context.engine.select_all(&args.ids),
    };
    let mut places = select()?;
    if args.until == Until::Asking && args.through_questions {
        return Err(Failure::usage("--until asking waits for a question; remove --through-questions"));
    }
    let until = match args.until {
        Until::Ended => wait::Until::Ended,
        Until::Turn => wait::Until::Turn,
        Until::Asking => wait::Until::Asking,
    };
    let deadline = limit.map(|limit| Instant::now() + limit);
    let mut wait =
        wait::Wait { until, any: args.any, through_questions: args.through_questions, limit, last: args.json };
    let (over, waited) = loop {
        // For each session its folder and a connection to its keeper, and some more for reading.
        ostler_engine::process::allow_descriptors(2 * places.len() as u64 + 128);
        let before = places.len();
        let (over, waited) = context.engine.wait(places, &wait)?;
        places = if over == Over::Reached && to_the_end { select()? } else { Vec::new() };
        // More places than before: members of a group were started meanwhile, and are waited for.
        if places.len() <= before {
            break (over, waited);
        }
        wait.limit = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    };
    match over {
        Over::Reached => report(args, &waited),
        Over::Asks => report_questions(args, &waited),
        Over::TimeIsUp => time_is_up(args, &waited),
    }
}

/// The exit code for what a session has reached.
fn code(waited: &Waited) -> Option<Code> {
    Some(match waited.reached.as_ref()? {
        Reached::Ended => waited.view.outcome.as_ref().map_or(Code::Succeeded, Code::of),
        Reached::Asking => Code::Asks,
        Reached::Turn(None | Some(Verdict::Succeeded)) => Code::Succeeded,
        Reached::Turn(Some(Verdict::Failed)) => Code::Failed,
        Reached::Turn(Some(Verdict::Interrupted)) => Code::Stopped,
    })
}

/// Prints what it asks, and how to answer.
pub fn report_question(view: &View) -> Result<()> {
    let Some(ask) = &view.asking else {
        return Ok(());
    };
    let question = in_a_line(ask, Style { colour: false }, UNSEEN);
    say!("{} status=asking: {question}; answer: {}", view.id, how_to_answer(view))
}

/// Prints the sessions that have ended and those that ask, for the latter also how to answer.
fn report_questions(args: &Wait, waited: &[Waited]) -> Result<Code> {
    for one in waited.iter().filter(|one| one.asks || one.reached.is_some()) {
        let view = &one.view;
        match &view.asking {
            _ if args.json => say!("{}", serde_json::to_string(view).unwrap_or_default())?,
            Some(_) if one.asks => report_question(view)?,
            Some(_) | None => say!("{}", line(view))?,
        }
    }
    Ok(Code::Asks)
}

fn report(args: &Wait, waited: &[Waited]) -> Result<Code> {
    for one in waited.iter().filter(|one| one.reached.is_some() || !args.any) {
        match one.reached {
            _ if args.json => say!("{}", serde_json::to_string(&one.view).unwrap_or_default())?,
            Some(Reached::Asking) => report_question(&one.view)?,
            Some(Reached::Ended | Reached::Turn(_)) | None => say!("{}", line(&one.view))?,
        }
    }
    let code = worst(waited.iter().filter_map(code));
    // With --poll the exit code 0 can mean "still running", and a script must not mistake a lost session for that.
    Ok(if args.poll.is_some() && code == Code::Lost { Code::TimedOut } else { code })
}

/// Of several results the most serious, which a script must not miss.
fn worst(codes: impl Iterator<Item = Code>) -> Code {
    let rank = |code: &Code| match code {
        Code::Succeeded => 0,
        Code::Asks => 1,
        Code::NotSaved => 2,
        Code::Stopped => 3,
        Code::Failed => 4,
        Code::Lost => 5,
        Code::Usage | Code::NoSession | Code::Refused | Code::TimedOut | Code::Ours => 6,
    };
    codes.max_by_key(rank).unwrap_or(Code::Succeeded)
}

fn time_is_up(args: &Wait, waited: &[Waited]) -> Result<Code> {
    for one in waited {
        let view = &one.view;
        if args.json {
            say!("{}", serde_json::to_string(view).unwrap_or_default())?;
        } else if view.ended || one.reached.is_some() {
            say!("{}", line(view))?;
        } else if args.poll.is_some() && is_gone(view) {
            say!(
                "{} status=ending; its process is gone and its outcome is not written yet; wait again: ostler wait {}",
                view.id,
                view.id
            )?;
        } else if args.poll.is_some() {
            say!(
                "{} status=alive state={} quiet={}s; wait again: ostler wait {}",
                view.id,
                view.state.word(),
                view.quiet_s,
                view.id
            )?;
        } else {
            say!("{} state={} quiet={}s; still alive when the time was up", view.id, view.state.word(), view.quiet_s)?;
        }
    }
    let ended = worst(waited.iter().filter_map(code));
    let gone = waited.iter().any(|one| one.reached.is_none() && is_gone(&one.view));
    Ok(match (args.poll.is_some(), ended) {
        (true, Code::Succeeded) if !gone => Code::Succeeded,
        (true, Code::Succeeded) | (false, _) => Code::TimedOut,
        (true, other) => other,
    })
}

/// No process of it is left, and its outcome is not written yet. An agent with one process per message has no process
/// between two messages; that is not this case.
fn is_gone(view: &View) -> bool {
    !view.alive && view.state == Phase::Stopping
}

fn line(view: &View) -> String {
    let words = match &view.outcome {
        Some(outcome) => format!("{} status={} cause={:?}", view.id, outcome.kind.word(), outcome.cause),
        None => format!("{} state={}{}", view.id, view.state.word(), turn_words(view)),
    };
    ostler_screen::printable(&words).into_owned()
}

/// How the last turn of a running session went: what `--until turn` waits for.
fn turn_words(view: &View) -> String {
    let Some(turn) = &view.last_turn else {
        return String::new();
    };
    let reason = turn.reason.as_ref().map(|reason| format!(" reason={reason:?}")).unwrap_or_default();
    format!(" turn={}{reason}", Kind::from(turn.verdict).word())
}
