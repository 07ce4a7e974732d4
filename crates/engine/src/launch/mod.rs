//! Launching: a new session, from a request to the first process.
//!
//! * `refusal`: what can be wrong with a request.
//! * `check`: whether it can be done, before anything is done.
//! * `default_agent`: which agent gets a prompt when none is named.
//! * `recorded`: what a recording contributes to a launch.

mod check;
mod default_agent;
mod prompt;
pub mod recorded;
mod refusal;

pub use prompt::{prompt_files, read_prompt};
pub use refusal::{LaunchRefusal, OnlyForAgents};

use crate::engine::Engine;
use crate::error::Result;
use crate::limits;
use crate::notice::Notice;
use crate::owners::refuse_others;
use crate::prepare::{Prepared, prepare};
use crate::queues::StartLater;
use crate::worktrees;
use check::Checked;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::record::{Mode, Origin, RequestKind, Session, beginning_of};
use ostler_core::rules::Rules;
use ostler_core::worktree::Worktree;
use ostler_keeper::launch;
use ostler_store::home::Place;
use ostler_sys::clock;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The agent name of plain commands: [`Launch::arguments`] are a command, which is kept like any other session.
pub const COMMAND: &str = "command";

/// A request for a new session.
#[derive(Debug, Default)]
pub struct Launch {
    /// An agent that ostler knows, one of config.toml, or [`COMMAND`].
    pub agent: String,
    /// What it is told first.
    pub prompt: Option<String>,
    /// What it is told after that, message by message.
    pub further: Vec<String>,
    /// The working folder; `None`: that of the engine's environment.
    pub cwd: Option<PathBuf>,
    /// With or without a terminal; `None`: as the agent is configured.
    pub mode: Option<Mode>,
    /// It waits for further messages after its last turn.
    pub keep: bool,
    /// The model, by the agent's own name for it.
    pub model: Option<String>,
    /// A name that no other session has.
    pub name: Option<String>,
    /// Labels, by which sessions are selected.
    pub labels: BTreeMap<String, String>,
    /// How much of the machine it may use.
    pub limits: limits::Asked,
    /// Restarts and limits of its turns, which the user has set in advance.
    pub rules: Rules,
    /// Further arguments of the agent's own, or the command.
    pub arguments: Vec<String>,
    /// The input of a program that takes no messages: a pipe or a file.
    pub piped: Option<OwnedFd>,
    /// A person is there who can answer questions.
    pub attended: bool,
    /// It gets a git worktree of its own.
    pub worktree: Option<worktrees::Asked>,
    /// It is refused when another session works in the same tree.
    pub exclusive: bool,
    /// The session that it comes from.
    pub relative: Option<Relative>,
    /// Its agent may only read.
    pub read_only: bool,
    /// The id that was reserved for it. A repeated launch with the same id finds the session that the first one made. A
    /// launch that was killed in the middle is done again. So there are never two sessions.
    pub id: Option<SessionId>,
    /// It drives other sessions: the kind of job, and what its driver has to know. The agent is [`JOB`].
    pub job: Option<Job>,
    /// The group that it is started in.
    pub group: Option<String>,
    /// When its program starts, if not at once.
    pub start: StartLater,
}

/// The origin of a session that continues or reviews the work of another session.
#[derive(Clone, Debug)]
pub struct Relative {
    /// The other session.
    pub parent: SessionId,
    /// How the new session is related to it.
    pub origin: Origin,
    /// The tree of the other session, in which it works too.
    pub worktree: Option<Box<Worktree>>,
}

/// A job: which one, and what its driver reads when it starts ([`Engine::job_spec`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// A word for people and for the driver: `loop`.
    pub kind: String,
    /// JSON.
    pub spec: Vec<u8>,
}

/// The agent of a job: ostler itself.
pub const JOB: &str = ostler_agents::job::NAME;

/// The file with what a job has to know, in the folder of its first run.
pub(crate) const SPEC: &str = "job.json";

/// A session that was launched.
#[derive(Debug)]
pub struct Launched {
    /// Where it is.
    pub place: Place,
    /// What was asked for.
    pub session: Session,
}

impl Engine {
    /// Refuses what [`Engine::launch`] would refuse because of the request itself. Nothing is done and nothing is read
    /// but settings.
    pub fn check_launch(&self, request: &Launch) -> Result<()> {
        check::check(self, request).map(drop)
    }

    /// Launches a session. When this returns, its program runs and its helpers exist.
    pub fn launch(&self, mut request: Launch, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
        let checked = check::check(self, &request)?;
        if let Some(id) = request.id
            && let Some(place) = self.settled(id)?
        {
            let session = place.open()?.session()?;
            return Ok(Launched { place, session });
        }
        self.check_start(&request.start)?;
        let tree_name = request.worktree.as_ref().and_then(|asked| asked.name.clone());
        // When several commands ask for one name at the same time, one gets it: the lock is held until the session
        // exists.
        let _names = request.name.as_ref().or(tree_name.as_ref()).map(|_| self.home.lock_names()).transpose()?;
        request.name = self.name_for(request.name, tree_name)?;
        let mut session = self.describe(&request, &checked)?;
        if let Some(conversation) = &checked.conversation {
            refuse_others(&self.environment, &session.agent, conversation, None)?;
        }
        let resume = checked.conversation.is_some();
        let native_id = checked.conversation.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        // A job takes no messages: its prompt is a part of what it is told.
        let told = request.job.is_none();
        let messages: Vec<String> = request.prompt.into_iter().chain(request.further).filter(|_| told).collect();
        let start = |session: &Session, _: &mut dyn FnMut(Notice)| {
            let mut prepared = prepare(self, session, 1, &native_id, resume)?;
            prepared.files.extend(request.job.map(|job| (SPEC, job.spec)));
            prepared.record.start_when = self.start_when(&request.start)?;
            if prepared.record.start_when.is_some() {
                self.check_program(session, &prepared.record)?;
            }
            self.start(session, &prepared, messages.into_iter(), request.piped)
        };
        let place = match &request.worktree {
            Some(asked) => {
                if request.id.is_some() {
                    self.remove_abandoned_tree(&session, asked)?;
                }
                self.in_worktree(&mut session, asked, tell, start)?
            }
            None => {
                self.look_for_others(&session, request.exclusive, tell)?;
                let addition = session.name.as_ref().and_then(|_| self.home.begin_addition());
                let place = start(&session, tell)?;
                if let Some(addition) = addition {
                    addition.done(session.id);
                }
                place
            }
        };
        // Only now: a refused launch has its own message, and the first session creates the home whose disk is looked
        // at.
        self.tell_when_low(tell);
        Ok(Launched { place, session })
    }

    /// What a new session is called. The caller holds the lock on names.
    pub(crate) fn name_for(&self, name: Option<String>, tree: Option<String>) -> Result<Option<String>> {
        match name {
            Some(name) => self.check_name(&name).map(|()| Some(name)),
            // The name that the user gave to the tree is also the name of the session, if no other session has it.
            None => Ok(tree.filter(|name| self.check_name(name).is_ok())),
        }
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
        let relative = request.relative.as_ref();
        Ok(Session {
            schema: SCHEMA,
            id: request.id.unwrap_or_else(new_id),
            name: request.name.clone(),
            agent: request.agent.clone(),
            cwd,
            mode: checked.mode,
            keep: request.keep,
            labels: request.labels.clone(),
            parent: relative.map(|relative| relative.parent).or(parent),
            fork: None,
            origin: relative.map(|relative| relative.origin),
            read_only: request.read_only,
            adopted: None,
            model: request.model.clone(),
            arguments: checked.arguments.clone(),
            prompt: request.prompt.as_deref().map(beginning_of),
            attended: request.attended,
            limits: limits::for_new(self, &request.limits, parent)?,
            rules: request.rules.clone(),
            worktree: relative.and_then(|relative| relative.worktree.clone()),
            job: request.job.as_ref().map(|job| job.kind.clone()),
            driven: match parent {
                Some(id) => self.home.place_of(id)?.is_some_and(|place| self.is_job(&place)),
                None => false,
            },
            group: request.group.clone(),
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
