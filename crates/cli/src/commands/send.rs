//! `ostler send`: a durable message, delivered at the end of the running turn.

mod reply;

use super::run::message_of;
use crate::args::Send;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::{called, called_at};
use crate::ui::table::{Cell, lay_out};
use ostler_core::record::{Mode, Speaks, Want, Wish};
use ostler_engine::Engine;
use ostler_engine::request::{self, Answered, look_and_record};
use ostler_store::home::Place;
use ostler_store::{inbox, journal, look};
use serde_json::json;

pub fn run(context: &Context, args: Send) -> Result<Code> {
    let place = context.engine.home.select(&args.id)?;
    if args.list {
        return list(&place, args.json);
    }
    if let Some(n) = args.withdraw {
        return withdraw(&context.engine, &place, n);
    }
    if let Some(n) = args.again {
        return again(&context.engine, &place, n);
    }
    let message = message_of(&args.message)?.unwrap_or_default();
    send(&context.engine, &place, Want::Message { text: message, now: args.now }, args.wait.then_some(args.json))
}

/// `wait`: for the reply, and whether that is wanted as JSON.
fn send(engine: &Engine, place: &Place, want: Want, wait: Option<bool>) -> Result<Code> {
    let folder = place.open()?;
    let number = folder.newest_run()?;
    let plan = if number == 0 { None } else { Some(folder.run(number)?.record()?.plan) };
    if plan.as_ref().is_none_or(|plan| plan.mode == Mode::Headless && plan.speaks == Speaks::Bytes) {
        return Err(Failure::new(
            Code::Failed,
            format!(
                "{} is a command and takes no messages; to type into it, start it with: ostler run -t",
                called_at(place)
            ),
        ));
    }
    refuse_archived(place)?;
    let view = look_and_record(place)?;
    if view.ended && view.agent == "command" {
        return Err(Failure::new(
            Code::Failed,
            format!("{} has ended, so there is no terminal to type into", called(&view)),
        ));
    }
    let Some(as_json) = wait else {
        return accepted(place, request::make_lasting(engine, place, want)?);
    };
    if plan.is_some_and(|plan| !plan.speaks.converses()) {
        let words = format!("{} does not report the end of its turns; send without --wait", called(&view));
        return Err(Failure::usage(words));
    }
    if view.ended {
        return Err(Failure::usage(format!(
            "{} has ended; continue it: ostler resume {} \"…\"",
            called(&view),
            view.id
        )));
    }
    let before = journal::size(place.open()?.dir())?;
    match request::make_named(engine, place, want)? {
        (Answered::Accepted, wish) => reply::wait(place, &wish, before, as_json),
        (other, _) => accepted(place, other),
    }
}

fn accepted(place: &Place, granted: Answered) -> Result<Code> {
    let name = called_at(place);
    match granted {
        Answered::Accepted => say!("{name}: accepted")?,
        Answered::Refused(why) => return Err(Failure::new(Code::Failed, format!("{name}: {why}"))),
        Answered::Ended(_) => {
            say!("{name}: accepted; the session has ended, send it now: ostler resume {}", place.id)?;
        }
    }
    Ok(Code::Succeeded)
}

/// Nobody writes to what was put away.
fn refuse_archived(place: &Place) -> Result<()> {
    let words = || format!("{} is archived; restore it first: ostler restore {}", called_at(place), place.id);
    if place.archived { Err(Failure::new(Code::Failed, words())) } else { Ok(()) }
}

fn withdraw(engine: &Engine, place: &Place, n: u64) -> Result<Code> {
    refuse_archived(place)?;
    let (id, name) = (place.id, called_at(place));
    let failed = |why: &str| Err(Failure::new(Code::Failed, format!("{name}: {why}")));
    let waits = || Ok::<_, Failure>(waiting(place)?.iter().any(|waits| waits.n == n));
    if look_and_record(place)?.ended && !waits()? {
        return failed(&format!("message {n} is not waiting; list them with: ostler send {id} --list"));
    }
    match request::make_lasting(engine, place, Want::Withdraw { n })? {
        Answered::Refused(why) => return failed(&why),
        // Once it has ended nobody is there to grant it, and nobody to deliver the message either: the next keeper reads both.
        Answered::Accepted | Answered::Ended(_) => {}
    }
    say!("{name}: message {n} withdrawn")?;
    Ok(Code::Succeeded)
}

/// Whether the agent got a message is not known, and a person wants it given again.
fn again(engine: &Engine, place: &Place, n: u64) -> Result<Code> {
    refuse_archived(place)?;
    let (id, name) = (place.id, called_at(place));
    let failed = |why: &str| Err(Failure::new(Code::Failed, format!("{name}: {why}")));
    if !look_and_record(place)?.maybe_delivered.contains(&n) {
        return failed(&format!(
            "--again is for messages that may have been delivered; list them with: ostler send {id} --list"
        ));
    }
    match request::make_lasting(engine, place, Want::Again { n })? {
        Answered::Accepted => say!("{name}: message {n} is queued again")?,
        Answered::Refused(why) => return failed(&why),
        Answered::Ended(_) => say!("{name}: message {n} is queued again; send it now: ostler resume {id}")?,
    }
    Ok(Code::Succeeded)
}

/// What still waits: what the keeper has taken in, and what it has not seen yet.
fn waiting(place: &Place) -> Result<Vec<Waiting>> {
    let folder = place.open()?;
    let run = folder.run(folder.newest_run()?)?;
    let state = look::fold(&folder, &run, &run.record()?, &folder.session()?)?.state;
    let mut waiting = Vec::new();
    let typing: Vec<_> = state.feeding.filter(|_| state.plan.mode == Mode::Terminal).into_iter().collect();
    for (messages, unclear) in [(&state.maybe_delivered, true), (&typing, false), (&state.queue, false)] {
        for message in messages {
            let wish = inbox::read_one(folder.dir(), message.at)?;
            waiting.extend(wish.map(|wish| Waiting { n: message.n, wish, unclear }));
        }
    }
    let (unseen, _) = inbox::read(folder.dir(), state.inbox)?;
    let mut next = state.messages + 1;
    for placed in unseen {
        match placed.wish.want {
            Want::Message { .. } => {
                waiting.push(Waiting { n: next, wish: placed.wish, unclear: false });
                next += 1;
            }
            Want::Withdraw { n } => waiting.retain(|waits| waits.n != n),
            Want::Again { n } => {
                waiting.iter_mut().filter(|waits| waits.n == n).for_each(|waits| waits.unclear = false)
            }
            Want::Answer { .. } | Want::Interrupt | Want::Stop { .. } | Want::Unknown => {}
        }
    }
    Ok(waiting)
}

/// The texts of those that wait to be delivered, in their order.
pub fn queued(place: &Place) -> Result<Vec<String>> {
    let texts = waiting(place)?.into_iter().filter(|message| !message.unclear).map(|message| message.wish.want);
    Ok(texts.filter_map(|want| if let Want::Message { text, .. } = want { Some(text) } else { None }).collect())
}

/// A message that waits, or of which nothing tells whether the agent took it.
struct Waiting {
    n: u64,
    wish: Wish,
    unclear: bool,
}

fn list(place: &Place, as_json: bool) -> Result<Code> {
    let mut rows = Vec::new();
    for Waiting { n, wish, unclear } in waiting(place)? {
        let Want::Message { text, .. } = wish.want else { continue };
        if as_json {
            let state = if unclear { "maybe_delivered" } else { "waits" };
            say!("{}", json!({ "n": n, "state": state, "at": wish.at, "by": wish.by, "text": text }))?;
        } else {
            rows.push(vec![
                Cell::new(&n.to_string()),
                Cell::new(if unclear { "may have been delivered" } else { "waits" }),
                Cell::new(&wish.by),
                Cell::new(text.lines().next().unwrap_or_default()),
            ]);
        }
    }
    crate::say::text(&lay_out(&rows, None))?;
    Ok(Code::Succeeded)
}
