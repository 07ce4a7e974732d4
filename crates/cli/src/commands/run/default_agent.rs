//! Which agent a prompt goes to when none is named: the configured one, else the only one that is installed, else
//! nobody, with words that say what to do.

use crate::exit::{Failure, Result};
use ostler_agents::Agent;
use ostler_engine::config::Config;
use ostler_engine::installed;

pub fn default_agent(config: &Config) -> Result<&'static dyn Agent> {
    config.needs("default_agent")?;
    match &config.default_agent {
        Some(name) => configured(config, name),
        None => only_one(&installed::installed()),
    }
}

fn configured(config: &Config, name: &str) -> Result<&'static dyn Agent> {
    if config.agents.contains_key(name) {
        return Err(Failure::usage(format!(
            "default_agent {name:?} takes no prompt; start it with: ostler run {name}"
        )));
    }
    installed::known().find(|agent| agent.name() == name).ok_or_else(|| {
        Failure::usage(format!("default_agent {name:?} in config.toml is not an agent; list them with: ostler agents"))
    })
}

fn only_one(installed: &[&'static dyn Agent]) -> Result<&'static dyn Agent> {
    match installed {
        [only] => Ok(*only),
        [] => {
            let packages: Vec<&str> = installed::known().filter_map(|agent| agent.package()).collect();
            Err(Failure::usage(format!(
                "no agent is installed; install one with npm install -g ({}), or try the built-in demo: ostler run demo \"…\"",
                packages.join(", ")
            )))
        }
        [first, ..] => {
            let names: Vec<&str> = installed.iter().map(|agent| agent.name()).collect();
            Err(Failure::usage(format!(
                "{} are installed; name one, as in ostler run {} \"…\", or set default_agent in config.toml",
                names.join(", "),
                first.name()
            )))
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_only_one_is_taken_and_otherwise_it_is_said_what_to_do() {
        let all: Vec<_> = installed::known().filter(|agent| installed::is_program(*agent)).collect();
        assert_eq!(only_one(&all[..1]).map(Agent::name).map_err(|failure| failure.words).unwrap(), all[0].name());
        let words = only_one(&all[..2]).map(|_| ()).unwrap_err().words;
        assert_eq!(
            words,
            "claude, codex are installed; name one, as in ostler run claude \"…\", or set default_agent in config.toml"
        );
        let words = only_one(&[]).map(|_| ()).unwrap_err().words;
        assert!(words.contains("npm install -g") && words.contains("@anthropic-ai/claude-code"), "{words}");
        assert!(words.contains("ostler run demo"), "{words}");
    }
}
