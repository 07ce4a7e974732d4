//! `ostler logs`: the conversation, or what a command printed.

use super::attach::pick;
use crate::args::Logs;
use crate::client::Watch;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::follow::{Left, Printer, Show, Talking, follow};
use crate::say::say;
use crate::ui::conversation::Talk;
use ostler_core::fact::Fact;
use ostler_core::record::Speaks;
use ostler_store::conversation::{Item, Reader};
use ostler_store::look;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;

pub fn run(context: &Context, args: &Logs) -> Result<Code> {
    let id = match &args.id {
        Some(id) => id.clone(),
        None => pick(context, "logs", "no session ran in the last day; list older ones with: ostler ls -a", |_| true)?,
    };
    let place = context.home.select(&id)?;
    let folder = place.open()?;
    let number = folder.newest_run()?;
    if number == 0 {
        return Err(Failure::new(Code::Failed, format!("{} never ran, so there is nothing to show", place.id)));
    }
    if args.json {
        if folder.run(number)?.record()?.plan.speaks == Speaks::Bytes {
            return Err(Failure::usage("a command has no conversation; print its output with: ostler logs --raw"));
        }
        return json_lines(args.follow, &place);
    }
    let show = if args.raw { Show::Raw } else { Show::Plain };
    let mut printer =
        Printer::new(&folder, show, Talk::new(context.style, crate::ui::table::window()), Talking::Together, 1)?;
    if args.follow && !place.archived {
        match follow(&place, &mut printer, None, true)? {
            Left::Ended(_) | Left::Asks(_) | Left::Called => {}
        }
    } else {
        printer.print()?;
    }
    printer.finish()?;
    Ok(Code::Succeeded)
}

fn json_lines(follow: bool, place: &ostler_store::home::Place) -> Result<Code> {
    let mut watch = Watch::new(place)?;
    let folder = place.open()?;
    let mut reader = Reader::new(&folder, 1);
    loop {
        let view = look::look(place)?;
        reader.read_on(|item| -> Result<()> { Ok(say!("{}", to_json(&item))?) })?;
        if !follow || view.ended {
            return Ok(Code::Succeeded);
        }
        if let Some(fd) = watch.descriptor() {
            match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        watch.heed()?;
    }
}

pub fn to_json(item: &Item) -> serde_json::Value {
    match item {
        Item::Told { n, text } => json!({ "kind": "told", "n": n, "text": text }),
        Item::Answered { by, allowed, always } => {
            json!({ "kind": "answered", "by": by, "allowed": allowed, "always": always })
        }
        Item::Agent(fact) => fact_to_json(fact),
    }
}

fn fact_to_json(fact: &Fact) -> serde_json::Value {
    match fact {
        Fact::Native { id } => json!({ "kind": "conversation", "native_id": id }),
        Fact::Transcript { path } => json!({ "kind": "transcript", "path": path }),
        Fact::Behind { agent } => json!({ "kind": "behind", "agent": agent }),
        Fact::Recalled { last, times } => json!({ "kind": "recalled", "last": last, "times": times }),
        Fact::Opened { native_id } => json!({ "kind": "opened", "native_id": native_id }),
        Fact::NotOpened { reason } => json!({ "kind": "not_opened", "reason": reason }),
        Fact::Owed { name, .. } => json!({ "kind": "owed", "name": name }),
        Fact::Ready => json!({ "kind": "ready" }),
        Fact::TurnStarted => json!({ "kind": "turn_started" }),
        Fact::Saying { text } => json!({ "kind": "saying", "text": text }),
        Fact::Said { text } => json!({ "kind": "said", "text": text }),
        Fact::Thought { text } => json!({ "kind": "thought", "text": text }),
        Fact::Model { name } => json!({ "kind": "model", "name": name }),
        Fact::ToolCalled { name, detail, call } => {
            json!({ "kind": "tool_called", "name": name, "detail": detail, "call": call.id })
        }
        Fact::ToolReturned { text, failed, call } => {
            json!({ "kind": "tool_returned", "text": text, "failed": failed, "call": call })
        }
        Fact::Asked(ask) => json!({ "kind": "asked", "ask": ask }),
        Fact::AskClosed { request } => json!({ "kind": "ask_closed", "request": request }),
        Fact::Retrying(retry) => json!({ "kind": "retrying", "reason": retry.reason, "attempt": retry.attempt }),
        Fact::Background { task, runs } => json!({ "kind": "background", "task": task, "runs": runs }),
        Fact::TurnEnded(end) => json!({ "kind": "turn_ended", "end": end }),
        Fact::Unknown { kind } => json!({ "kind": "unknown", "name": kind }),
        Fact::PassedOver { bytes } => json!({ "kind": "passed_over", "bytes": bytes }),
        Fact::Below(fact) => json!({ "kind": "subagent", "item": fact_to_json(fact) }),
    }
}
