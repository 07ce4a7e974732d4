//! Nobody else may be at a conversation that is adopted. A session of ostler has it already; a process of somebody else's is
//! named, and ended properly when that is asked for.

use super::find::Found;
use crate::commands::resume::{end_stranger, refuse_shared, say_what_is_saved, wait_until_written};
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::say::tell;
use ostler_engine::foreign::Holder;
use ostler_engine::foreign::in_database::{self, At};
use ostler_engine::foreign::stored::Stored;
use ostler_engine::owners::{Writer, writers};
use ostler_keeper::launch::hidden_name;
use ostler_writers::lock::Occupant;
use std::path::Path;

/// Whoever has it open, to be ended with `takeover`; without, they are a refusal.
pub fn at(context: &Context, stored: &Stored, takeover: bool) -> Result<Vec<Holder>> {
    let strangers = strangers(context, stored)?;
    if stored.kept_by().is_some_and(|agent| !agent.tells_its_processes()) {
        tell!(
            "ostler: {} does not tell which process has a conversation open; make sure that none has this one open",
            stored.agent
        );
    }
    refuse_shared(strangers.iter())?;
    match strangers.first().filter(|_| !takeover) {
        Some(first) => Err(Failure::new(
            Code::Refused,
            format!(
                "{} has the conversation open; end it there, or take over: ostler adopt --takeover {}",
                first.words(),
                stored.native_id
            ),
        )),
        None => Ok(strangers),
    }
}

/// Ends them, and says what of their last turn is on disk.
pub fn end(context: &Context, found: &Found, strangers: &[Holder]) -> Result<()> {
    for stranger in strangers {
        // Where the transcript is may depend on the folder, which a process that has just begun knows best.
        let cwd = found.about.cwd.as_deref().or(stranger.cwd.as_deref()).unwrap_or_default();
        wait_until_written(&context.engine.environment, stranger, &found.stored.native_id, cwd)?;
        end_stranger(stranger, context.engine.config.grace)?;
        say_what_is_saved(stranger, &found.stored.native_id, cwd)?;
    }
    Ok(())
}

/// Every process of somebody else's at this conversation. Refuses what is no stranger's to end: a session of another home, and
/// a process that may be at another conversation.
fn strangers(context: &Context, stored: &Stored) -> Result<Vec<Holder>> {
    let mut strangers = Vec::new();
    for writer in writers(&context.engine.environment, stored.agent, &stored.native_id)? {
        match writer {
            // Somebody adopts it into this home just now: who makes the session decides that under a lock.
            Writer::Session(occupant) if is_being_made(context, &occupant) => {}
            Writer::Session(occupant) => {
                return Err(Failure::new(
                    Code::Refused,
                    format!("already kept: {}; continue it there with ostler resume", occupant.words()),
                ));
            }
            Writer::Stranger(stranger) => strangers.push(stranger),
        }
    }
    for at in in_database::at(&context.engine.home, stored, &variable)? {
        match at {
            At::This(holder) => strangers.push(holder),
            At::Perhaps(holder, other) => {
                let (words, agent) = (holder.words(), &holder.agent);
                return Err(Failure::new(
                    Code::Refused,
                    format!(
                        "{words} has this conversation or {other} open, and {agent} does not tell which; end it there first"
                    ),
                ));
            }
        }
    }
    Ok(strangers)
}

/// Whether a session lies in this home under the name that it has until it stands.
fn is_being_made(context: &Context, occupant: &Occupant) -> bool {
    let hidden = hidden_name(occupant.session.as_str());
    Path::new(&occupant.folder) == context.engine.home.sessions().join(hidden)
}
