//! No other process may have a conversation open that is adopted. A session of ostler has it already; a process that ostler did
//! not start is named, and ended properly when that is asked for.

use super::find::Found;
use super::refusal::AdoptRefusal;
use crate::error::Result;
use crate::foreign::ConversationOwner;
use crate::foreign::in_database::{self, At};
use crate::foreign::stored::Stored;
use crate::notice::Notice;
use crate::owners::{Writer, writers};
use crate::settings::Engine;
use crate::takeover::refuse_shared;
use ostler_keeper::launch::hidden_name;
use ostler_writers::lock::Occupant;
use std::path::Path;

/// The processes that have it open, to be ended with `takeover`; without, they are a refusal.
pub fn at(
    engine: &Engine,
    stored: &Stored,
    takeover: bool,
    tell: &mut dyn FnMut(Notice),
) -> Result<Vec<ConversationOwner>> {
    let others = others(engine, stored)?;
    if stored.kept_by().is_some_and(|agent| !agent.tells_its_processes()) {
        tell(Notice::OwnersUnknown { agent: stored.agent });
    }
    refuse_shared(others.iter())?;
    match others.first().filter(|_| !takeover) {
        Some(first) => Err(AdoptRefusal::Open { owner: first.words(), native_id: stored.native_id.clone() }.into()),
        None => Ok(others),
    }
}

/// Ends them, and tells what of their last turn is on disk.
pub fn end(engine: &Engine, found: &Found, others: &[ConversationOwner], tell: &mut dyn FnMut(Notice)) -> Result<()> {
    for process in others {
        // Where the transcript is may depend on the folder, which a process that has just begun knows best.
        let cwd = found.about.cwd.as_deref().or(process.cwd.as_deref()).unwrap_or_default();
        engine.end_foreign(process, &found.stored.native_id, cwd, tell)?;
    }
    Ok(())
}

/// Every process at this conversation that ostler did not start. Refuses what is not to be ended: a session of another home, and
/// a process that may be at another conversation.
fn others(engine: &Engine, stored: &Stored) -> Result<Vec<ConversationOwner>> {
    let mut found = Vec::new();
    for writer in writers(&engine.environment, stored.agent, &stored.native_id)? {
        match writer {
            // It is being adopted into this home just now: who makes the session decides that under a lock.
            Writer::Session(occupant) if is_being_made(engine, &occupant) => {}
            Writer::Session(occupant) => {
                return Err(AdoptRefusal::KeptElsewhere { owner: occupant.words() }.into());
            }
            Writer::Foreign(foreign) => found.push(foreign),
        }
    }
    for at in in_database::at(&engine.home, stored, &engine.environment.lookup())? {
        match at {
            At::This(owner) => found.push(owner),
            At::Perhaps(owner, other) => {
                let (owner, agent) = (owner.words(), owner.agent.clone());
                return Err(AdoptRefusal::PerhapsOpen { owner, other: other.to_string(), agent }.into());
            }
        }
    }
    Ok(found)
}

/// Whether a session lies in this home under the name that it has until it is launched.
fn is_being_made(engine: &Engine, occupant: &Occupant) -> bool {
    let hidden = hidden_name(occupant.session.as_str());
    Path::new(&occupant.folder) == engine.home.sessions().join(hidden)
}
