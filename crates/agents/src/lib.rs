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
pub mod demo;
pub mod gemini;
pub mod hook;
pub mod installed;
pub mod lines;
mod named;
pub mod opencode;
pub mod ownership;
pub mod prompt;
pub mod qwen;
pub mod reading;
pub mod recorded;
pub mod repair;
pub mod replay;
mod shapes;
pub mod stored;
pub mod stream_json;
pub mod unsaved_on_exit;

use ostler_core::fact::{Ask, Fact, Tokens, TurnEnd, Verdict};
use ostler_core::outcome::{Exit, signal_name};
use ostler_core::record::{Channel, Ending, Fork, Lines, Plan, Run, Session, Speaks, Tty};
use serde_json::Value;

/// Where an agent that draws tells which conversation it is at, below the folder of its run.
pub const CONVERSATION: &str = "conversation";

/// Looks up a variable of the environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// One kind of agent.
pub trait Agent:
    acp::adapters::Behind + installed::Installed + ownership::Ownership + repair::Repair + stored::Stored + Sync
{
    /// What people call it.
    fn name(&self) -> &'static str;

    /// How to start it.
    fn launch(&self, request: &Launching<'_>) -> Launch;

    /// The conversation that a person's own arguments tell it to go on with, and the arguments without that.
    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        let _ = arguments;
        None
    }

    /// What of a person's own arguments would work against us, and what to do instead.
    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let _ = arguments;
        None
    }

    /// The socket of a server that does the work of the program started with these arguments, if one listens there: that work is
    /// in no process of ours, and cannot be stopped. `None` when the program works in its own process whatever runs.
    fn works_behind(&self, argv: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let _ = (argv, variable);
        None
    }

    /// What ostler has decided with these arguments against the agent's own defaults, in words for a person.
    fn in_force(&self, argv: &[String]) -> Option<&'static str> {
        let _ = argv;
        None
    }

    /// How a person ends a process of it that works for several conversations at once; `None` when a process with these
    /// arguments has only its own. Such a process is never ended for the sake of one conversation.
    fn shared_by_many(&self, argv: &[String]) -> Option<&'static str> {
        let _ = argv;
        None
    }

    /// A reader for its standard output.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// A reader for its standard error, where it tells there that it retries.
    fn error_reader(&self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// A reader for what its hooks tell, where it has any.
    fn hooks(&self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// Whether its hooks only write to their file, which then has to be watched. Others wake the keeper as well.
    fn tells_in_a_file(&self) -> bool {
        false
    }

    /// The conversation that process `pid` of it tells of in a line of [`CONVERSATION`], where we could make it tell.
    fn told_conversation(&self, line: &[u8], pid: i32) -> Option<String> {
        let _ = (line, pid);
        None
    }

    /// Files that it is started with, by name: they are put into the folder of the run.
    fn files(&self, request: &Launching<'_>) -> Vec<(&'static str, Vec<u8>)> {
        let _ = request;
        Vec::new()
    }

    /// Where it keeps a record of its own process.
    fn own_record(&self, pid: i32, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let _ = (pid, variable);
        None
    }

    /// What opens the conversation, where that has to be done before its first message; the agent's answer to it is
    /// [`Fact::Opened`] or [`Fact::NotOpened`].
    fn opening(&self, request: &Opening<'_>) -> Option<Vec<u8>> {
        let _ = request;
        None
    }

    /// A message as the bytes that its input expects.
    fn message(&self, message: &Message<'_>) -> Vec<u8>;

    /// A message as keys for its terminal. Agents take keys that come fast for a paste, in which a return only breaks the
    /// line; so the message is a paste, and the return that sends it comes by itself.
    fn keys(&self, text: &str) -> Keys {
        Keys { at_once: pasted(text), after_a_pause: b"\r".to_vec() }
    }

    /// What its screen says about its prompt, where it does not tell itself when it takes messages.
    fn prompt(&self) -> Option<fn(&prompt::Screen<'_>) -> prompt::Seen> {
        None
    }

    /// What its input takes as "end this turn" of this conversation; `None` when only a signal does.
    fn interrupt(&self, native_id: &str, id: &str) -> Option<Vec<u8>> {
        let _ = (native_id, id);
        None
    }

    /// What it is told about a question that nobody will answer, because its turn is broken off; `None` when it knows.
    fn withdraw(&self, ask: &Ask) -> Option<Vec<u8>> {
        let _ = ask;
        None
    }

    /// The keys that end a turn in its terminal; `None` when only a signal does.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        None
    }

    /// The answer to a question, as its input expects it; `None` when it takes none.
    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        let _ = (ask, answer);
        None
    }

    /// The folder in which it keeps its conversations: the same id means another conversation in another folder. `None`
    /// when it has none.
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let _ = variable;
        None
    }

    /// Whether a conversation that has a name is on its disk already, be there a turn in it or not.
    fn keeps_what_it_names(&self) -> bool {
        false
    }

    /// What it proposes to allow beside this one thing, for as long as its process runs, in words.
    fn longer(&self, ask: &Ask) -> Option<String> {
        let _ = ask;
        None
    }

    /// Where its transcript of this conversation is.
    fn transcript(&self, native_id: &str, cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location>;

    /// Whether this line of its transcript makes it a conversation that can be resumed. Some agents make the file before there
    /// is a message in it, and neither resume such a file nor begin another one of that name.
    fn begins_with(&self, line: &[u8]) -> bool {
        let _ = line;
        true
    }

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

    /// The same for a message that had no id of ours: it came through a protocol.
    fn mark_of_words(&self, text: &str) -> String {
        self.mark("", text)
    }

    /// Strikes out of `wanted` the marks that this whole line of its transcript holds.
    fn strike(&self, line: &[u8], wanted: &mut Vec<&str>);

    /// What it says in this line of its transcript, where that is a text for a person.
    fn said_in(&self, line: &[u8]) -> Option<String> {
        let _ = line;
        None
    }

    /// A reader for the conversation in its transcript or its database, where it keeps one.
    fn recording(&self) -> Option<Box<dyn recorded::Recording>> {
        None
    }

    /// Looks for all these marks in its transcript; other than [`Agent::strike`] where one line is not enough to know.
    fn search<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        Box::new(Striking::new(self, marks))
    }

    /// Counts in its transcript what the turn with these marks used, where it does not tell that itself.
    fn count<'a>(&self, marks: &'a [String]) -> Option<Box<dyn Count + 'a>> {
        let _ = marks;
        None
    }

    /// Where it keeps what the last conversation in a directory has cost, when it does not tell with its turns.
    fn costs_record(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let _ = variable;
        None
    }

    /// What that record says about this conversation. `left`: only when the last process there has left in order.
    fn cost_in(&self, record: &[u8], cwd: &str, native_id: &str, left: bool) -> Option<f64> {
        let _ = (record, cwd, native_id, left);
        None
    }

    /// Whether all these marks stand, in whole lines, in its transcript.
    fn transcript_holds(&self, transcript: &[u8], marks: &[String]) -> bool {
        let mut search = self.search(marks);
        let lines = transcript.split_inclusive(|&byte| byte == b'\n').rev();
        lines.filter_map(|line| line.strip_suffix(b"\n")).any(|line| search.line(line)) || search.is_over()
    }
}

/// A search for marks in a transcript.
pub trait Search {
    /// The next whole line, newest first; true when all are found.
    fn line(&mut self, line: &[u8]) -> bool;

    /// Whether all are found.
    fn is_over(&self) -> bool;
}

/// Counts what a turn used.
pub trait Count {
    /// The next whole line of the transcript, newest first; true when the turn is behind us.
    fn line(&mut self, line: &[u8]) -> bool;

    fn tokens(&self) -> Tokens;
}

/// Strikes out what each line holds by itself.
struct Striking<'a, A: ?Sized> {
    agent: &'a A,
    wanted: Vec<&'a str>,
}

impl<'a, A: ?Sized> Striking<'a, A> {
    fn new(agent: &'a A, marks: &'a [String]) -> Striking<'a, A> {
        Striking { agent, wanted: marks.iter().map(String::as_str).collect() }
    }
}

impl<A: Agent + ?Sized> Search for Striking<'_, A> {
    fn line(&mut self, line: &[u8]) -> bool {
        self.agent.strike(line, &mut self.wanted);
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.wanted.is_empty()
    }
}

/// A row of an agent's database: a part of a message of one conversation.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub part: &'a str,
    /// What the agent wrote about the message, and about the part.
    pub message_data: &'a [u8],
    pub part_data: &'a [u8],
    /// What somebody said before that (milliseconds since 1970) is another message, though it be of the same words.
    pub since_ms: u64,
}

/// What a conversation is opened with.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    pub cwd: &'a str,
    /// The conversation to go on with.
    pub resume: Option<&'a str>,
}

/// Something that an agent is told.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// In this conversation; empty where the agent does not ask which.
    pub native_id: &'a str,
    /// Our name for it.
    pub id: &'a str,
    pub text: &'a str,
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
    let text = typeable(text).replace('\n', "\r");
    format!("\u{1b}[200~{text}\u{1b}[201~").into_bytes()
}

/// What of a text arrives when it is typed.
#[must_use]
pub fn typeable(text: &str) -> String {
    text.replace('\u{1b}', "").replace("\r\n", "\n").replace('\r', "\n")
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
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

    /// What it remembers of the running turn, for another decoder that goes on from here. `None`: that one has to begin where
    /// the turn begins.
    fn memory(&self) -> Option<Value> {
        None
    }

    /// Goes on with what another decoder remembered. False: it cannot, and is as it was.
    fn remember_all(&mut self, memory: &Value) -> bool {
        let _ = memory;
        false
    }

    /// How the turn went of an agent whose process has ended without saying so. `complaint`: what it said beside the
    /// conversation as it ended.
    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        TurnEnd { messages: self.messages_so_far(), ..cut_off(exit, complaint) }
    }

    /// What the agent's record of its own process adds (see [`Agent::own_record`]). `now_ms`: milliseconds since 1970.
    fn own_record(&mut self, record: &[u8], now_ms: u64) -> OwnRecord {
        let _ = (record, now_ms);
        OwnRecord::default()
    }
}

/// For a decoder all of whose fields are what it remembers of the turn.
macro_rules! remembers_its_turn {
    () => {
        fn memory(&self) -> Option<serde_json::Value> {
            serde_json::to_value(self).ok()
        }

        fn remember_all(&mut self, memory: &serde_json::Value) -> bool {
            <Self as serde::Deserialize>::deserialize(memory).map(|other| *self = other).is_ok()
        }
    };
}
pub(crate) use remembers_its_turn;

/// Of what a turn has said so far another decoder is told the newest: a transcript is written in order, and anyone who reads on
/// with it is a reader that finds a turn ended, of which the keeper knows all.
fn newest<S: serde::Serializer>(said: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    const NEWEST: usize = 200;
    serializer.collect_seq(&said[said.len().saturating_sub(NEWEST)..])
}

/// What an agent's record of its own process tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnRecord {
    pub facts: Vec<Fact>,
    /// It may tell more then, although it has not changed.
    pub again_in_ms: Option<u64>,
}

/// The end of a turn that ended with its process.
fn cut_off(exit: Exit, complaint: Option<&str>) -> TurnEnd {
    let reason = match (exit.code, exit.signal) {
        (Some(code), _) => explained(format!("the agent exited with {code} before the end of its turn"), complaint),
        (None, Some(signal)) => format!("the agent was killed by {}", signal_name(signal)),
        (None, None) => "the agent is gone; how it ended is unknown".to_owned(),
    };
    TurnEnd {
        verdict: Verdict::Failed,
        text: None,
        reason: Some(reason),
        tokens: None,
        cost_usd: None,
        messages: Vec::new(),
    }
}

/// What happened, and why by the agent's own complaint.
fn explained(what: String, complaint: Option<&str>) -> String {
    complaint.map_or(what.clone(), |why| format!("{what}: {why}"))
}

/// Where an agent tells us what happens to it, below the folder of its run, and a reader for that. `None`: nowhere.
#[must_use]
pub fn agent_feed(agent: &dyn Agent, speaks: Speaks) -> Option<(&'static str, Box<dyn Decoder>)> {
    match speaks {
        Speaks::Bytes => None,
        Speaks::Turns | Speaks::OneTurn => Some(("out", agent.decoder())),
        Speaks::Hooks => agent.hooks().map(|decoder| ("hooks", decoder)),
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
    /// Where the run will be.
    pub folder: &'a str,
    /// Reads a file that an argument names.
    pub file: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the program that will be started knows this option: options come with newer versions. Asks the program.
    pub knows: &'a dyn Fn(&str) -> bool,
}

impl Launching<'_> {
    /// What this start makes a copy of: the first of a forked session does.
    #[must_use]
    pub fn forks(&self) -> Option<&Fork> {
        self.session.fork.as_ref().filter(|_| !self.resume)
    }
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
            channel: Channel::Lines(Lines::OneTurn),
            keep: request.session.keep,
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
            channel: Channel::Tty(Tty::Nothing),
            keep: false,
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
    /// And what the agent proposes to allow with it ([`Agent::longer`]), for as long as its process runs.
    pub always: bool,
    pub text: Option<String>,
}

/// The agent of this name, or what plays a recording of it.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    all().find(|agent| agent.name() == name).or_else(|| replay::find(name))
}

/// The agent behind a run. One that a person has named in config.toml is known by its plan alone: it speaks the protocol
/// that any agent may, or is the command that it is, of whose output we understand nothing.
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

/// The agent that keeps the conversation of a run: the one behind the protocol where that is known, else the run's own.
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

/// Every agent there is, in the order in which they are listed. A recording is none: it is named by its file.
pub fn all() -> impl Iterator<Item = &'static dyn Agent> {
    ALL.iter().copied()
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
