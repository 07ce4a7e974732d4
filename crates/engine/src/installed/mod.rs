//! Which agents are on this machine: where the real program is, which version it reports, what can be done with it.
//!
//! What works is derived from the same code that keeps the agent, so that the list cannot promise what a session does
//! not do.

mod list;
mod versions;

pub use list::AgentInfo;
pub use ostler_agents::acp::EXAMPLE as PROTOCOL_EXAMPLE;
pub use versions::{knows_option, versions};

use crate::environment::Environment;
use jiff::Timestamp;
use ostler_agents::Agent;
use ostler_agents::launch::Launching;
use ostler_agents::speak::Answer;
use ostler_core::SCHEMA;
use ostler_core::fact::Ask;
use ostler_core::id::SessionId;
use ostler_core::record::{Mode, Session, Speaks};
use ostler_keeper::agent_program;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How an agent takes further messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Messages {
    /// All in one process.
    OneProcess,
    /// Each in a process of its own, which resumes the conversation.
    ProcessPerTurn,
    /// Only what is typed into its terminal.
    None,
}

/// What a session with an agent can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Abilities {
    /// It works without a terminal.
    pub headless: bool,
    /// It works in a terminal.
    pub terminal: bool,
    /// How it takes messages.
    pub messages: Messages,
    /// Its questions are passed on to the user, and the answers to the agent.
    pub asks: bool,
    /// A finished turn is proven to be in its transcript.
    pub saved_proof: bool,
}

/// Every agent that a person can name, in the order in which they are listed.
pub fn known() -> impl Iterator<Item = &'static dyn Agent> {
    ostler_agents::all().filter(|agent| agent.name() != "command")
}

/// Whether it is a program of its own. The demo is part of ostler, and for a protocol the user names the program that
/// speaks it.
pub fn is_program(agent: &dyn Agent) -> bool {
    agent.package().is_some()
}

/// The agents that are programs of their own; examples in help use their names.
pub fn programs() -> impl Iterator<Item = &'static dyn Agent> {
    ostler_agents::installed::programs()
}

/// The agent with this name; also `command`, which users do not name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    ostler_agents::find(name)
}

/// Where the shell of this environment would find a program.
#[must_use]
pub fn in_path(environment: &Environment, name: &str) -> Option<PathBuf> {
    agent_program::find_on(&environment.variable("PATH")?, name)
}

/// Those of the known agents that are installed.
#[must_use]
pub fn installed(environment: &Environment) -> Vec<&'static dyn Agent> {
    known().filter(|agent| is_program(*agent) && in_path(environment, agent.name()).is_some()).collect()
}

/// The real program, behind any launcher; `None` when it is not installed.
#[must_use]
pub fn location(environment: &Environment, agent: &dyn Agent) -> Option<PathBuf> {
    match agent.name() {
        "demo" => return std::env::current_exe().ok(),
        "acp" => return None,
        _ => {}
    }
    let on_path = in_path(environment, agent.name())?;
    let real = agent_program::resolve_on(environment.variable("PATH").as_deref(), agent, agent.name());
    Some(if real == agent.name() { on_path } else { PathBuf::from(real) })
}

/// What a session with this agent can do, derived from how the agent would be kept.
pub fn abilities(environment: &Environment, agent: &dyn Agent) -> Abilities {
    let variable = environment.lookup();
    let plan = |mode| {
        let session = sample(agent, mode);
        let launching = Launching {
            session: &session,
            own_binary: "",
            native_id: "",
            resume: false,
            linger_ms: 0,
            variable: &variable,
            folder: "",
            file: &|_| None,
            knows: &|_| false,
        };
        agent.launch(&launching).plan
    };
    let headless = plan(Mode::Headless);
    let messages = match headless.speaks() {
        Speaks::Turns => Messages::OneProcess,
        Speaks::OneTurn => Messages::ProcessPerTurn,
        Speaks::Bytes | Speaks::Hooks => Messages::None,
    };
    let ask = Ask {
        request: String::new(),
        tool: None,
        input: Value::Null,
        text: String::new(),
        suggestions: Value::Null,
        details: Value::Null,
    };
    Abilities {
        headless: headless.mode() == Mode::Headless,
        terminal: plan(Mode::Terminal).mode() == Mode::Terminal,
        messages,
        asks: agent.answer(&ask, &Answer { allow: false, always: false, text: None }).is_some(),
        saved_proof: agent.transcript(&uuid::Uuid::nil().to_string(), "/", &variable).is_some()
            || agent.database(&variable).is_some(),
    }
}

fn sample(agent: &dyn Agent, mode: Mode) -> Session {
    Session {
        schema: SCHEMA,
        id: SessionId::from_random(0),
        name: None,
        agent: agent.name().to_owned(),
        cwd: "/".to_owned(),
        mode,
        keep: false,
        labels: BTreeMap::new(),
        parent: None,
        fork: None,
        origin: None,
        read_only: false,
        adopted: None,
        model: None,
        arguments: Vec::new(),
        prompt: None,
        attended: false,
        limits: ostler_core::limits::Limits::default(),
        rules: ostler_core::rules::Rules::default(),
        worktree: None,
        job: None,
        driven: false,
        group: None,
        created: Timestamp::UNIX_EPOCH,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_works_is_what_the_keeping_code_does() {
        let of = |name: &str| abilities(&Environment::default(), ostler_agents::find(name).unwrap());
        assert_eq!(of("claude").messages, Messages::OneProcess);
        assert!(of("claude").asks && of("claude").headless && of("claude").terminal);
        assert_eq!(of("codex").messages, Messages::ProcessPerTurn);
        assert!(!of("codex").asks);
        assert!(of("acp").asks && of("acp").headless && !of("acp").terminal);
        assert!(
            is_program(ostler_agents::find("claude").unwrap()) && !is_program(ostler_agents::find("demo").unwrap())
        );
    }
}
