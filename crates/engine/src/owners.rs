//! Which other processes have a conversation open: sessions of ostler in any home of this user, and processes that
//! ostler did not start. Checked before a process is started for the conversation. A process that opens it after this
//! check does not get the lock, or is reported by the keeper.

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::quiesced::wait_for_one_of;
use crate::session_ref::SessionRef;
use ostler_core::view::View;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_sys::file_locks;
use ostler_sys::process::Identity;
use ostler_writers::lock::{Occupant, Writers};
use ostler_writers::{Conversation, ConversationOwner, Evidence, processes};
use std::time::{Duration, Instant};

/// A session or a process that writes to a conversation.
pub enum Writer {
    /// The agent of a session, which can be stopped like any other.
    Session(Occupant),
    /// A process that ostler did not start.
    Foreign(ConversationOwner),
}

impl Writer {
    /// In words for people.
    pub fn words(&self) -> String {
        match self {
            Writer::Session(occupant) => occupant.words(),
            Writer::Foreign(foreign) => foreign.words(),
        }
    }

    /// Its process, as far as it is known.
    pub fn process(&self) -> Option<&Identity> {
        match self {
            Writer::Session(occupant) => occupant.process.as_ref(),
            Writer::Foreign(foreign) => Some(&foreign.identity),
        }
    }

    /// Its process, if the kernel is already ending it.
    fn ending(&self) -> Result<Vec<Identity>> {
        Ok(match self.process() {
            Some(process) if process.is_ending()? => vec![process.clone()],
            Some(_) | None => Vec::new(),
        })
    }
}

/// All writers of this agent's conversation at this moment.
pub fn writers(environment: &Environment, agent: &str, native_id: &str) -> Result<Vec<Writer>> {
    let variable = environment.lookup();
    let known = ostler_agents::find(agent).and_then(|agent| Conversation::of(agent, native_id, &variable));
    let Some(conversation) = known else {
        return Ok(Vec::new());
    };
    let session = Writers::open(&variable)?.occupant(&conversation)?;
    let agent = session.as_ref().and_then(|occupant| occupant.process.as_ref()).map(|process| process.pid());
    let foreign = ostler_writers::foreign(&conversation, agent, &variable)?;
    Ok(session.into_iter().map(Writer::Session).chain(foreign.into_iter().map(Writer::Foreign)).collect())
}

/// Sets for these processes the session of another home that they belong to, and adds a process that is known only by
/// our lock.
pub fn name_sessions(
    environment: &Environment,
    agent: &str,
    native_id: &str,
    owners: &mut Vec<ConversationOwner>,
) -> Result<()> {
    for writer in writers(environment, agent, native_id)? {
        let Writer::Session(Occupant { session, process: Some(process), .. }) = writer else {
            continue;
        };
        if let Some(owner) = owners.iter_mut().find(|owner| owner.identity == process) {
            owner.session = Some(session);
        } else if let Some(process) = processes::describe(&process) {
            let found = ConversationOwner::new(agent, Some(native_id.to_owned()), Evidence::Lock, process);
            owners.push(ConversationOwner { session: Some(session), ..found });
        }
    }
    Ok(())
}

/// Fails with the first writer that is not the session itself. The helpers of the session itself may not have exited
/// yet.
pub fn refuse_others(environment: &Environment, agent: &str, native_id: &str, own: Option<&Folder>) -> Result<()> {
    match first_other(environment, agent, native_id, own)? {
        None => Ok(()),
        Some(Writer::Foreign(foreign)) => {
            Err(shared(&foreign).unwrap_or_else(|| Error::Owned { owner: foreign.words() }))
        }
        Some(writer @ Writer::Session(_)) => Err(Error::Owned { owner: writer.words() }),
    }
}

/// The first writer that is not the session itself.
pub fn first_other(
    environment: &Environment,
    agent: &str,
    native_id: &str,
    own: Option<&Folder>,
) -> Result<Option<Writer>> {
    let own = own.map(|folder| rustix::fs::fstat(folder.dir())).transpose().map_err(std::io::Error::from)?;
    let is_own = |writer: &Writer| match writer {
        Writer::Session(occupant) => own.is_some_and(|own| occupant.folder_id == (own.st_dev, own.st_ino)),
        Writer::Foreign(_) => false,
    };
    let deadline = Instant::now() + ENDING;
    loop {
        let writers = writers(environment, agent, native_id)?;
        let Some(writer) = writers.into_iter().find(|writer| !is_own(writer)) else {
            return Ok(None);
        };
        // A process that was killed a moment ago is waited for: it is soon gone.
        if !wait_for_one_of(&writer.ending()?, deadline)? {
            return Ok(Some(writer));
        }
    }
}

/// How long a process that was killed may take to be gone.
const ENDING: Duration = Duration::from_secs(10);

/// The error when the conversation is open in a server that may have other conversations of the user open: such a
/// server is not ended because of one conversation.
pub fn shared(foreign: &ConversationOwner) -> Option<Error> {
    let how_to_end = ostler_agents::find(&foreign.agent)?.shared_by_many(&foreign.command)?;
    Some(Error::OwnedByServer {
        owner: foreign.words(),
        agent: foreign.agent.clone(),
        how_to_end: how_to_end.to_owned(),
    })
}

/// How often the owner is looked up: while one process hands the start over to another, a single look may find neither.
const LOOKS: usize = 5;

/// The error when the session itself has not ended, with the process that runs it, as far as it is found.
pub fn still_runs(environment: &Environment, place: &Place, view: &View) -> Error {
    let other = || {
        let writers = writers(environment, view.conversation_agent(), view.native_id.as_deref()?).ok()?;
        writers.first().map(Writer::words)
    };
    let owner = (0..LOOKS).find_map(|_| running(place).or_else(other));
    Error::StillRuns { session: SessionRef::from(view), owner }
}

/// The agent, else the process that is about to start it, else the process that holds the session's lock.
fn running(place: &Place) -> Option<String> {
    let folder = place.open().ok()?;
    let record = folder.newest_run().and_then(|run| folder.run(run)).and_then(|run| run.record()).ok();
    let started = record.into_iter().flat_map(|record| [record.agent, record.launcher]).flatten();
    let lock = std::fs::metadata(place.path.join("keeper.lock")).ok();
    let locked = lock.and_then(|file| file_locks::on(&file, &file_locks::now().ok()?).ok()).unwrap_or_default();
    started.chain(locked).find_map(|process| processes::describe(&process)).map(|process| process.words())
}
