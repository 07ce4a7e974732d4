//! Launching: a new session, from a request to the first process.
//!
//! * `refusal`: what can be wrong with a request.
//! * `check`: whether it can be done, before anything is done.
//! * `default_agent`: which agent gets a prompt when none is named.
//! * `recorded`: what a recording brings along.

mod check;
mod default_agent;
mod prompt;
pub mod recorded;
mod refusal;

pub use prompt::read_prompt;
pub use refusal::{LaunchRefusal, OnlyForAgents};

use crate::error::Result;
use crate::limits;
use crate::notice::Notice;
use crate::owners::refuse_others;
use crate::prepare::{Prepared, prepare};
use crate::settings::Engine;
use check::Checked;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::record::{Mode, RequestKind, Session, beginning_of};
use ostler_keeper::launch;
use ostler_store::home::Place;
use ostler_sys::clock;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The agent that is not an agent: [`Launch::arguments`] are a command, which is kept like any other session.
pub const COMMAND: &str = "command";

/// A session that is to begin.
#[derive(Debug, Default)]
pub struct Launch {
    /// An agent that ostler knows, one of config.toml, or [`COMMAND`].
    pub agent: String,
    /// What it is told first.
    pub prompt: Option<String>,
    /// What it is told after that, message by message.
    pub further: Vec<String>,
    /// The working folder; that of the engine's environment when there is none.
    pub cwd: Option<PathBuf>,
    /// With or without a terminal; as the agent is configured when there is none.
    pub mode: Option<Mode>,
    /// It waits for further messages after its last turn.
    pub keep: bool,
    /// The model, by the agent's own name for it.
    pub model: Option<String>,
    /// A name that no other session has.
    pub name: Option<String>,
    /// Labels, by which sessions are selected.
    pub labels: BTreeMap<String, String>,
    /// What it may use of the machine.
    pub limits: limits::Asked,
    /// Further arguments of the agent's own, or the command.
    pub arguments: Vec<String>,
    /// What a program reads that takes no messages: a pipe or a file.
    pub piped: Option<OwnedFd>,
    /// A person is there who can answer questions.
    pub attended: bool,
}

/// A session that was launched.
#[derive(Debug)]
pub struct Launched {
    /// Where it is.
    pub place: Place,
    /// What it was asked to be.
    pub session: Session,
}

impl Engine {
    /// Refuses what [`Engine::launch`] would refuse because of the request itself. Nothing is done and nothing is read but settings.
    pub fn check_launch(&self, request: &Launch) -> Result<()> {
        check::check(self, request).map(drop)
    }

    /// Launches a session. When this returns, its program runs and its helpers exist.
    pub fn launch(&self, request: Launch, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
        let checked = check::check(self, &request)?;
        // Of several that want one name at once, one gets it: nobody else looks until the session exists.
        let _names = request.name.as_ref().map(|_| self.home.lock_names()).transpose()?;
        if let Some(name) = &request.name {
            self.check_name(name)?;
        }
        let session = self.describe(&request, &checked)?;
        if let Some(conversation) = &checked.conversation {
            refuse_others(&self.environment, &session.agent, conversation, None)?;
        }
        let resume = checked.conversation.is_some();
        let native_id = checked.conversation.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let prepared = prepare(self, &session, 1, &native_id, resume)?;
        let messages = request.prompt.into_iter().chain(request.further);
        let place = self.start(&session, &prepared, messages, request.piped)?;
        // Only now: a refused launch has its own message, and the first session creates the home whose disk is looked at.
        self.tell_when_low(tell);
        Ok(Launched { place, session })
    }

    /// Starts the first run of a session, with these messages in its inbox.
    pub(crate) fn start(
        &self,
        session: &Session,
        prepared: &Prepared,
        messages: impl Iterator<Item = String>,
        piped: Option<OwnedFd>,
    ) -> Result<Place> {
        let Prepared { record, files, environment } = prepared;
        let prompts: Vec<_> = messages.map(|text| self.request(1, RequestKind::Message { text, now: false })).collect();
        let piped = piped.filter(|_| session.mode == Mode::Headless && !record.plan.has_input());
        let launched = launch::Launch { session, run: record, prompts: &prompts, files, piped, environment };
        Ok(launch::launch(&self.home, launched, &self.launcher)?)
    }

    fn describe(&self, request: &Launch, checked: &Checked) -> Result<Session> {
        let cwd = self.working_folder(request.cwd.as_deref())?;
        let parent = self.own_session();
        Ok(Session {
            schema: SCHEMA,
            id: new_id(),
            name: request.name.clone(),
            agent: request.agent.clone(),
            cwd,
            mode: checked.mode,
            keep: request.keep,
            labels: request.labels.clone(),
            parent,
            fork: None,
            adopted: None,
            model: request.model.clone(),
            arguments: checked.arguments.clone(),
            prompt: request.prompt.as_deref().map(beginning_of),
            attended: request.attended,
            limits: limits::for_new(self, &request.limits, parent)?,
            created: clock::now(),
        })
    }

    fn tell_when_low(&self, tell: &mut dyn FnMut(Notice)) {
        const LOW: u64 = 64 << 20;
        let free = ostler_sys::dir::Dir::open(self.home.root()).and_then(ostler_sys::dir::free_space);
        if let Ok(free) = free
            && free < LOW
        {
            tell(Notice::LittleSpace { free, folder: self.home.root().to_owned() });
        }
    }
}

/// The id of a new session.
pub(crate) fn new_id() -> SessionId {
    SessionId::from_random(uuid::Uuid::new_v4().as_u128() as u64)
}
