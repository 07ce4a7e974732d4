//! What is particular about each agent, as pure functions: bytes in, facts out, no clock, no I/O.
//!
//! An [`Agent`] says how to start it, how to read what it prints, how to write what it reads, and what proves that a
//! turn is in its transcript. Everything else in ostler is the same for all of them.

pub mod acp;
pub mod any_json;
pub mod claude;
pub mod codex;
pub mod command;
pub mod content;
mod conversation_arguments;
pub mod decoder;
pub mod demo;
pub mod gemini;
pub mod hook;
pub mod installed;
pub mod job;
pub mod launch;
pub mod lines;
pub mod opencode;
pub mod output_facts;
pub mod ownership;
pub mod prompt;
pub mod qwen;
pub mod recorded;
pub mod repair;
pub mod replay;
pub mod saved;
mod shared_fields;
mod shortened;
pub mod speak;
pub mod stored;
pub mod stream_json;
pub mod transcript;
pub mod unsaved_on_exit;

use installed::Installed;
use launch::Launcher;
use ostler_core::record::{Channel, Lines, Plan, Run, Session, Tty};
use ownership::Ownership;
use repair::Repair;
use saved::Saved;
use speak::Speak;
use stored::Stored;
use transcript::Transcript;

/// The file below the folder of a run in which an agent's plugin reports the conversation.
pub const CONVERSATION: &str = "conversation";

/// Looks up a variable of the environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// One kind of agent: a small trait for each of its aspects.
pub trait Agent:
    Launcher + Speak + Transcript + Saved + Ownership + Stored + Repair + Installed + acp::adapters::Behind + Sync
{
    /// The name by which people call it.
    fn name(&self) -> &'static str;
}

/// The agent of this name, or the player of its recordings.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    all().find(|agent| agent.name() == name).or_else(|| job::find(name)).or_else(|| replay::find(name))
}

/// The agent behind a run. An agent that a person has named in config.toml is known by its plan alone: it speaks the
/// protocol that any agent may speak, or it is a plain command whose output is not interpreted.
#[must_use]
pub fn find_for(name: &str, plan: &Plan) -> Option<&'static dyn Agent> {
    let unknown = || -> Option<&'static dyn Agent> {
        match plan.channel {
            Channel::Lines(Lines::OpenedTurns) => Some(&acp::Acp),
            Channel::Command | Channel::Tty(Tty::Nothing) => Some(&command::Command),
            Channel::Lines(Lines::Turns | Lines::OneTurn) | Channel::Tty(Tty::Hooks) => None,
        }
    };
    find(name).or_else(unknown)
}

/// The agent that stores the conversation of a run: the one behind the protocol if it is known, else the run's own.
#[must_use]
pub fn keeps_conversation<P, S>(session: &Session, record: &Run<P, S>) -> Option<&'static dyn Agent> {
    let behind = || record.behind.as_deref().and_then(find).or_else(|| acp::adapters::of_command(&session.arguments));
    let behind = if record.plan.opens() { behind() } else { None };
    behind.or_else(|| find_for(&session.agent, &record.plan))
}

/// The registry: a new agent is a folder and a line here.
const ALL: &[&dyn Agent] = &[
    &command::Command,
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &opencode::Opencode,
    &qwen::Qwen,
    &acp::Acp,
    &demo::Demo,
];

/// All agents, in the order in which they are listed. A recording is not one of them: it is named by its file.
pub fn all() -> impl Iterator<Item = &'static dyn Agent> {
    ALL.iter().copied()
}
