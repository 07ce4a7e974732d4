//! Which agent is behind a program that speaks the protocol. Such a program keeps its conversations where that agent keeps
//! them, under the same names: so they are the same conversations, and have one writer.
//!
//! The command tells, and then the program itself, in the `agentInfo` of its answer to `initialize`.

use crate::Agent;

/// An agent as programs that speak the protocol have it behind them.
pub trait Behind {
    /// The names of programs, packages and `agentInfo` that have it behind them.
    fn protocol_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether such a program answers `session/load` only when it has told the whole conversation again. Measured; of one
    /// that nobody knows it is not assumed.
    fn tells_history_first(&self) -> bool {
        false
    }

    /// Whether such a program prints notices of its own as words of the agent.
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

/// The agent of this name, be it that of a program, a package or an `agentInfo`.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Agent> {
    let name = base(name);
    // A package may carry its version.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    crate::all().find(|agent| agent.protocol_names().iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// Without the folder, or the scope of a package.
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
