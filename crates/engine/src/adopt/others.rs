//! A conversation that is adopted must not be open in another process. When a session of another home has it, the
//! adoption is refused. A process that ostler did not start is named in the refusal, or ended properly when the caller
//! asks for that.

use super::find::Found;
use super::refusal::AdoptRefusal;
use crate::engine::Engine;
use crate::error::Result;
use crate::foreign::ConversationOwner;
use crate::foreign::in_database::{self, At};
use crate::foreign::stored::Stored;
use crate::notice::Notice;
use crate::owners::{Writer, writers};
use crate::takeover::refuse_shared;
use ostler_store::home::hidden_name;
use ostler_writers::lock::Occupant;
use std::path::Path;

/// The processes that have the conversation open. With `takeover` they are to be ended; without it, any such process is
/// a reason to refuse.
pub fn at(
    engine: &Engine,
    stored: &Stored,
    takeover: bool,
    tell: &mut dyn FnMut(Notice),
) -> Result<Vec<ConversationOwner>> {
    let others = others(engine, stored)?;
    if stored.kept_by().is_some_and(|agent| !agent.reports_processes()) {
        tell(Notice::OwnersUnknown { agent: stored.agent });
    }
    refuse_shared(others.iter())?;
    match others.first().filter(|_| !takeover) {
        Some(first) => Err(AdoptRefusal::Open { owner: first.words(), native_id: stored.native_id.clone() }.into()),
        None => Ok(others),
    }
}

/// Ends these processes, and reports how much of their last turn is on disk.
pub fn end(engine: &Engine, found: &Found, others: &[ConversationOwner], tell: &mut dyn FnMut(Notice)) -> Result<()> {
    for process in others {
        // The path of the transcript may depend on the working folder. When the conversation does not name it yet, the
        // folder of the process is used.
        let cwd = found.about.cwd.as_deref().or(process.cwd.as_deref()).unwrap_or_default();
        engine.end_foreign(process, &found.stored.native_id, cwd, tell)?;
    }
    Ok(())
}

/// Every process that uses this conversation and that ostler did not start. Refuses what must not be ended: a session
/// of another home, and a process that may be using another conversation.
fn others(engine: &Engine, stored: &Stored) -> Result<Vec<ConversationOwner>> {
    let mut found = Vec::new();
    for writer in writers(&engine.environment, stored.agent, &stored.native_id)? {
        match writer {
            // Another command may be adopting the conversation into this home at this moment. `keep` decides under a
            // lock which command succeeds.
            Writer::Session(occupant) if is_of_this_home(engine, &occupant) => {}
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

/// Whether the occupant is a session of this home. Older versions noted the hidden name that its folder has until its
/// records are complete.
fn is_of_this_home(engine: &Engine, occupant: &Occupant) -> bool {
    let id = occupant.session.as_str();
    [id.to_owned(), hidden_name(id)].iter().any(|name| Path::new(&occupant.folder) == engine.home.sessions().join(name))
}
