//! `ostler resume`: the next run of the same conversation.

mod newest;
mod same_minute;
mod takeover;

pub use takeover::{end_stranger, refuse_shared, say_what_is_saved, wait_until_written};

use super::ls::tilde;
use super::run::{Watching, after_start, message_of, with_piped};
use super::show::unclear;
use crate::args::Resume;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::tell;
use crate::ui::called::called;
use jiff::Timestamp;
use ostler_agents::repair::Format;
use ostler_core::event::Event;
use ostler_core::record::{Mode, Want};
use ostler_core::view::View;
use ostler_engine::orphans;
use ostler_engine::owners::{refuse_others, still_runs};
use ostler_engine::prepare::{Prepared, prepare};
use ostler_engine::quiesced::{NotQuiesced, Quiesced, until_settled};
use ostler_engine::repair;
use ostler_engine::repair::lost::Kept;
use ostler_keeper::launch;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::proof::Begun;
use ostler_store::{RunRecord, StoreError, checkpoints, inbox, journal, proof};
use ostler_sys::clock;
use std::path::Path;

pub fn run(context: &Context, args: Resume) -> Result<Code> {
    let id = args.id.map_or_else(|| newest::choose(context), Ok)?;
    let place = context.engine.home.select(&id)?;
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
    let watching = going.watching;
    let mut view = until_settled(place)?;
    if place.archived {
        return Err(Failure::usage(format!(
            "{} is archived; restore it first: ostler restore {}",
            called(&view),
            place.id
        )));
    }
    if view.agent == "command" {
        return Err(Failure::usage(format!("{} is a command and has no conversation to continue", called(&view))));
    }
    let message = message()?;
    if going.takeover {
        takeover::take(context, place, &view)?;
        view = until_settled(place)?;
    }
    // A person who says nothing wants to sit down at it, whether it runs or has to be started again.
    let opens = message.is_none() && watching.may_open();
    if !view.ended && opens {
        return super::attach::open(context, place, view.mode, false);
    }
    if !view.ended {
        return Err(still_runs(&context.engine.environment, place, &view).into());
    }
    let folder = place.open()?;
    let mut session = folder.session()?;
    // One that ended before it had a conversation begins one, if there is something to say in it.
    let waits = message.is_some() || view.queued > 0;
    if view.native_id.is_none() && session.fork.is_none() && session.mode == Mode::Terminal && !waits {
        return Err(Failure::usage(format!(
            "{} never had a conversation; start a new session: ostler run",
            called(&view)
        )));
    }
    // An end that cannot be recorded is none: somebody has the session.
    if view.run > 0 && folder.run(view.run)?.outcome()?.is_none() {
        return Err(still_runs(&context.engine.environment, place, &view).into());
    }
    if let Some(n) =
        view.maybe_delivered.first().filter(|_| message.is_none() && view.queued == 0 && !going.keep && !opens)
    {
        return Err(Failure::usage(unclear(&view, *n)));
    }
    if message.is_none() && view.queued == 0 && !going.keep && !opens && session.mode == Mode::Headless {
        return Err(Failure::usage(format!(
            "a message is missing; ostler resume {} \"…\", or --keep to start it without one",
            place.id
        )));
    }
    if session.mode == Mode::Terminal && watching.output.is_some() {
        return Err(Failure::usage("--output is for sessions without a terminal; remove it"));
    }
    if session.mode == Mode::Terminal && !watching.detach {
        if !super::attach::is_possible() {
            return Err(Failure::usage(format!(
                "{} needs a terminal to show it on; start it without one: ostler resume -d {}",
                called(&view),
                view.id
            )));
        }
        super::attach::check_place(place)?;
    }
    session.keep = going.keep || opens;
    // Who had to ask before has to ask again, whoever watches: rights never widen.
    session.attended |= watching.attended;
    let number = view.run + 1;
    if let Some(native_id) = &view.native_id {
        refuse_others(&context.engine.environment, view.conversation_agent(), native_id, Some(&folder))?;
        same_minute::wait_out(&folder, &session, native_id)?;
    }
    // Nobody may put it away or delete it while its next run begins; the new keeper waits for us to let go.
    let still = match Quiesced::take(place) {
        Ok(still) => still,
        Err(NotQuiesced::Runs) => return Err(still_runs(&context.engine.environment, place, &view).into()),
        Err(NotQuiesced::Failed(error)) => return Err(error.into()),
    };
    bring_back_transcript(&folder, &view)?;
    bring_back_lost(&folder, &view)?;
    let begun = begun(&folder, &view)?;
    let native_id = match &view.native_id {
        Some(known) if begun != Begun::InNameOnly => known.clone(),
        // A copy that was never made has no name yet, and is made now; so is what ended before the agent named it.
        Some(_) | None => uuid::Uuid::new_v4().to_string(),
    };
    let goes_on = begun == Begun::Yes;
    let Prepared { mut record, files, environment } = prepare(&context.engine, &session, number, &native_id, goes_on)?;
    if record.plan.opens && record.behind.is_none() && view.run > 0 {
        // What the program has told about itself, where its command tells nothing: the lock needs it before the start.
        record.behind = folder.run(view.run)?.record()?.behind;
    }
    for process in orphans::end_all_of(&folder, place.id, view.run, &native_id)? {
        tell!("ostler: {}: ended a process that its last run left running: {process}", called(&view));
    }
    // Some agents rewrite a transcript when they resume it, and so may we.
    save_transcript(&folder, &view, &record, checkpoints::save)?;
    ostler_engine::repair::before_resume(&context.engine, &folder, &session, &record, &mut crate::say::notice)?;
    // What was mended, and what was told, is no surprise to anyone.
    save_transcript(&folder, &view, &record, checkpoints::settle)?;
    if !launch::resume(&folder, &session, &record, &files, &environment)? {
        return Err(still_runs(&context.engine.environment, place, &view).into());
    }
    drop(still);
    if let Some(text) = message {
        inbox::append(&folder, &context.engine.wish(number, Want::Message { text, now: false }))?;
        // The keeper looks into the inbox when it starts and whenever it is woken; this wakes it.
        drop(launch::reach(place)?);
    }
    after_start(context, place, &session, watching)
}

/// Puts the last copy of a transcript in its place when that is gone, or there is nothing in it: an agent may delete conversations
/// of its own accord.
fn bring_back_transcript(folder: &Folder, view: &View) -> Result<()> {
    let before = begun(folder, view)?;
    let Some(transcript) = proof::own_file(folder, view)?.filter(|_| before != Begun::Yes) else {
        return Ok(());
    };
    let all = checkpoints::list(folder)?;
    match all.iter().rfind(|one| one.of == Path::new(&transcript)) {
        Some(last) => {
            let bytes = crate::ui::time::size(last.length);
            let words = format!("its transcript was missing; restored from the last copy ({bytes})");
            match checkpoints::restore(folder, last)? {
                Some(before) => {
                    tell!("ostler: {}: {words}; backup: {}", called(view), tilde(&before.to_string_lossy()));
                    repair::note(folder, view.run, vec![words], &before)?;
                }
                None => tell!("ostler: {}: {words}", called(view)),
            }
        }
        None if view.turns > 0 => {
            tell!(
                "ostler: {}: its transcript is gone and there is no copy; the agent starts without its earlier conversation",
                called(view)
            );
        }
        None => {}
    }
    Ok(())
}

/// Puts back what a transcript has lost and its copies have, and tells what cannot be put back.
fn bring_back_lost(folder: &Folder, view: &View) -> Result<()> {
    let Some(transcript) = proof::own_file(folder, view)?.filter(|path| Path::new(path).is_file()) else {
        return Ok(());
    };
    let format = Format::of_agent(&view.agent);
    let transcript = Path::new(&transcript);
    let kept = Kept { folder, id: view.id, transcript, file: transcript, format };
    let mut repaired = |words: &str, backup: &Path| {
        tell!("ostler: repaired: {words}; backup: {}", tilde(&backup.to_string_lossy()));
    };
    if let Some(lost) = kept.bring_back(Some(view.run), &mut repaired)? {
        tell!("ostler: {}: {}", called(view), lost.words);
    }
    Ok(())
}

/// Copies what is new of the transcript, where that is wanted.
fn save_transcript<T>(
    folder: &Folder,
    view: &View,
    record: &RunRecord,
    save: fn(&Folder, &Path, Timestamp) -> std::result::Result<T, StoreError>,
) -> Result<()> {
    if record.autosave_ms.is_some()
        && let Some(transcript) = proof::own_file(folder, view)?
    {
        save(folder, Path::new(&transcript), clock::now())?;
    }
    Ok(())
}

/// Whether there is a conversation to go on with. One whose agent died before it wrote anything down has left no trace, and
/// is begun: told to go on with it, the agent would refuse, each time, and what waits would wait for ever.
pub fn begun(folder: &Folder, view: &View) -> Result<Begun> {
    let Some(native_id) = &view.native_id else {
        return Ok(Begun::No);
    };
    let agent = ostler_agents::find(view.conversation_agent());
    let known = agent.and_then(|agent| proof::begun(agent, native_id, &view.cwd, view.transcript.as_deref()));
    match known {
        Some(known) => Ok(known),
        None if view.turns > 0 => Ok(Begun::Yes),
        // Behind a protocol, one that has worked for a message has begun, whether or not it came to an end.
        None => {
            let taken = |event: &Event| matches!(event, Event::FoundDelivered { .. });
            let worked = journal::read(folder.dir(), 0)?.entries.iter().any(|entry| taken(&entry.event));
            Ok(if worked { Begun::Yes } else { Begun::No })
        }
    }
}
