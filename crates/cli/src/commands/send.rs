//! `ostler send`: a durable message, delivered at the end of the running turn.

use super::each_session;
use super::run::message_of;
use super::wait::report_question;
use crate::args::Send;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called_at;
use crate::ui::table::{Cell, lay_out};
use ostler_core::fact::{TurnEnd, Verdict};
use ostler_core::record::RequestKind;
use ostler_engine::Place;
use ostler_engine::reply::Reply;
use ostler_engine::selecting::Several;
use ostler_engine::send::{Sent, Waiting};
use serde_json::json;

pub fn run(context: &Context, args: Send) -> Result<Code> {
    let engine = &context.engine;
    let is_message = !args.list && args.withdraw.is_none() && args.again.is_none() && !args.wait;
    if is_message && Several::parse(&args.id).is_some() {
        let message = message_of(&args.message)?.unwrap_or_default();
        let places = engine.select_several(&args.id)?;
        return Ok(each_session::each(places, |place| said(&place, engine.send(&place, message.clone(), args.now)?)));
    }
    let place = engine.select(&args.id)?;
    let (id, name) = (place.id, called_at(&place));
    if args.list {
        return list(context, &place, args.json);
    }
    if let Some(n) = args.withdraw {
        engine.withdraw(&place, n)?;
        say!("{name}: message {n} withdrawn")?;
        return Ok(Code::Succeeded);
    }
    if let Some(n) = args.again {
        match engine.send_again(&place, n)? {
            Sent::Accepted => say!("{name}: message {n} is queued again")?,
            Sent::ForNextRun => say!("{name}: message {n} is queued again; send it now: ostler resume {id}")?,
            Sent::AfterStop => {
                say!("{name}: message {n} is queued again; send it when it has stopped: ostler resume {id}")?
            }
        }
        return Ok(Code::Succeeded);
    }
    let message = message_of(&args.message)?.unwrap_or_default();
    let sent = match args.wait {
        false => engine.send(&place, message, args.now)?,
        true => match engine.send_and_wait(&place, message, args.now)? {
            Reply::Turn(end) => return reply(&place, &end, args.json),
            Reply::Asks(view) => return report_question(&view).map(|()| Code::Asks),
            Reply::ForNextRun => Sent::ForNextRun,
        },
    };
    said(&place, sent)
}

fn said(place: &Place, sent: Sent) -> Result<Code> {
    let (id, name) = (place.id, called_at(place));
    match sent {
        Sent::Accepted => say!("{name}: accepted")?,
        Sent::ForNextRun => say!("{name}: accepted; the session has ended, send it now: ostler resume {id}")?,
        Sent::AfterStop => {
            say!("{name}: accepted; the session is stopping, send it when it has stopped: ostler resume {id}")?;
        }
    }
    Ok(Code::Succeeded)
}

fn reply(place: &Place, end: &TurnEnd, as_json: bool) -> Result<Code> {
    let code = match end.verdict {
        Verdict::Succeeded => Code::Succeeded,
        Verdict::Failed => Code::Failed,
        Verdict::Interrupted => Code::Stopped,
    };
    if as_json {
        say!("{}", json!({ "id": place.id, "verdict": end.verdict, "text": end.text, "reason": end.reason }))?;
        return Ok(code);
    }
    if let Some(text) = &end.text {
        say!("{}", ostler_screen::printable_text(text).trim_end())?;
    }
    match (code, &end.reason) {
        (Code::Succeeded, _) | (_, None) => Ok(code),
        (code, Some(reason)) => {
            Err(Failure::new(code, format!("{}: {}", called_at(place), ostler_screen::printable(reason))))
        }
    }
}

fn list(context: &Context, place: &Place, as_json: bool) -> Result<Code> {
    let mut rows = Vec::new();
    for Waiting { n, request, unclear, given_before } in context.engine.waiting(place)? {
        let RequestKind::Message { text, .. } = request.kind else { continue };
        if as_json {
            let state = if unclear { "maybe_delivered" } else { "waits" };
            say!(
                "{}",
                json!({
                    "n": n, "state": state, "given_before": given_before,
                    "at": request.at, "by": request.by, "text": text
                })
            )?;
        } else {
            rows.push(vec![
                Cell::new(&n.to_string()),
                Cell::new(match (unclear, given_before) {
                    (true, _) => "may have been delivered",
                    (false, true) => "waits again, the agent ended before it stored it",
                    (false, false) => "waits",
                }),
                Cell::new(&request.by),
                Cell::new(text.lines().next().unwrap_or_default()),
            ]);
        }
    }
    crate::say::text(&lay_out(&rows, None))?;
    Ok(Code::Succeeded)
}
