//! Makes the session of a conversation that was begun outside: ended, with what was said before in its first run, and with
//! nothing started. Whoever is killed on the way leaves no session.

use super::Then;
use super::find::{Found, refuse_kept};
use crate::args::Adopt;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::say::tell;
use ostler_agents::repair::Format;
use ostler_core::SCHEMA;
use ostler_core::event::{Entry, Event};
use ostler_core::id::SessionId;
use ostler_core::outcome::{Closing, Kind, Outcome, Saved, Source};
use ostler_core::record::{Adopted, Mode, Session, beginning_of};
use ostler_engine::foreign::{about, stored::Stored};
use ostler_engine::prepare::prepare;
use ostler_engine::repair::{self, file::Looked};
use ostler_keeper::shelve::shelve;
use ostler_store::conversation::PAST;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::Place;
use ostler_store::journal::Journal;
use ostler_store::{RunRecord, StoreError, checkpoints, closing};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_transcript::Branches;
use ostler_writers::Conversation;
use ostler_writers::lock::{Occupant, Taken, Writers};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// What was changed in a transcript, and where it is as it was.
struct Mended {
    changes: Vec<String>,
    backup: PathBuf,
}

/// Makes the session. Of several who want one conversation at once, one gets it, and the others are told.
pub fn keep(context: &Context, found: &Found, args: &Adopt, then: Then, attended: bool) -> Result<(Place, Session)> {
    // Nobody else of this home looks until the session stands, neither for its conversation nor for its name.
    let _names = context.engine.home.lock_names()?;
    refuse_kept(context, &found.stored)?;
    if let Some(name) = &args.name {
        context.engine.check_name(name)?;
    }
    let mended = mend(context, &found.stored)?;
    // Whoever had it open may have said something since it was found.
    let about = about::whole(&found.stored)?;
    let session = describe(context, found, &about, args, then, attended)?;
    let prepared = prepare(&context.engine, &session, 1, &found.stored.native_id, true)?;
    let transcript = found.stored.file.to_string_lossy().into_owned();
    let in_database = prepared.record.database.is_some();
    let own_file = if in_database { None } else { Some(transcript.clone()) };
    let record = RunRecord { transcript: own_file, native_id: Some(found.stored.native_id.clone()), ..prepared.record };
    let outcome = ended(&session, &record, &about, transcript);
    let autosave = record.autosave_ms.is_some() && !in_database;
    let place = shelve(&context.engine.home, &session, &record, &outcome, |folder, run| -> Result<()> {
        let lock = take_conversation(found, &session, folder)?;
        copy_past(run, &found.stored)?;
        note(folder, &session, mended.as_ref())?;
        if autosave {
            checkpoints::save(folder, &found.stored.file, clock::now())?;
        }
        // Its next run takes it again; until then only this home knows of it.
        if let Some((writers, conversation, lock)) = lock {
            writers.release(&conversation, &lock)?;
        }
        Ok(())
    })?;
    Ok((place, session))
}

/// Mends a transcript that is damaged, as `resume` would.
fn mend(context: &Context, stored: &Stored) -> Result<Option<Mended>> {
    let Some(format) = Format::of_agent(stored.agent) else {
        return Ok(None);
    };
    let id = &stored.native_id;
    let cannot = |error: io::Error| {
        Failure::ours(format!("{id} cannot be repaired: {error}; see why: ostler repair --dry-run {id}"))
    };
    let looked = Looked::at(&stored.file, format, Branches::Join).map_err(cannot)?;
    if looked.examination.is_beyond_mending() {
        let words =
            format!("the transcript of {id} is damaged and cannot be repaired; see why: ostler repair --dry-run {id}");
        return Err(Failure::new(Code::Failed, words));
    }
    if !looked.examination.mends() || repair::holder(&context.engine, format, id)?.is_some() {
        return Ok(None);
    }
    let written = looked.mend().map_err(cannot)?;
    let changes = repair::changes(&written.findings);
    for change in &changes {
        tell!("ostler: repaired: {change}");
    }
    Ok(Some(Mended { changes, backup: written.backup }))
}

fn describe(
    context: &Context,
    found: &Found,
    about: &about::About,
    args: &Adopt,
    then: Then,
    attended: bool,
) -> Result<Session> {
    let parent = variable("OSTLER_SESSION").and_then(|id| SessionId::parse(&id));
    let (mode, opens) = match then {
        Then::Nothing => (Mode::Headless, false),
        Then::Start(mode) => (mode, mode == Mode::Terminal),
    };
    let at = clock::now();
    Ok(Session {
        schema: SCHEMA,
        id: SessionId::from_random(uuid::Uuid::new_v4().as_u128() as u64),
        name: args.name.clone(),
        agent: found.stored.agent.to_owned(),
        cwd: found.about.cwd.clone().unwrap_or_default(),
        mode,
        keep: args.keep && !opens,
        labels: BTreeMap::new(),
        parent,
        fork: None,
        adopted: Some(Adopted {
            at,
            by: context.engine.actor(),
            native_id: found.stored.native_id.clone(),
            transcript: found.stored.file.to_string_lossy().into_owned(),
            messages: about.messages,
            tokens: about.tokens,
        }),
        model: args.model.clone(),
        arguments: args.arguments.clone(),
        prompt: about.prompt.as_deref().map(beginning_of),
        attended,
        limits: ostler_engine::limits::for_new(&context.engine, &args.limits.asked(), parent)?,
        created: at,
    })
}

/// Everything that was said stands in its transcript, and what comes is the next run.
fn ended(session: &Session, record: &RunRecord, about: &about::About, transcript: String) -> Outcome {
    let closing = Closing {
        native_id: record.native_id.clone(),
        transcript: Some(transcript),
        conversation_agent: Some(session.agent.clone()),
        branch: ostler_store::branch::of(std::path::Path::new(&session.cwd)),
        ended: session.created,
        last: about.last.clone(),
        ..closing::of(session, record.run)
    };
    Outcome {
        // Nobody stopped it: how its last turn went is what its own record says.
        kind: if about.answered { Kind::Succeeded } else { Kind::Interrupted },
        source: Source::Ostler,
        exit_code: None,
        signal: None,
        saved: Saved::Verified,
        cause: "adopted; not started in ostler yet".to_owned(),
        text: None,
        tokens: None,
        cost_usd: None,
        turns: 0,
        duration_ms: None,
        left: Vec::new(),
        closing: Some(Box::new(closing)),
    }
}

type Locked = (Writers, Conversation, rustix::fd::OwnedFd);

/// Has the conversation for itself while the session is made: somebody may adopt it into another home just now.
fn take_conversation(found: &Found, session: &Session, folder: &Folder) -> Result<Option<Locked>> {
    let agent = ostler_agents::find(found.stored.agent);
    let Some(conversation) = agent.and_then(|agent| Conversation::of(agent, &found.stored.native_id, &variable)) else {
        return Ok(None);
    };
    let writers = Writers::open(&variable)?;
    let me = Occupant::new(&conversation, session.id, folder, None)?;
    let refused =
        |words: &str| Failure::new(Code::Refused, format!("{words} has the conversation; nothing was adopted"));
    match writers.take(&conversation, &me)? {
        Taken::Yes(lock) => Ok(Some((writers, conversation, lock))),
        Taken::No(occupant) => Err(refused(&occupant.words())),
        Taken::ByNobodyKnown => Err(refused("a process that does not say who it is")),
    }
}

/// What was said before, as the agent has written it down: whatever becomes of its own file, logs show it.
fn copy_past(run: &RunFolder, stored: &Stored) -> Result<()> {
    let to = File::from(run.dir().file(PAST, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?);
    let mut buffered = BufWriter::new(&to);
    stored.write_record(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    Ok(to.sync_all()?)
}

fn note(folder: &Folder, session: &Session, mended: Option<&Mended>) -> std::result::Result<(), StoreError> {
    let mut journal = Journal::open(folder.dir())?;
    let entry =
        |event| Entry { at: clock::now(), ms: since_boot_ms(), run: 1, out: None, wish: None, inbox: None, event };
    if let Some(Mended { changes, backup }) = mended {
        let backup = backup.to_string_lossy().into_owned();
        journal.append(&entry(Event::Mended { changes: changes.clone(), backup }))?;
    }
    if let Some(Adopted { by, native_id, transcript, messages, .. }) = session.adopted.clone() {
        journal.append(&entry(Event::Adopted { by, native_id, transcript, messages }))?;
    }
    journal.sync()
}
