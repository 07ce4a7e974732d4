//! `ostler send`: a durable message, delivered at the end of the running turn.

mod reply;

use super::run::message_of;
use crate::args::Send;
use crate::client::{Granted, look_and_record, make_lasting_wish, make_named_wish};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::table::{Cell, lay_out};
use ostler_core::record::{Mode, Speaks, Want, Wish};
use ostler_store::home::Place;
use ostler_store::{inbox, look};
use serde_json::json;

pub fn run(context: &Context, args: Send) -> Result<Code> {
    let place = context.home.select(&args.id)?;
    if args.list {
        return list(&place, args.json);
    }
    if let Some(n) = args.withdraw {
        return withdraw(&place, n);
    }
    let message = message_of(&args.message)?.unwrap_or_default();
    send(&place, Want::Message { text: message, now: args.now }, args.wait.then_some(args.json))
}

/// `wait`: for the reply, and whether that is wanted as JSON.
fn send(place: &Place, want: Want, wait: Option<bool>) -> Result<Code> {
    let folder = place.open()?;
    let number = folder.newest_run()?;
    let plan = if number == 0 { None } else { Some(folder.run(number)?.record()?.plan) };
    if plan.as_ref().is_none_or(|plan| plan.mode == Mode::Headless && plan.speaks == Speaks::Bytes) {
        return Err(Failure::new(
            Code::Failed,
            format!("{} is a command and takes no messages; run it with -t to type into it", place.id),
        ));
    }
    refuse_archived(place)?;
    let view = look_and_record(place)?;
    if view.ended && view.agent == "command" {
        return Err(Failure::new(Code::Failed, format!("{} has ended; there is no terminal to type into", place.id)));
    }
    let Some(as_json) = wait else {
        return accepted(place, make_lasting_wish(place, want)?);
    };
    if plan.is_some_and(|plan| !plan.speaks.converses()) {
        let words = format!("{} does not tell when its turns end; send without --wait", place.id);
        return Err(Failure::usage(words));
    }
    if view.ended {
        return Err(Failure::usage(format!("{0} has ended; ostler resume {0} \"…\" goes on with it", place.id)));
    }
    match make_named_wish(place, want)? {
        (Granted::Yes, wish) => reply::wait(place, &wish, as_json),
        (other, _) => accepted(place, other),
    }
}

fn accepted(place: &Place, granted: Granted) -> Result<Code> {
    match granted {
        Granted::Yes => say!("{}: accepted", place.id)?,
        Granted::Refused(why) => return Err(Failure::new(Code::Failed, format!("{}: {why}", place.id))),
        Granted::Ended(_) => say!("{}: accepted; it has ended, so this goes out with the next resume", place.id)?,
    }
    Ok(Code::Succeeded)
}

/// Nobody writes to what was put away.
fn refuse_archived(place: &Place) -> Result<()> {
    let words = || format!("{0} is archived; ostler restore {0} brings it back", place.id);
    if place.archived { Err(Failure::new(Code::Failed, words())) } else { Ok(()) }
}

fn withdraw(place: &Place, n: u64) -> Result<Code> {
    refuse_archived(place)?;
    let failed = |why: &str| Err(Failure::new(Code::Failed, format!("{}: {why}", place.id)));
    let waits = || Ok::<_, Failure>(waiting(place)?.iter().any(|(waits, _)| *waits == n));
    if look_and_record(place)?.ended && !waits()? {
        return failed(&format!("no message {n} waits; see send --list"));
    }
    match make_lasting_wish(place, Want::Withdraw { n })? {
        Granted::Refused(why) => return failed(&why),
        // Once it has ended nobody is there to grant it, and nobody to deliver the message either: the next keeper reads both.
        Granted::Yes | Granted::Ended(_) => {}
    }
    say!("{}: message {n} withdrawn", place.id)?;
    Ok(Code::Succeeded)
}

/// What still waits: what the keeper has taken in, and what it has not seen yet.
fn waiting(place: &Place) -> Result<Vec<(u64, Wish)>> {
    let folder = place.open()?;
    let run = folder.run(folder.newest_run()?)?;
    let state = look::fold(&folder, &run, &run.record()?, &folder.session()?)?.state;
    let mut waiting = Vec::new();
    let typing = state.feeding.filter(|_| state.plan.mode == Mode::Terminal);
    for message in typing.iter().chain(&state.queue) {
        waiting.extend(inbox::read_one(folder.dir(), message.at)?.map(|wish| (message.n, wish)));
    }
    let (unseen, _) = inbox::read(folder.dir(), state.inbox)?;
    let mut next = state.messages + 1;
    for placed in unseen {
        match placed.wish.want {
            Want::Message { .. } => {
                waiting.push((next, placed.wish));
                next += 1;
            }
            Want::Withdraw { n } => waiting.retain(|(waits, _)| *waits != n),
            Want::Answer { .. } | Want::Interrupt | Want::Stop { .. } | Want::Unknown => {}
        }
    }
    Ok(waiting)
}

fn list(place: &Place, as_json: bool) -> Result<Code> {
    let mut rows = Vec::new();
    for (n, wish) in waiting(place)? {
        let Want::Message { text, .. } = wish.want else { continue };
        if as_json {
            say!("{}", json!({ "n": n, "at": wish.at, "by": wish.by, "text": text }))?;
        } else {
            rows.push(vec![
                Cell::new(&n.to_string()),
                Cell::new(&wish.by),
                Cell::new(text.lines().next().unwrap_or_default()),
            ]);
        }
    }
    crate::say::text(&lay_out(&rows, None))?;
    Ok(Code::Succeeded)
}
