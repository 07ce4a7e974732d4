//! Whether a request is possible, and what follows from it: the agent's mode, its arguments, the conversation that it
//! continues.

use super::refusal::{LaunchRefusal, OnlyForAgents};
use super::{COMMAND, JOB, Launch};
use crate::config::own_agents::{OwnAgent, Protocol};
use crate::engine::Engine;
use crate::error::{Error, Result};
use ostler_agents::Agent;
use ostler_core::MESSAGE_LIMIT;
use ostler_core::record::Mode;
use std::path::{Path, PathBuf};

/// What follows from a valid request.
pub struct Checked {
    pub mode: Mode,
    pub arguments: Vec<String>,
    /// The conversation to continue, if the agent's own arguments have named one.
    pub conversation: Option<String>,
}

type Refused<T> = std::result::Result<T, LaunchRefusal>;

pub fn check(engine: &Engine, request: &Launch) -> Result<Checked> {
    for message in request.prompt.iter().chain(&request.further) {
        if message.trim().is_empty() {
            return Err(LaunchRefusal::PromptEmpty.into());
        }
        if message.len() > MESSAGE_LIMIT {
            return Err(LaunchRefusal::PromptTooLong.into());
        }
    }
    if let Some((name, own)) = engine.config.own_agent(&request.agent)? {
        let arguments = own.command.iter().chain(&request.arguments).cloned().collect();
        return Ok(match own.protocol {
            Protocol::None => own_command(request, name, own, arguments),
            Protocol::Acp => behind_protocol(request, name, arguments),
        }?);
    }
    let agent =
        ostler_agents::find(&request.agent).ok_or_else(|| Error::UnknownAgent { agent: request.agent.clone() })?;
    Ok(match agent.name() {
        JOB => job(request),
        COMMAND => command(request),
        "acp" => behind_protocol(request, agent.name(), request.arguments.clone()),
        _ => known_agent(request, agent),
    }?)
}

fn known_agent(request: &Launch, agent: &dyn Agent) -> Refused<Checked> {
    let mode = request.mode.unwrap_or(Mode::Headless);
    if request.prompt.is_none() && mode == Mode::Headless && !request.keep {
        return Err(LaunchRefusal::NeedsPrompt { agent: agent.name().to_owned(), has_terminal: true });
    }
    if let Some(words) = agent.conflicts(&request.arguments) {
        return Err(LaunchRefusal::Conflict(words));
    }
    // If this argument were left to the agent, it would resume the conversation without our knowledge, and other
    // processes could not be kept out of the conversation.
    let (conversation, arguments) = match agent.named_conversation(&request.arguments) {
        Some((conversation, rest)) => (Some(conversation), rest),
        None => (None, request.arguments.clone()),
    };
    Ok(Checked { mode, arguments, conversation })
}

/// The user does not name this agent: a job is launched by its own command.
fn job(request: &Launch) -> Refused<Checked> {
    match request.job {
        Some(_) => Ok(Checked { mode: Mode::Headless, arguments: request.arguments.clone(), conversation: None }),
        None => Err(LaunchRefusal::NotAJob),
    }
}

fn command(request: &Launch) -> Refused<Checked> {
    let asked = [
        (request.keep, OnlyForAgents::Keep),
        (request.model.is_some(), OnlyForAgents::Model),
        (request.prompt.is_some(), OnlyForAgents::Prompt),
    ];
    if let Some((_, what)) = asked.into_iter().find(|(asked, _)| *asked) {
        return Err(LaunchRefusal::OnlyForAgents { what });
    }
    if request.arguments.first().is_none_or(String::is_empty) {
        return Err(LaunchRefusal::EmptyCommand);
    }
    let mode = request.mode.unwrap_or(Mode::Headless);
    Ok(Checked { mode, arguments: request.arguments.clone(), conversation: None })
}

/// A command with a name, to which further arguments are added.
fn own_command(request: &Launch, name: &str, own: &OwnAgent, arguments: Vec<String>) -> Refused<Checked> {
    if request.prompt.is_some() || request.keep || request.model.is_some() {
        return Err(LaunchRefusal::TakesNoPrompt { agent: name.to_owned() });
    }
    Ok(Checked { mode: request.mode.unwrap_or(own.mode), arguments, conversation: None })
}

/// A program that speaks the protocol takes prompts, and is a command with arguments of its own.
fn behind_protocol(request: &Launch, name: &str, command: Vec<String>) -> Refused<Checked> {
    let agent = name.to_owned();
    if command.first().is_none_or(String::is_empty) {
        return Err(LaunchRefusal::NeedsProgram { agent });
    }
    if request.mode == Some(Mode::Terminal) {
        return Err(LaunchRefusal::NoTerminal { agent });
    }
    if request.model.is_some() {
        return Err(LaunchRefusal::NoModel { agent });
    }
    if request.prompt.is_none() && !request.keep {
        return Err(LaunchRefusal::NeedsPrompt { agent, has_terminal: false });
    }
    Ok(Checked { mode: Mode::Headless, arguments: command, conversation: None })
}

impl Engine {
    /// The folder that a session works in, as an absolute path.
    pub(super) fn working_folder(&self, named: Option<&Path>) -> Refused<String> {
        let cwd: PathBuf = match named {
            Some(folder) => {
                std::fs::canonicalize(self.environment.folder().map_or(folder.to_owned(), |own| own.join(folder)))
                    .map_err(|error| LaunchRefusal::Folder { folder: folder.to_owned(), error })?
            }
            None => self.environment.folder().map_err(LaunchRefusal::CurrentFolder)?.to_owned(),
        };
        if !cwd.is_dir() {
            return Err(LaunchRefusal::NotAFolder { folder: cwd });
        }
        cwd.into_os_string().into_string().map_err(|path| LaunchRefusal::FolderNotText { folder: path.into() })
    }
}
