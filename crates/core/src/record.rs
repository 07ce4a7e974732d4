//! What stands in the files of a session folder, apart from the journal.

use crate::fact::Tokens;
use crate::id::SessionId;
use crate::limits::Limits;
pub use crate::plan::{Channel, Ending, Lines, Plan, Speaks, Tty};
use crate::rules::Rules;
use crate::start_when::StartWhen;
use crate::worktree::Worktree;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `session.json`: what was asked for. Written once, and again when a later run gets a tree of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub schema: u32,
    pub id: SessionId,
    #[serde(default)]
    pub name: Option<String>,
    pub agent: String,
    pub cwd: String,
    pub mode: Mode,
    #[serde(default)]
    pub keep: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub parent: Option<SessionId>,
    /// What it is a copy of, when it was forked from its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// What it is to its parent, when that is more than having been started by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Its agent may only read: what it runs cannot change the tree.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// The conversation was begun outside ostler and taken over. Its first run has no process: it is what was said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Adopted>,
    #[serde(default)]
    pub model: Option<String>,
    /// The command, or further arguments for the agent.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The beginning of its first message, for people who look for it later; the whole is in the inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// A person watches and can be asked.
    #[serde(default)]
    pub attended: bool,
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// Restarts and limits, as a person has decided them beforehand.
    #[serde(default, skip_serializing_if = "Rules::is_none")]
    pub rules: Rules,
    /// The tree of its own that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
    /// The kind of job that it drives. Its program is ostler itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its parent is a job, which has launched it and decides what its end means.
    #[serde(default, skip_serializing_if = "is_false")]
    pub driven: bool,
    /// The group that it was started in, with others for the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub created: Timestamp,
}

/// How much of a prompt is kept beside what was asked for: records are read as a whole, a prompt may have megabytes.
const PROMPT_CHARACTERS: usize = 1000;

/// The beginning of a prompt, with a mark where something is missing.
#[must_use]
pub fn beginning_of(prompt: &str) -> String {
    match prompt.char_indices().nth(PROMPT_CHARACTERS) {
        Some((end, _)) => format!("{}…", &prompt[..end]),
        None => prompt.to_owned(),
    }
}

impl Session {
    /// What a person calls it: its name, else what it was asked first, else the command, else the agent.
    #[must_use]
    pub fn title(&self) -> String {
        let asked = || self.prompt.as_deref()?.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        let command = || (self.agent == "command").then(|| self.arguments.join(" "));
        self.name.clone().or_else(asked).or_else(command).unwrap_or_else(|| self.agent.clone())
    }
}

/// `renamed.json`: what a person calls the session since. session.json stays as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    pub name: String,
    pub at: Timestamp,
    /// Who: a user and a process, in words.
    pub by: String,
}

/// What a session is to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It continues the parent's work with another agent.
    Handover,
    /// It judges what the parent has changed.
    Review,
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

impl Origin {
    /// What people see.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Origin::Handover => "handover",
            Origin::Review => "review",
            Origin::Unknown => "child",
        }
    }
}

/// The conversation that another one begins as a copy of. Its own first run makes the copy, by the agent's own means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    pub native_id: String,
    /// Where the agent keeps it.
    #[serde(default)]
    pub transcript: Option<String>,
    /// What it had used when the copy was made, which some agents go on counting.
    #[serde(default)]
    pub tokens: Tokens,
}

/// A conversation that was begun outside ostler, as it was when it was taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    pub at: Timestamp,
    /// Who: a user and a process, in words.
    pub by: String,
    pub native_id: String,
    /// Where the agent keeps it: its file, or the database that it is in.
    pub transcript: String,
    /// How many messages it had, of people and of the agent.
    pub messages: u64,
    /// What it had used, which some agents go on counting.
    #[serde(default)]
    pub tokens: Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Headless,
    Terminal,
}

/// `runs/<n>/run.json`: one life of the agent. A further run is made without `agent`; the agent adds itself before it runs its
/// program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run<Process, Serial> {
    pub run: u32,
    pub argv: Vec<String>,
    pub plan: Plan,
    #[serde(default)]
    pub size: Option<(u16, u16)>,
    /// The conversation that this run starts or goes on with, when we name it.
    #[serde(default)]
    pub native_id: Option<String>,
    /// The conversation begins with this run: before it, there was nothing of it anywhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub begins: bool,
    /// Where the agent writes its own transcript, when that is known beforehand.
    #[serde(default)]
    pub transcript: Option<String>,
    /// How long that was when the run began, of an agent that takes one message per run and whose transcript has no name for
    /// it of ours: an older message of the same words stands before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written_before: u64,
    /// Where the agent keeps all its conversations, when that is a database and not a file for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The agent behind a program that speaks a protocol, where that is known: the conversation is one of that agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Further groups, of version 1, in which its limits are in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<String>,
    /// Output past this many bytes drops its oldest part; an agent that writes messages is held there instead.
    #[serde(default)]
    pub output_limit: Option<u64>,
    /// Output is held while the file system has fewer free bytes than this. `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_free_space: Option<u64>,
    /// How often the transcript is copied while a turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autosave_ms: Option<u64>,
    /// After how long a turn that only retries is an alarm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_alarm_ms: Option<u64>,
    /// How long an agent behind a protocol may take to open its conversation before that is an alarm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// Milliseconds since boot when the program ran.
    #[serde(default)]
    pub started_ms: u64,
    pub agent: Option<Process>,
    /// The agent's number with the kernel, where that gives one.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub serial: Option<Serial>,
    /// The pid of the holder that started it. As long as that lives, the kernel calls it the parent of what it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<i32>,
    /// A copy of session.json, and how large that was: a list need not open two files for every session that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<Session>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_size: Option<u64>,
    /// It began by itself, after others that did: the first of that row, which a person began. What was asked of any of them is
    /// asked of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u32>,
    /// What its environment has beside what the session was started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, String)>,
    /// Who starts it: as long as this process lives, a run without an agent is one that is about to begin.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub launcher: Option<Process>,
    /// What its program waits for before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_when: Option<Box<StartWhen>>,
    /// Why its process could not be started. The run has none, and never will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<String>,
    /// What a newer version wrote here.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl<Process, Serial> Run<Process, Serial> {
    /// A run that has no process yet, and of whose conversation nothing is known.
    #[must_use]
    pub fn new(run: u32, argv: Vec<String>, plan: Plan) -> Run<Process, Serial> {
        Run {
            run,
            argv,
            plan,
            size: None,
            native_id: None,
            begins: false,
            transcript: None,
            written_before: 0,
            database: None,
            behind: None,
            cgroup: None,
            bounds: Vec::new(),
            output_limit: None,
            min_free_space: None,
            autosave_ms: None,
            retry_alarm_ms: None,
            answer_within_ms: None,
            started: None,
            started_ms: 0,
            agent: None,
            serial: None,
            holder: None,
            session: None,
            session_size: None,
            continues: None,
            variables: Vec::new(),
            launcher: None,
            start_when: None,
            not_started: None,
            more: Map::new(),
        }
    }
}

/// A file, and how long it was at some time: what stands in it before that is older.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub path: String,
    pub size: u64,
}

/// `holder.json` and `keeper.json`: who they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Helper<Process> {
    #[serde(flatten)]
    pub process: Process,
    pub version: String,
    /// Keepers that died young, one after the other; only a holder counts them.
    #[serde(default)]
    pub crashes: u32,
    /// The holder has stopped restarting the keeper until somebody asks for one.
    #[serde(default)]
    pub gave_up: bool,
}

/// A line of `inbox.jsonl`: what somebody wants of the session. Durable before anyone is told that it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Names the request for the process that made it; also the message's id in the agent's own transcript.
    pub id: String,
    pub at: Timestamp,
    /// Who: a user and a process, in words.
    pub by: String,
    /// The run it was meant for; a request to end does not carry over to the next.
    pub run: u32,
    #[serde(flatten)]
    pub kind: RequestKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum RequestKind {
    /// Tell the agent this.
    Message {
        text: String,
        /// Interrupt the running turn first.
        #[serde(default)]
        now: bool,
    },
    /// Take message `n` back, if it still waits or may have been delivered.
    Withdraw {
        n: u64,
    },
    /// Give message `n`, which may have been delivered, once more.
    Again {
        n: u64,
    },
    /// Answer a question.
    Answer {
        /// Which one; the oldest when not named.
        #[serde(default)]
        request: Option<String>,
        allow: bool,
        /// And what is like it, for as long as this process runs.
        #[serde(default)]
        always: bool,
        #[serde(default)]
        text: Option<String>,
    },
    /// A job asks a person. Made by the job itself.
    Ask {
        ask: crate::fact::Ask,
    },
    Interrupt,
    /// Do not wait any longer for a limit or a pause to be over.
    GoOn,
    Stop {
        how: crate::event::StopHow,
        grace_ms: u64,
        why: String,
    },
    /// From a newer version.
    #[serde(other)]
    Unknown,
}
