//! What is particular about each agent, as pure functions: bytes in, facts out, no clock, no I/O.
//!
//! An [`Agent`] says how to start it, how to read what it prints, how to write what it reads, and what proves that a
//! turn is in its transcript. Everything else in ostler is the same for all of them.

pub mod claude;
pub mod command;
pub mod demo;
pub mod lines;
pub mod stream_json;

use ostler_core::fact::{Ask, Fact};
use ostler_core::record::{Plan, Session};

/// One kind of agent.
pub trait Agent: Sync {
    /// What people call it.
    fn name(&self) -> &'static str;

    /// How to start it.
    fn launch(&self, request: &Launching<'_>) -> Launch;

    /// A reader for its standard output.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// A message as the bytes that its input expects.
    fn message(&self, id: &str, text: &str) -> Vec<u8>;

    /// What its input takes as "end this turn"; `None` when only a signal does.
    fn interrupt(&self, id: &str) -> Option<Vec<u8>>;

    /// The answer to a question, as its input expects it.
    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>>;

    /// Whether all these messages stand, whole, in its transcript.
    fn transcript_holds(&self, transcript: &[u8], messages: &[String]) -> bool;
}

/// Understands an agent's standard output, line by line.
pub trait Decoder {
    /// One line without its newline; what it means is added to `facts`.
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>);

    /// The agent's names for the messages of the turn that is not over yet.
    fn messages_so_far(&self) -> Vec<String>;
}

/// What a start is made from.
pub struct Launching<'a> {
    pub session: &'a Session,
    /// Our own program, which contains the demo agent.
    pub own_binary: &'a str,
    /// The conversation to begin or to go on with.
    pub native_id: &'a str,
    pub resume: bool,
    /// How long what is left of a program may take to leave by itself.
    pub linger_ms: u64,
    /// Looks up a variable of the environment that the agent will have.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// How to start an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub argv: Vec<String>,
    pub plan: Plan,
    /// The conversation's name, where we give it.
    pub native_id: Option<String>,
    /// Where the agent will write its transcript, where that is known.
    pub transcript: Option<String>,
}

/// What somebody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub allow: bool,
    pub text: Option<String>,
}

/// The agent of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    all().into_iter().find(|agent| agent.name() == name)
}

/// Every agent there is.
#[must_use]
pub fn all() -> [&'static dyn Agent; 3] {
    [&command::Command, &claude::Claude, &demo::Demo]
}
