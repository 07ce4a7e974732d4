//! All agents that the user can name: those that ostler knows, and the user's own.

use super::{Abilities, Messages, abilities, in_path, is_program, known, location, versions};
use crate::config::own_agents::Protocol;
use crate::engine::Engine;
use ostler_core::SCHEMA;
use ostler_core::record::Mode;
use serde::Serialize;
use std::path::PathBuf;

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentInfo {
    /// The version of this object's format.
    pub schema: u32,
    /// What it is called in `run`.
    pub name: String,
    /// Whether it can be started.
    pub installed: bool,
    /// The real program, behind any launcher.
    pub program: Option<PathBuf>,
    /// The version that the program reports.
    pub version: Option<String>,
    /// What to install when it is not there.
    pub npm_package: Option<&'static str>,
    /// It is one of the user's own, from config.toml.
    pub own: bool,
    /// What can be done with it.
    #[serde(flatten)]
    pub abilities: Abilities,
}

impl Engine {
    /// Every agent, whether it is installed, and what works with it. Installed ones are asked for their version.
    #[must_use]
    pub fn agents(&self) -> Vec<AgentInfo> {
        let mut agents = self.known_agents();
        agents.extend(self.own_agents());
        agents
    }

    fn known_agents(&self) -> Vec<AgentInfo> {
        let agents: Vec<_> = known().collect();
        let programs: Vec<Option<PathBuf>> = agents.iter().map(|agent| location(&self.environment, *agent)).collect();
        let others = agents.iter().zip(&programs).map(|(agent, path)| path.clone().filter(|_| is_program(*agent)));
        let versions = versions(&self.environment, &others.collect::<Vec<_>>());
        let described = agents.iter().zip(programs).zip(versions);
        described
            .map(|((agent, program), version)| AgentInfo {
                schema: SCHEMA,
                name: agent.name().to_owned(),
                installed: program.is_some() || !is_program(*agent),
                version: if is_program(*agent) { version } else { Some(env!("CARGO_PKG_VERSION").to_owned()) },
                program,
                npm_package: agent.package(),
                own: false,
                abilities: abilities(&self.environment, *agent),
            })
            .collect()
    }

    /// The user's own agents are not asked for their version: it is not known what they do with `--version`.
    fn own_agents(&self) -> impl Iterator<Item = AgentInfo> {
        self.config.agents.iter().map(|(name, agent)| {
            let word = agent.command.first().map_or("", String::as_str);
            let program = match word.contains('/') {
                true => Some(PathBuf::from(word)).filter(|path| path.is_file()),
                false => in_path(&self.environment, word),
            };
            let spoken = match agent.protocol {
                Protocol::Acp => super::find(agent.protocol.agent()),
                Protocol::None => None,
            };
            let as_command = Abilities {
                headless: agent.mode == Mode::Headless,
                terminal: true,
                messages: Messages::None,
                asks: false,
                saved_proof: false,
            };
            AgentInfo {
                schema: SCHEMA,
                name: name.clone(),
                installed: program.is_some(),
                program,
                version: None,
                npm_package: None,
                own: true,
                abilities: spoken.map_or(as_command, |agent| abilities(&self.environment, agent)),
            }
        })
    }
}
