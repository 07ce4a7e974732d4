//! Adopting: a conversation that was begun outside ostler becomes a session.
//!
//! * `find`: which conversation is meant.
//! * `others`: no other process may have the conversation open; such processes may be ended properly first.
//! * `keep`: makes the session, completely or not at all, without starting anything.
//! * `refusal`: why a conversation is not adopted.
//!
//! A process that is started afterwards is the next run of that session, started by [`Engine::resume`].

mod find;
mod keep;
mod others;
mod refusal;

pub use find::Found;
pub(crate) use find::locate;
pub use refusal::AdoptRefusal;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::foreign::ConversationOwner;
use crate::launch::Launched;
use crate::limits;
use crate::notice::Notice;
use ostler_core::record::Mode;
use std::path::Path;

/// What the session is to be.
#[derive(Clone, Debug)]
pub struct Adopt {
    /// A name that no other session has.
    pub name: Option<String>,
    /// With a terminal or without.
    pub mode: Mode,
    /// It waits for further messages after a turn, once it is started.
    pub keep: bool,
    /// The model of its next run.
    pub model: Option<String>,
    /// Limits of its next run.
    pub limits: limits::Asked,
    /// Further arguments of the agent's own.
    pub arguments: Vec<String>,
    /// A person is there who can answer questions.
    pub attended: bool,
}

/// A conversation that can be adopted, and the processes that have it open.
#[derive(Debug)]
pub struct Adoptable<'e> {
    engine: &'e Engine,
    /// The conversation.
    pub found: Found,
    others: Vec<ConversationOwner>,
}

impl Engine {
    /// Finds the conversation that a word names: its agent's own id, the beginning of that id, or its transcript.
    /// Refuses a conversation that cannot be adopted, and one that another process has open, unless `takeover` allows
    /// ending that process.
    pub fn adoptable(&self, word: &str, takeover: bool, tell: &mut dyn FnMut(Notice)) -> Result<Adoptable<'_>> {
        let found = find::find(self, word)?;
        let others = others::at(self, &found.stored, takeover, tell)?;
        if others.is_empty() {
            refuse_not_resumable(&found)?;
        } else {
            // The process may not have written the rest of the conversation yet, so only the folder is checked.
            refuse_without_folder(&found)?;
        }
        Ok(Adoptable { engine: self, found, others })
    }
}

impl Adoptable<'_> {
    /// Refuses a request that [`Adoptable::adopt`] would refuse, before any process is ended.
    pub fn check(&self, request: &Adopt) -> Result<()> {
        if let Some(name) = &request.name {
            self.engine.check_name(name)?;
        }
        let agent = ostler_agents::find(self.found.stored.agent)
            .ok_or_else(|| Error::UnknownAgent { agent: self.found.stored.agent.to_owned() })?;
        // Arguments that conflict with what ostler does are refused, as in `launch`.
        if let Some(why) = agent.conflicts(&request.arguments) {
            return Err(AdoptRefusal::Conflict(why).into());
        }
        if agent.named_conversation(&request.arguments).is_some() {
            return Err(AdoptRefusal::NamedTwice.into());
        }
        crate::prepare::check_installed(&self.engine.environment, agent)?;
        self.engine.home.open_or_make(&self.engine.home.sessions())?;
        Ok(())
    }

    /// Ends the processes that have the conversation open, and makes the session. Nothing is started.
    pub fn adopt(mut self, request: &Adopt, tell: &mut dyn FnMut(Notice)) -> Result<(Launched, Found)> {
        self.check(request)?;
        if !self.others.is_empty() {
            others::end(self.engine, &self.found, &self.others, tell)?;
            self.found.read_again()?;
            refuse_not_resumable(&self.found)?;
        }
        let launched = keep::keep(self.engine, &self.found, request, tell)?;
        Ok((launched, self.found))
    }
}

/// Refuses what the agent itself would refuse, before a session is made.
fn refuse_not_resumable(found: &Found) -> Result<()> {
    let (agent, native_id) = (found.stored.agent, found.stored.native_id.clone());
    if found.about.messages == 0 {
        return Err(AdoptRefusal::NoMessages { native_id, agent }.into());
    }
    if found.about.cwd.is_none() {
        return Err(AdoptRefusal::NoFolder { native_id, agent }.into());
    }
    refuse_without_folder(found)
}

/// Agents continue a conversation in the folder in which it was begun, so that folder has to exist.
fn refuse_without_folder(found: &Found) -> Result<()> {
    let (agent, native_id) = (found.stored.agent, found.stored.native_id.clone());
    match found.about.cwd.as_deref().filter(|cwd| !Path::new(cwd).is_dir()) {
        Some(gone) => Err(AdoptRefusal::FolderGone { native_id, agent, folder: gone.to_owned() }.into()),
        None => Ok(()),
    }
}
