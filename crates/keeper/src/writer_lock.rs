//! Which conversation a session writes to, and the lock that makes it the only writer.
//!
//! If the conversation's id is known beforehand, the holder locks the conversation before the agent runs, and the agent
//! inherits the lock. If the agent reports the id later, or changes it, the keeper takes the lock then
//! (`keeper::conversation_lock`).

use crate::handles::{self, Handles};
use crate::start_agent::NotStarted;
use ostler_core::record::Session;
use ostler_store::RunRecord;
use ostler_store::folder::Folder;
use ostler_sys::process::Identity;
use ostler_writers::Conversation;
use ostler_writers::lock::{Occupant, Taken, Writers};
use std::io;

/// The environment of this process is the agent's.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// `None` for a command, which has no conversation.
pub fn conversation(session: &Session, record: &RunRecord, native_id: &str) -> Option<Conversation> {
    Conversation::of(ostler_agents::keeps_conversation(session, record)?, native_id, &variable)
}

/// A conversation that only this run uses; its lock is among the handles.
pub struct Occupied {
    writers: Writers,
    me: Occupant,
}

impl Occupied {
    /// Takes the conversation of a run that is about to begin, unless the lock was inherited from an earlier run.
    pub fn take(
        folder: &Folder,
        session: &Session,
        record: &RunRecord,
        handles: &mut Handles,
    ) -> Result<Option<Occupied>, NotStarted> {
        let named = record.native_id.as_deref().and_then(|id| conversation(session, record, id));
        let Some(conversation) = named else {
            return Ok(None);
        };
        let writers = Writers::open(&variable)?;
        let me = Occupant::new(&conversation, session.id, folder, None)?;
        if let Some(lock) = handles.get(handles::WRITER)
            && writers.noted(lock)?.is_some_and(|noted| noted.is_same_conversation(&conversation))
        {
            return Ok(Some(Occupied { writers, me }));
        }
        match writers.take(&conversation, &me)? {
            Taken::Yes(lock) => handles.put(handles::WRITER, lock),
            Taken::No(occupant) => return Err(NotStarted::Held(occupant.words())),
            Taken::ByUnknown => return Err(NotStarted::Held("an unknown process".to_owned())),
        }
        Ok(Some(Occupied { writers, me }))
    }

    /// The agent records its own identity before it runs.
    pub fn note(&self, handles: &Handles) -> io::Result<()> {
        let me = Occupant { process: Some(Identity::me()?), ..self.me.clone() };
        self.writers.note(handles.need(handles::WRITER)?, &me)
    }
}
