//! Which agent a prompt goes to when none is named: the configured one, else the only one that is installed, else none.

use super::refusal::LaunchRefusal;
use crate::config::Config;
use crate::engine::Engine;
use crate::error::Result;
use crate::installed;
use ostler_agents::Agent;

impl Engine {
    /// The agent that gets a prompt when none is named.
    pub fn default_agent(&self) -> Result<&'static dyn Agent> {
        self.config.needs("default_agent")?;
        Ok(match &self.config.default_agent {
            Some(name) => configured(&self.config, name),
            None => only_one(&installed::installed(&self.environment)),
        }?)
    }
}

fn configured(config: &Config, name: &str) -> std::result::Result<&'static dyn Agent, LaunchRefusal> {
    if config.agents.contains_key(name) {
        return Err(LaunchRefusal::DefaultTakesNoPrompt { name: name.to_owned() });
    }
    let known = installed::known().find(|agent| agent.name() == name);
    known.ok_or_else(|| LaunchRefusal::DefaultUnknown { name: name.to_owned() })
}

fn only_one(installed: &[&'static dyn Agent]) -> std::result::Result<&'static dyn Agent, LaunchRefusal> {
    match installed {
        [only] => Ok(*only),
        [] => {
            let packages = installed::known().filter_map(|agent| agent.package()).collect();
            Err(LaunchRefusal::NoneInstalled { packages })
        }
        several => Err(LaunchRefusal::SeveralInstalled { names: several.iter().map(|agent| agent.name()).collect() }),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_only_one_is_taken_and_otherwise_it_is_told_which_there_are() {
        let all: Vec<_> = installed::known().filter(|agent| installed::is_program(*agent)).collect();
        assert_eq!(only_one(&all[..1]).unwrap().name(), all[0].name());
        let several = only_one(&all[..2]).err().unwrap();
        assert_eq!(several.to_string(), "claude, codex are installed");
        let none = only_one(&[]).err().unwrap();
        let npm = |packages: &[&str]| packages.contains(&"@anthropic-ai/claude-code");
        assert!(matches!(&none, LaunchRefusal::NoneInstalled { packages } if npm(packages)), "{none:?}");
    }
}
