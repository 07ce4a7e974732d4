//! `ostler fork`: a new session that begins as a copy of a conversation and goes its own way. The original is not touched,
//! and may even be at work. The copy is made by the agent's own means when it first runs, with the rights that the
//! original was given and no others.

use super::resume::begun;
use super::run::{Watching, after_start, check_that_it_can_be_found, message_of, with_piped};
use crate::args::Fork as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::ui::called::called;
use ostler_core::id::SessionId;
use ostler_core::record::{Fork, Mode, Session, Want, beginning_of};
use ostler_core::view::{Phase, View};
use ostler_engine::prepare::{Prepared, prepare};
use ostler_keeper::launch::{Launch, launch};
use ostler_store::folder::Folder;
use ostler_store::proof::Begun;
use ostler_store::{look, proof};
use ostler_sys::clock;
use ostler_sys::notify::Watcher;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long after a turn a conversation may take to be on disk. Measured: 102 ms at the worst.
const WRITING: Duration = Duration::from_secs(5);
/// Not every folder can be watched: one that is not there yet, one instance too many.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub fn run(context: &Context, args: Args) -> Result<Code> {
    let place = context.engine.home.select(&args.id)?;
    let view = look::look(&place)?;
    if view.agent == "command" {
        return Err(Failure::usage(format!("{} is a command and has no conversation to copy", called(&view))));
    }
    let written = is_written(&place.open()?, &view)?;
    let Some(native_id) = view.native_id.clone().filter(|_| written) else {
        return Err(Failure::usage(format!(
            "{} has no conversation yet; start a new session: ostler run",
            called(&view)
        )));
    };
    // A protocol, a recording and some agents know of no copies.
    let opens = place.open()?.run(view.run)?.record()?.plan.opens;
    let copies = ostler_agents::find(&view.agent).is_none_or(|agent| agent.copies_conversations());
    if opens || !copies || view.agent.starts_with(ostler_agents::replay::PREFIX) {
        let words =
            format!("{} cannot copy a conversation; continue it instead: ostler resume {}", view.agent, place.id);
        return Err(Failure::usage(words));
    }
    let message = message_of(&args.message)?.map(with_piped).transpose()?;
    if message.is_none() && !args.keep && view.mode == Mode::Headless {
        return Err(Failure::usage(format!(
            "a message is missing; say what the copy should do: ostler fork {} \"…\", or add --keep",
            place.id
        )));
    }
    if view.mode == Mode::Terminal && args.output.is_some() {
        return Err(Failure::usage("--output is for sessions without a terminal; remove it"));
    }
    let agent = ostler_agents::find(&view.agent);
    let found = agent.and_then(|agent| proof::find_transcript(agent, &native_id, &view.cwd));
    let transcript = proof::own_file(&place.open()?, &view)?.or(found);
    if agent.is_some_and(|agent| agent.forks_from_file()) && transcript.is_none() {
        let words = format!("the transcript of this {} conversation is gone, so it cannot be copied", view.agent);
        return Err(Failure::usage(words));
    }
    // Of several who want one name at once, one gets it: nobody else looks until the session stands.
    let names = args.name.as_ref().map(|_| context.engine.home.lock_names()).transpose()?;
    if let Some(name) = &args.name {
        context.engine.check_name(name)?;
    }
    let watching = Watching::new(args.detach, args.output);
    check_that_it_can_be_found(watching, args.name.as_deref())?;
    let original = place.open()?.session()?;
    let mut tokens = view.tokens.unwrap_or_default();
    tokens += original.fork.as_ref().map(|fork| fork.tokens).unwrap_or_default();
    tokens += original.adopted.as_ref().map(|adopted| adopted.tokens).unwrap_or_default();
    let session = Session {
        id: SessionId::from_random(uuid::Uuid::new_v4().as_u128() as u64),
        name: args.name,
        keep: args.keep,
        parent: Some(original.id),
        fork: Some(Fork { native_id, transcript, tokens }),
        adopted: None,
        prompt: message.as_deref().map(beginning_of).or_else(|| original.prompt.clone()),
        attended: original.attended || watching.attended,
        created: clock::now(),
        ..original
    };
    let native_id = uuid::Uuid::new_v4().to_string();
    let Prepared { record, files, environment } = prepare(&context.engine, &session, 1, &native_id, false)?;
    let prompts: Vec<_> =
        message.into_iter().map(|text| context.engine.wish(1, Want::Message { text, now: false })).collect();
    let launching = Launch {
        session: &session,
        run: &record,
        prompts: &prompts,
        files: &files,
        piped: None,
        environment: &environment,
    };
    let place = launch(&context.engine.home, launching)?;
    drop(names);
    after_start(context, &place, &session, watching)
}

/// Whether the conversation is on disk. Agents write a little late: what a turn has begun is waited for.
fn is_written(session: &Folder, view: &View) -> Result<bool> {
    let comes = !view.ended && (view.turns > 0 || view.state == Phase::Working);
    let deadline = Instant::now() + WRITING;
    // Without a watcher it is looked at again all the same.
    let watcher = Watcher::new().ok();
    let folder = || Path::new(view.transcript.as_deref()?).ancestors().skip(1).find(|folder| folder.is_dir());
    loop {
        if let (Some(watcher), Some(folder)) = (&watcher, folder()) {
            let _ = watcher.watch(folder);
        }
        if begun(session, view)? == Begun::Yes {
            return Ok(true);
        }
        if !comes || Instant::now() >= deadline {
            return Ok(false);
        }
        let mut fds: Vec<PollFd<'_>> = watcher.iter().map(|watcher| PollFd::new(watcher, PollFlags::IN)).collect();
        let _ = poll(&mut fds, Timespec::try_from(LOOK_AGAIN).ok().as_ref());
        if let Some(watcher) = &watcher {
            let _ = watcher.changed();
        }
    }
}
