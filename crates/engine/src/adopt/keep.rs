//! Makes the session for a conversation that was begun outside ostler. The session has ended, its first run contains
//! what was said before, and nothing is started. When this process is killed in the middle, there is no session.

use super::Adopt;
use super::find::{Found, refuse_kept};
use super::refusal::AdoptRefusal;
use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::Result;
use crate::foreign::{about, stored::Stored};
use crate::foreign_outcome::of_past;
use crate::launch::{Launched, new_id};
use crate::limits;
use crate::notice::Notice;
use crate::prepare::prepare;
use crate::repair::{self, file::Looked};
use ostler_agents::repair::Format;
use ostler_core::SCHEMA;
use ostler_core::event::{Entry, Event};
use ostler_core::outcome::{Closing, Kind, Outcome};
use ostler_core::record::{Adopted, Mode, Session, beginning_of};
use ostler_keeper::create_ended::put_ended;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::journal::Journal;
use ostler_store::{RunRecord, StoreError, checkpoints};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_transcript::Branches;
use ostler_view::conversation::PAST;
use ostler_view::write_outcome;
use ostler_writers::Conversation;
use ostler_writers::lock::{Occupant, Taken, Writers};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// What was changed in a transcript, and where its unchanged copy is.
struct Repaired {
    changes: Vec<String>,
    backup: PathBuf,
}

/// Makes the session. When several commands adopt one conversation at the same time, one succeeds and the others are
/// refused.
pub fn keep(engine: &Engine, found: &Found, request: &Adopt, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
    // Until the session exists, no other command of this home may look for its conversation or its name.
    let _names = engine.home.lock_names()?;
    refuse_kept(engine, &found.stored)?;
    if let Some(name) = &request.name {
        engine.check_name(name)?;
    }
    let repaired = repair(engine, &found.stored, tell)?;
    // The process that had the conversation open may have written to it since it was found.
    let about = about::whole(&found.stored)?;
    let session = describe(engine, found, &about, request)?;
    let prepared = prepare(engine, &session, 1, &found.stored.native_id, true)?;
    let transcript = found.stored.file.to_string_lossy().into_owned();
    let in_database = prepared.record.database.is_some();
    let own_file = if in_database { None } else { Some(transcript.clone()) };
    let record = RunRecord { transcript: own_file, native_id: Some(found.stored.native_id.clone()), ..prepared.record };
    let outcome = ended(&session, &record, &about, transcript);
    let autosave = record.autosave_ms.is_some() && !in_database;
    let place = put_ended(&engine.home, &session, &record, &outcome, |folder, run| -> Result<()> {
        let lock = take_conversation(&engine.environment, found, &session, folder)?;
        copy_past(run, &found.stored)?;
        note(folder, &session, repaired.as_ref())?;
        if autosave {
            checkpoints::save(folder, &found.stored.file, clock::now())?;
        }
        // The next run takes the lock again. Until then only this home knows that the session has the conversation.
        if let Some((writers, conversation, lock)) = lock {
            writers.release(&conversation, &lock)?;
        }
        Ok(())
    })?;
    Ok(Launched { place, session })
}

/// Repairs a damaged transcript, as `resume` would.
fn repair(engine: &Engine, stored: &Stored, tell: &mut dyn FnMut(Notice)) -> Result<Option<Repaired>> {
    let Some(format) = Format::of_agent(stored.agent) else {
        return Ok(None);
    };
    let id = &stored.native_id;
    let cannot = |error: io::Error| AdoptRefusal::CannotRepair { native_id: id.clone(), error };
    let looked = Looked::at(&stored.file, format, Branches::Join).map_err(cannot)?;
    if looked.examination.cannot_be_repaired() {
        return Err(AdoptRefusal::Damaged { native_id: id.clone() }.into());
    }
    if !looked.examination.repairs() || repair::owner(engine, format, id)?.is_some() {
        return Ok(None);
    }
    let written = looked.repair().map_err(cannot)?;
    let changes = repair::changes(&written.findings);
    for change in &changes {
        tell(Notice::Repaired { change: change.clone(), backup: None });
    }
    Ok(Some(Repaired { changes, backup: written.backup }))
}

fn describe(engine: &Engine, found: &Found, about: &about::About, request: &Adopt) -> Result<Session> {
    let parent = engine.own_session();
    let at = clock::now();
    Ok(Session {
        schema: SCHEMA,
        id: new_id(),
        name: request.name.clone(),
        agent: found.stored.agent.to_owned(),
        cwd: found.about.cwd.clone().unwrap_or_default(),
        mode: request.mode,
        keep: request.keep && request.mode == Mode::Headless,
        labels: BTreeMap::new(),
        parent,
        fork: None,
        origin: None,
        read_only: false,
        adopted: Some(Adopted {
            at,
            by: engine.actor(),
            native_id: found.stored.native_id.clone(),
            transcript: found.stored.file.to_string_lossy().into_owned(),
            messages: about.messages,
            tokens: about.tokens,
        }),
        model: request.model.clone(),
        arguments: request.arguments.clone(),
        prompt: about.prompt.as_deref().map(beginning_of),
        attended: request.attended,
        limits: limits::for_new(engine, &request.limits, parent)?,
        rules: ostler_core::rules::Rules::default(),
        worktree: None,
        job: None,
        driven: false,
        group: None,
        created: at,
    })
}

/// The outcome of the first run. Everything that was said is in the transcript; what follows belongs to the next run.
fn ended(session: &Session, record: &RunRecord, about: &about::About, transcript: String) -> Outcome {
    let closing = Closing {
        native_id: record.native_id.clone(),
        transcript: Some(transcript),
        conversation_agent: Some(session.agent.clone()),
        branch: ostler_store::branch::of(std::path::Path::new(&session.cwd)),
        ended: session.created,
        last: about.last.clone(),
        ..write_outcome::of(session, record.run)
    };
    // ostler did not stop the conversation, so its own record decides how its last turn ended.
    let kind = if about.answered { Kind::Succeeded } else { Kind::Interrupted };
    of_past(kind, "adopted; not started in ostler yet".to_owned(), closing)
}

type Locked = (Writers, Conversation, rustix::fd::OwnedFd);

/// Locks the conversation while the session is made: another command may be adopting it into another home.
fn take_conversation(
    environment: &Environment,
    found: &Found,
    session: &Session,
    folder: &Folder,
) -> Result<Option<Locked>> {
    let variable = environment.lookup();
    let agent = ostler_agents::find(found.stored.agent);
    let Some(conversation) = agent.and_then(|agent| Conversation::of(agent, &found.stored.native_id, &variable)) else {
        return Ok(None);
    };
    let writers = Writers::open(&variable)?;
    let me = Occupant::new(&conversation, session.id, folder, None)?;
    let refused = |owner: String| AdoptRefusal::Taken { owner }.into();
    match writers.take(&conversation, &me)? {
        Taken::Yes(lock) => Ok(Some((writers, conversation, lock))),
        Taken::No(occupant) => Err(refused(occupant.words())),
        Taken::ByUnknown => Err(refused("an unidentified process".to_owned())),
    }
}

/// Copies what was said before, as the agent wrote it, so that logs show it even when the agent's own file is lost.
fn copy_past(run: &RunFolder, stored: &Stored) -> Result<()> {
    let to = File::from(run.dir().file(PAST, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?);
    let mut buffered = BufWriter::new(&to);
    stored.write_record(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    Ok(to.sync_all()?)
}

fn note(folder: &Folder, session: &Session, repaired: Option<&Repaired>) -> std::result::Result<(), StoreError> {
    let mut journal = Journal::open(folder.dir())?;
    let entry = |event| Entry {
        at: clock::now(),
        ms: since_boot_ms(),
        run: 1,
        out: None,
        request: None,
        inbox: None,
        notify: None,
        event,
    };
    if let Some(Repaired { changes, backup }) = repaired {
        let backup = backup.to_string_lossy().into_owned();
        journal.append(&entry(Event::Repaired { changes: changes.clone(), backup }))?;
    }
    if let Some(Adopted { by, native_id, transcript, messages, .. }) = session.adopted.clone() {
        journal.append(&entry(Event::Adopted { by, native_id, transcript, messages }))?;
    }
    journal.sync()
}
