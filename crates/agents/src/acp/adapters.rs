//! Which agent is behind a program that speaks the protocol. Such a program keeps its conversations where that agent
//! keeps them, under the same names: they are the same conversations, and each must have one writer.
//!
//! The agent is known from the command, and then from the program itself, by the `agentInfo` in its answer to
//! `initialize`.

use crate::Agent;

/// An agent that runs behind a program that speaks the protocol.
pub trait Behind {
    /// The names of the programs, packages and `agentInfo` that have this agent behind them.
    fn protocol_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether such a program answers `session/load` only after it has repeated the complete conversation. Measured for
    /// each program, and not assumed for an unknown one.
    fn repeats_history_first(&self) -> bool {
        false
    }

    /// Whether such a program prints its own notices as if the agent had said them.
    fn mixes_in_notices(&self) -> bool {
        false
    }
}

/// Programs that run what is named in their arguments.
const RUNNERS: [&str; 7] = ["npx", "bunx", "pnpx", "node", "bun", "env", "pnpm"];

/// The agent behind a command.
#[must_use]
pub fn of_command(command: &[String]) -> Option<&'static dyn Agent> {
    let (program, arguments) = command.split_first()?;
    if RUNNERS.contains(&base(program)) {
        return arguments.iter().filter(|word| !word.starts_with('-')).find_map(|word| named(word));
    }
    named(program)
}

/// The agent of this name, which is that of a program, a package or an `agentInfo`.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Agent> {
    let name = base(name);
    // The name of a package may include its version.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    crate::all().find(|agent| agent.protocol_names().iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// The name without the folder, or without the scope of a package.
fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Option<&'static str> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        of_command(&words).map(Agent::name)
    }

    #[test]
    fn a_command_tells_by_its_program_or_by_what_a_runner_runs() {
        assert_eq!(of("gemini --acp"), Some("gemini"));
        assert_eq!(of("/usr/local/bin/opencode acp"), Some("opencode"));
        assert_eq!(of("claude-code-acp"), Some("claude"));
        assert_eq!(of("codex-acp -c sandbox_mode=danger-full-access"), Some("codex"));
        assert_eq!(of("npx -y @zed-industries/claude-code-acp@0.16.2"), Some("claude"));
        assert_eq!(of("env A=b gemini --acp"), Some("gemini"));
        assert_eq!(of("sh gemini"), None);
        assert_eq!(of("/home/gemini/agent"), None);
    }

    #[test]
    fn the_program_tells_as_the_four_that_we_know_do() {
        let of_info = |name: &str| named(name).map(Agent::name);
        assert_eq!(of_info("gemini-cli"), Some("gemini"));
        assert_eq!(of_info("OpenCode"), Some("opencode"));
        assert_eq!(of_info("@zed-industries/claude-code-acp"), Some("claude"));
        assert_eq!(of_info("codex-acp"), Some("codex"));
        assert_eq!(of_info("another"), None);
        assert_eq!(of_info(""), None);
    }
}
