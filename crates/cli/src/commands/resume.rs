//! `ostler resume`: the next run of the same conversation.

mod same_minute;

use super::run::{follow_to_the_end, read_all, text};
use crate::args::Resume;
use crate::client::look_and_record;
use crate::context::{Context, wish};
use crate::exit::{Code, Failure, Result};
use crate::prepare::{Prepared, prepare};
use crate::say::{say, tell};
use crate::still::{NotStill, Still};
use jiff::Timestamp;
use ostler_core::record::{Mode, Want};
use ostler_core::view::View;
use ostler_keeper::launch;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::{RunRecord, checkpoints, inbox};
use std::io::IsTerminal;
use std::path::Path;

pub fn run(context: &Context, args: Resume) -> Result<Code> {
    let place = context.home.select(&args.id)?;
    let view = look_and_record(&place)?;
    if place.archived {
        return Err(Failure::usage(format!("{0} is archived; ostler restore {0} brings it back", place.id)));
    }
    if !view.ended {
        return Err(refused(&place, view.pid));
    }
    if view.agent == "command" {
        return Err(Failure::usage(format!("{} is a command; there is no conversation to go on with", place.id)));
    }
    let Some(native_id) = view.native_id.as_deref() else {
        return Err(Failure::usage(format!("{} never had a conversation; start a new one", place.id)));
    };
    let message = match args.message.as_deref() {
        Some("-") => Some(text(read_all(&mut std::io::stdin().lock(), "standard input")?)?),
        other => other.map(str::to_owned),
    };
    if message.as_deref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty; say something"));
    }
    let folder = place.open()?;
    // An end that could not be recorded is none: somebody is just beginning this run.
    if view.run > 0 && folder.run(view.run)?.outcome()?.is_none() {
        return Err(refused(&place, view.pid));
    }
    let mut session = folder.session()?;
    if message.is_none() && view.queued == 0 && !args.keep && session.mode == Mode::Headless {
        return Err(Failure::usage(format!(
            "nothing waits to be said; ostler resume {} \"…\", or --keep to leave it idle",
            place.id
        )));
    }
    session.keep = args.keep;
    session.attended = !args.detach && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let number = view.run + 1;
    let Prepared { record, files, environment } = prepare(context, &session, number, native_id, began(&view))?;
    same_minute::wait_out(&folder, &session, native_id)?;
    // Nobody may put it away or delete it while its next run begins; the new keeper waits for us to let go.
    let still = match Still::take(&place) {
        Ok(still) => still,
        Err(NotStill::Runs) => return Err(refused(&place, look_and_record(&place)?.pid)),
        Err(NotStill::Failed(failure)) => return Err(failure),
    };
    // Some agents rewrite a transcript when they resume it, and so may we.
    save_transcript(&folder, &view, &record, |words| tell!("ostler: {}: {words}", place.id))?;
    crate::repair::before_resume(context, &folder, &session, &record)?;
    // What was mended is no surprise to anyone.
    save_transcript(&folder, &view, &record, |_| {})?;
    if !launch::resume(&folder, &session, &record, &files, &environment)? {
        return Err(refused(&place, look_and_record(&place)?.pid));
    }
    drop(still);
    if let Some(text) = message {
        inbox::append(&folder, &wish(number, Want::Message { text, now: false }))?;
        // The keeper looks into the inbox when it starts and whenever it is woken; this wakes it.
        drop(launch::reach(&place)?);
    }
    if args.detach {
        say!("{}", place.id)?;
        return Ok(Code::Succeeded);
    }
    match session.mode {
        Mode::Terminal => super::attach::terminal(context, &place, false),
        Mode::Headless => follow_to_the_end(&place, session.attended),
    }
}

/// Copies what is new of the transcript, where that is wanted.
fn save_transcript(folder: &Folder, view: &View, record: &RunRecord, tell: impl FnOnce(String)) -> Result<()> {
    if let (Some(transcript), true) = (&view.transcript, record.autosave_ms.is_some())
        && let Some(words) = checkpoints::save(folder, Path::new(transcript), Timestamp::now())?.words(view.id)
    {
        tell(words);
    }
    Ok(())
}

/// Whether there is a conversation to go on with. One that never had a turn may not have left a trace, and is begun.
fn began(view: &View) -> bool {
    view.turns > 0 || view.transcript.as_ref().is_some_and(|transcript| Path::new(transcript).exists())
}

fn refused(place: &Place, pid: Option<i32>) -> Failure {
    let who = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
    Failure::new(
        Code::Refused,
        format!("{0} still runs: {who} holds the conversation; ostler send {0} tells it something", place.id),
    )
}
