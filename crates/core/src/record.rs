//! The contents of the files of a session folder, except the journal.

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
    /// Its relation to its parent, when it is more than having been started by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Its agent may only read: what it runs cannot change the tree.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// The conversation was begun outside ostler and taken over. Its first run has no process: it represents what was
    /// said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Adopted>,
    #[serde(default)]
    pub model: Option<String>,
    /// The command, or further arguments for the agent.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The beginning of its first message, for people who look for it later; the whole message is in the inbox.
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
    /// The worktree that was made for it.
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

/// How much of a prompt is kept in `session.json`: records are read as a whole, and a prompt may have megabytes.
const PROMPT_CHARACTERS: usize = 1000;

/// The beginning of a prompt, with a mark if the rest is left out.
#[must_use]
pub fn beginning_of(prompt: &str) -> String {
    match prompt.char_indices().nth(PROMPT_CHARACTERS) {
        Some((end, _)) => format!("{}…", &prompt[..end]),
        None => prompt.to_owned(),
    }
}

impl Session {
    /// Its title for people: its name, else the first line of its prompt, else the command, else the agent.
    #[must_use]
    pub fn title(&self) -> String {
        let asked = || self.prompt.as_deref()?.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        let command = || (self.agent == "command").then(|| self.arguments.join(" "));
        self.name.clone().or_else(asked).or_else(command).unwrap_or_else(|| self.agent.clone())
    }
}

/// `renamed.json`: the name that a person gave to the session later. session.json stays as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    pub name: String,
    pub at: Timestamp,
    /// The user and the process that asked for it, in words.
    pub by: String,
}

/// The relation of a session to its parent.
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

/// The conversation of which a forked session begins as a copy. The first run of that session makes the copy, by the
/// agent's own means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    pub native_id: String,
    /// Where the agent stores it.
    #[serde(default)]
    pub transcript: Option<String>,
    /// The tokens that it had used when the copy was made: some agents continue that count.
    #[serde(default)]
    pub tokens: Tokens,
}

/// A conversation that was begun outside ostler, as it was when it was taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    pub at: Timestamp,
    /// The user and the process that asked for it, in words.
    pub by: String,
    pub native_id: String,
    /// Where the agent stores it: its file, or the database that it is in.
    pub transcript: String,
    /// How many messages it had, of people and of the agent.
    pub messages: u64,
    /// The tokens that it had used: some agents continue that count.
    #[serde(default)]
    pub tokens: Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Headless,
    Terminal,
}

/// `runs/<n>/run.json`: one run of the agent. The file of a further run is made without `agent`; the agent's process
/// adds itself before it executes its program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run<Process, Serial> {
    pub run: u32,
    pub argv: Vec<String>,
    pub plan: Plan,
    #[serde(default)]
    pub size: Option<(u16, u16)>,
    /// The conversation that this run starts or continues, when we give the agent its id.
    #[serde(default)]
    pub native_id: Option<String>,
    /// The conversation begins with this run: nothing of it existed before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub begins: bool,
    /// Where the agent writes its own transcript, when that is known beforehand.
    #[serde(default)]
    pub transcript: Option<String>,
    /// How long the transcript was when the run began. Set for an agent that takes one message per run and whose
    /// transcript does not contain our id of the message: an older message with the same words is before this position.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub written_before: u64,
    /// Where the agent stores all its conversations, when that is a database and not one file for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The agent behind a program that speaks a protocol, where that is known: the conversation belongs to that agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Further cgroups, of version 1, in which its limits are in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<String>,
    /// When there is more output than this many bytes, its oldest part is dropped. The output of an agent that writes
    /// messages is paused there instead.
    #[serde(default)]
    pub output_limit: Option<u64>,
    /// Output is paused while the file system has fewer free bytes than this. `None`: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_free_space: Option<u64>,
    /// How often the transcript is copied while a turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autosave_ms: Option<u64>,
    /// After how long a turn that only retries raises an alarm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_alarm_ms: Option<u64>,
    /// How long an agent behind a protocol may take to open its conversation before an alarm is raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// When the program was started, in milliseconds since boot.
    #[serde(default)]
    pub started_ms: u64,
    pub agent: Option<Process>,
    /// The kernel's own number of the agent's process, where the kernel gives one.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub serial: Option<Serial>,
    /// The pid of the holder that started it. As long as that holder lives, the kernel reports it as the parent of what
    /// it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<i32>,
    /// A copy of session.json, and the size of that file: a list need not open two files for every session that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<Session>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_size: Option<u64>,
    /// Set when this run began automatically: the first run of the sequence, which a person began. A request to any run
    /// of the sequence is a request to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u32>,
    /// The variables of its environment in addition to those that the session was started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, String)>,
    /// The process that starts it. As long as this process lives, a run without an agent is about to begin.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub launcher: Option<Process>,
    /// What its program waits for before it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_when: Option<Box<StartWhen>>,
    /// Why its process could not be started. The run has no process, and never will have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<String>,
    /// The folder that the file was written into; `None` once it has been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FolderId>,
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
            folder: None,
            more: Map::new(),
        }
    }
}

/// A folder of a file system. A copy of the folder has another id: the processes that are named in it belong to the
/// original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderId {
    pub device: u64,
    pub inode: u64,
}

/// A file, and how long it was at some time: everything before that position is older.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub path: String,
    pub size: u64,
}

/// `holder.json` and `keeper.json`: which process it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Helper<Process> {
    #[serde(flatten)]
    pub process: Process,
    pub version: String,
    /// How many keepers in a row died soon after their start; only a holder counts them.
    #[serde(default)]
    pub crashes: u32,
    /// The holder has stopped restarting the keeper until a client needs one.
    #[serde(default)]
    pub gave_up: bool,
    /// The folder that the file was written into; `None` once it has been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FolderId>,
}

/// A line of `inbox.jsonl`: a request to the session. It is durable before its sender is told that it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Identifies the request for the process that made it; also the message's id in the agent's own transcript.
    pub id: String,
    pub at: Timestamp,
    /// The user and the process that asked for it, in words.
    pub by: String,
    /// The run it was meant for; a request to end does not carry over to the next run.
    pub run: u32,
    #[serde(flatten)]
    pub kind: RequestKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum RequestKind {
    /// Give the agent this message.
    Message {
        text: String,
        /// Interrupt the running turn first.
        #[serde(default)]
        now: bool,
    },
    /// Withdraw message `n`, if it still waits or may have been delivered.
    Withdraw {
        n: u64,
    },
    /// Give message `n`, which may have been delivered, once more.
    Again {
        n: u64,
    },
    /// Answer a question.
    Answer {
        /// Which question; `None`: the oldest.
        #[serde(default)]
        request: Option<String>,
        allow: bool,
        /// Also what is like it, for as long as this process runs.
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
