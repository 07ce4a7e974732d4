//! What is particular about each agent, as pure functions: bytes in, facts out, no clock, no I/O.
//!
//! An [`Agent`] says how to start it, how to read what it prints, how to write what it reads, and what proves that a
//! turn is in its transcript. Everything else in ostler is the same for all of them.

pub mod claude;
pub mod codex;
pub mod command;
pub mod content;
pub mod demo;
pub mod gemini;
pub mod lines;
pub mod loose;
pub mod opencode;
pub mod reading;
pub mod stream_json;

use ostler_core::fact::{Ask, Fact, Tokens, TurnEnd, Verdict};
use ostler_core::outcome::{Exit, signal_name};
use ostler_core::record::{Ending, Mode, Plan, Session, Speaks};

/// One kind of agent.
pub trait Agent: Sync {
    /// What people call it.
    fn name(&self) -> &'static str;

    /// Where the real program is, relative to the package of a launcher script that goes by its name.
    fn beside_its_launcher(&self) -> Vec<String> {
        Vec::new()
    }

    /// How to start it.
    fn launch(&self, request: &Launching<'_>) -> Launch;

    /// A reader for its standard output.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// A message as the bytes that its input expects.
    fn message(&self, id: &str, text: &str) -> Vec<u8>;

    /// A message as keys for its terminal. Agents take keys that come fast for a paste, in which a return only breaks the
    /// line; so the message is a paste, and the return that sends it comes by itself.
    fn keys(&self, text: &str) -> Keys {
        Keys { at_once: pasted(text), after_a_pause: b"\r".to_vec() }
    }

    /// What its input takes as "end this turn"; `None` when only a signal does.
    fn interrupt(&self, id: &str) -> Option<Vec<u8>> {
        let _ = id;
        None
    }

    /// The answer to a question, as its input expects it; `None` when it takes none.
    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        let _ = (ask, answer);
        None
    }

    /// Where its transcript of this conversation is.
    fn transcript(&self, native_id: &str, cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Whereabouts>;

    /// Where its conversations are, when it keeps them all in one database.
    fn database(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let _ = variable;
        None
    }

    /// Strikes out of `wanted` the marks that this row of its database holds.
    fn strike_row(&self, row: &Row<'_>, wanted: &mut Vec<&str>) {
        let _ = (row, wanted);
    }

    /// What to look for in the transcript to know that it has this message: the id that we gave it, where it keeps those.
    fn mark(&self, id: &str, text: &str) -> String {
        let _ = text;
        id.to_owned()
    }

    /// Strikes out of `wanted` the marks that this whole line of its transcript holds.
    fn strike(&self, line: &[u8], wanted: &mut Vec<&str>);

    /// Whether all these marks stand, in whole lines, in its transcript.
    fn transcript_holds(&self, transcript: &[u8], marks: &[String]) -> bool {
        let mut wanted: Vec<&str> = marks.iter().map(String::as_str).collect();
        let lines = transcript.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        lines.for_each(|line| self.strike(line, &mut wanted));
        wanted.is_empty()
    }
}

/// A row of an agent's database: a part of a message of one conversation.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub part: &'a str,
    /// What the agent wrote about the message, and about the part.
    pub message_data: &'a [u8],
    pub part_data: &'a [u8],
}

/// What is typed into a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub at_once: Vec<u8>,
    /// Empty when that was all.
    pub after_a_pause: Vec<u8>,
}

/// A text as a terminal gives it to a program that has asked to be told of pastes. What would end the paste early is left
/// out of it.
fn pasted(text: &str) -> Vec<u8> {
    let text = text.replace('\u{1b}', "").replace("\r\n", "\r").replace('\n', "\r");
    format!("\u{1b}[200~{text}\u{1b}[201~").into_bytes()
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    At(String),
    /// Somewhere below a folder, under a name with this end.
    Below {
        folder: String,
        name_ends_with: String,
    },
}

/// Understands an agent's standard output, line by line.
pub trait Decoder {
    /// One line without its newline; what it means is added to `facts`.
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>);

    /// What the conversation has used before this run, for agents who count from its beginning.
    fn used_before(&mut self, tokens: Tokens) {
        let _ = tokens;
    }

    /// The agent's names for the messages of the turn that is not over yet.
    fn messages_so_far(&self) -> Vec<String>;

    /// How the turn went of an agent whose process has ended without saying so.
    fn turn_end_at_exit(&mut self, exit: Exit) -> TurnEnd {
        let reason = match (exit.code, exit.signal) {
            (Some(code), _) => format!("the agent exited with {code} before the end of its turn"),
            (None, Some(signal)) => format!("the agent was killed by {}", signal_name(signal)),
            (None, None) => "the agent is gone and nobody saw how it ended".to_owned(),
        };
        TurnEnd {
            verdict: Verdict::Failed,
            text: None,
            reason: Some(reason),
            tokens: None,
            cost_usd: None,
            messages: self.messages_so_far(),
        }
    }
}

/// What a start is made from.
pub struct Launching<'a> {
    pub session: &'a Session,
    /// Our own program, which contains the demo agent.
    pub own_binary: &'a str,
    /// The conversation to go on with, or the name for a new one where the agent lets us choose.
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
    /// The conversation's name, where it is known beforehand.
    pub native_id: Option<String>,
    /// What its environment needs beside what is there.
    pub variables: Vec<(String, String)>,
}

/// One process per turn: the message comes over standard input, where it may be as long as it likes, and its end follows.
#[must_use]
pub fn one_turn(argv: Vec<String>, request: &Launching<'_>) -> Launch {
    Launch {
        argv,
        plan: Plan {
            mode: Mode::Headless,
            keep: request.session.keep,
            speaks: Speaks::OneTurn,
            ending: Ending::EndOfInput,
            linger_ms: request.linger_ms,
        },
        native_id: request.resume.then(|| request.native_id.to_owned()),
        variables: Vec::new(),
    }
}

/// In a terminal an agent is a program like any other.
#[must_use]
pub fn silent_terminal(argv: Vec<String>, request: &Launching<'_>) -> Launch {
    Launch {
        argv,
        plan: Plan {
            mode: Mode::Terminal,
            keep: false,
            speaks: Speaks::Bytes,
            ending: Ending::Hangup,
            linger_ms: request.linger_ms,
        },
        native_id: request.resume.then(|| request.native_id.to_owned()),
        variables: Vec::new(),
    }
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

/// The agent behind a run. One that a person has named in config.toml is kept as the command that it is: its plan says
/// that we understand nothing of what it prints, and how it likes to be ended.
#[must_use]
pub fn find_for(name: &str, plan: &Plan) -> Option<&'static dyn Agent> {
    let unknown = || -> Option<&'static dyn Agent> { (!plan.speaks.converses()).then_some(&command::Command) };
    find(name).or_else(unknown)
}

/// Every agent there is.
#[must_use]
pub fn all() -> [&'static dyn Agent; 6] {
    [&command::Command, &claude::Claude, &codex::Codex, &gemini::Gemini, &opencode::Opencode, &demo::Demo]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_for_a_terminal_is_one_paste_whatever_is_in_it_and_then_a_return() {
        let keys = claude::Claude.keys("one\ntwo\u{1b}[201~\r\nthree");
        assert_eq!(keys.at_once, b"\x1b[200~one\rtwo[201~\rthree\x1b[201~");
        assert_eq!(keys.after_a_pause, b"\r");
    }
}
