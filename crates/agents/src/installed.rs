//! How an agent is installed, and what its environment must and must not have.

use crate::Agent;

/// What has to be known about an agent's program on a machine.
pub trait Installed {
    /// The npm package of the agent. `None` for what is not a program of its own: a part of ostler, a protocol, a
    /// command.
    fn package(&self) -> Option<&'static str> {
        None
    }

    /// Where the real program is, relative to the package of a launcher script with the same name.
    fn beside_its_launcher(&self) -> Vec<String> {
        Vec::new()
    }

    /// Arguments of the agent that people often give it, for an example.
    fn example_arguments(&self) -> Option<&'static str> {
        None
    }

    /// Variables that keep the program off the network when it is only asked for its version or its help.
    fn offline(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Variables that the agent sets for the programs that it starts. Another agent that finds them may refuse to run,
    /// so they are not passed on.
    fn nesting_marks(&self) -> &'static [&'static str] {
        &[]
    }
}

/// [`Installed::offline`] of all agents: a program is asked before it is known which agent it is.
pub fn offline() -> impl Iterator<Item = (&'static str, &'static str)> {
    crate::all().flat_map(|agent| agent.offline().iter().copied())
}

/// Whether any agent uses this variable to mark that it runs.
#[must_use]
pub fn is_nesting_mark(variable: &str) -> bool {
    crate::all().any(|agent| agent.nesting_marks().contains(&variable))
}

/// Every agent that is a program of its own, in the order in which they are listed.
pub fn programs() -> impl Iterator<Item = &'static dyn Agent> {
    crate::all().filter(|agent| agent.package().is_some())
}
