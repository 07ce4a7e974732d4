//! What is reported about a session: the object behind `ls --json`, `show --json` and `wait --json`.

use crate::SCHEMA;
use crate::fact::{Ask, Tokens, Verdict};
use crate::id::SessionId;
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::record::{Mode, Origin};
use crate::start_when::Waits;
use crate::worktree::Worktree;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its program waits to be started: in a queue, for a time, or for other sessions.
    Queued,
    Starting,
    Working,
    /// It runs, and it is unknown whether it is in a turn: a command, or an agent that only draws.
    Running,
    /// It waits for its next run, or for a limit to be reset; `resumes_at` says when it continues by itself.
    Waiting,
    Idle,
    Asking,
    Stopping,
    Ended,
}

impl Phase {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Phase::Queued => "queued",
            Phase::Starting => "starting",
            Phase::Working => "working",
            Phase::Running => "running",
            Phase::Waiting => "waiting",
            Phase::Idle => "idle",
            Phase::Asking => "asking",
            Phase::Stopping => "stopping",
            Phase::Ended => "ended",
        }
    }
}

/// A turn that retries, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct RetryingNow {
    pub reason: String,
    /// How often it has failed so far.
    pub attempt: u32,
    /// Since the first of these failures.
    pub for_s: u64,
}

impl RetryingNow {
    /// `connection refused, 3rd time`
    #[must_use]
    pub fn words(&self) -> String {
        let ending = match (self.attempt % 10, self.attempt % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        format!("{}, {}{ending} time", self.reason, self.attempt)
    }
}

/// How a turn went, without what was said in it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LastTurn {
    pub verdict: Verdict,
    /// One line: why it failed or was interrupted.
    pub reason: Option<String>,
}

/// One session, now.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct View {
    pub schema: u32,
    pub id: SessionId,
    pub name: Option<String>,
    /// Its name, else the first line of its prompt, else its command, else its agent.
    pub title: String,
    pub agent: String,
    pub native_id: Option<String>,
    pub cwd: String,
    /// What git has checked out in its directory: now, or when it ended.
    pub branch: Option<String>,
    pub mode: Mode,
    pub state: Phase,
    /// What people see: the state, or once it has ended the kind of its outcome.
    #[serde(skip_deserializing)]
    pub status: &'static str,
    /// When that state began.
    pub since: Timestamp,
    /// Whether the agent process is alive.
    pub alive: bool,
    /// Whether the keeper process is alive.
    pub kept: bool,
    pub ended: bool,
    pub pid: Option<i32>,
    pub holder_pid: Option<i32>,
    pub keeper_pid: Option<i32>,
    pub run: u32,
    /// Finished turns, over all runs.
    pub turns: u32,
    pub queued: u32,
    /// What its program waits for, while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Box<Waits>>,
    /// Why the next message cannot be delivered yet, and what to do about it.
    pub message_waits: Option<String>,
    /// The numbers of messages of which it is unknown whether the agent took them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maybe_delivered: Vec<u64>,
    pub quiet_s: u64,
    /// For how long an agent behind a protocol has not answered whether its conversation is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_answer_s: Option<u64>,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub transcript: Option<String>,
    /// Over all runs, like `cost_usd`; unknown where the agent does not report it.
    pub tokens: Option<Tokens>,
    pub cost_usd: Option<f64>,
    /// The running turn waits for the model's server: the agent repeats its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrying: Option<RetryingNow>,
    /// When a session that waits continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<Timestamp>,
    /// What it waits for until then, in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// How the last turn of a run that has not ended went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<LastTurn>,
    /// Of the newest run.
    pub outcome: Option<Outcome>,
    pub asking: Option<Ask>,
    /// The last thing it printed or said.
    pub last: Option<String>,
    /// What a person should look at: a keeper that keeps dying, a full disk, dropped output.
    pub alarm: Option<String>,
    pub parent: Option<SessionId>,
    /// Its relation to its parent, when it is more than having been started by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    pub archived: bool,
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// The beginning of its first message.
    pub prompt: Option<String>,
    /// The command, or the agent's further arguments.
    pub command: Vec<String>,
    /// The agent that keeps the conversation, where that is known to be another one than `agent`.
    #[serde(skip)]
    pub conversation_agent: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// The worktree that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
    /// The kind of job that it drives; its children are the sessions whose `parent` it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its parent is a job, which has launched it and decides what its end means.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub driven: bool,
    /// The group that it was started in, with others for the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl View {
    /// The agent that keeps the conversation: the one behind a protocol, or the session's own.
    #[must_use]
    pub fn conversation_agent(&self) -> &str {
        self.conversation_agent.as_deref().unwrap_or(&self.agent)
    }

    /// It is in this state now.
    pub fn enter(&mut self, state: Phase) {
        self.state = state;
        self.status = state.word();
    }

    /// It has ended like this.
    pub fn end(&mut self, outcome: Outcome) {
        self.state = Phase::Ended;
        self.ended = true;
        self.status = outcome.kind.word();
        self.asking = None;
        self.outcome = Some(outcome);
    }
}

/// A folder that cannot be read as a session. It is shown, and does not disturb other sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    pub id: String,
    /// Its lock is held, by its agent or by a process of its agent.
    pub alive: bool,
    /// What is wrong with it.
    pub damage: String,
    /// It is in the archive.
    pub archived: bool,
}

impl Serialize for Damaged {
    /// With the fields that a session has, so that programs that read a list need no special case.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::json!({
            "schema": SCHEMA, "id": self.id, "name": null, "title": self.id, "agent": null, "native_id": null, "cwd": null,
            "branch": null, "mode": null, "state": "damaged", "status": "damaged", "since": null, "prompt": null,
            "command": [], "labels": {}, "alive": self.alive, "kept": false, "ended": false, "pid": null, "holder_pid": null,
            "keeper_pid": null, "run": null, "turns": null, "queued": null, "message_waits": null, "quiet_s": null, "created": null,
            "updated": null, "transcript": null, "tokens": null, "cost_usd": null, "outcome": null, "asking": null, "last": null,
            "archived": self.archived, "damage": self.damage,
        })
        .serialize(serializer)
    }
}

impl Damaged {
    #[must_use]
    pub fn new(id: &str, alive: bool, damage: String, archived: bool) -> Damaged {
        Damaged { id: id.to_owned(), alive, damage, archived }
    }
}
