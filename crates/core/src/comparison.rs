//! What members of a group are compared by: the object behind `compare --json`.

use crate::fact::Tokens;
use crate::id::SessionId;
use crate::outcome::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One member of a group, and what it has done.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Compared {
    pub id: SessionId,
    pub name: Option<String>,
    pub agent: String,
    pub model: Option<String>,
    /// Its state, or once it has ended the kind of its outcome.
    pub status: String,
    pub ended: bool,
    pub outcome: Option<Outcome>,
    /// From its start to its end, or to now.
    pub seconds: u64,
    pub tokens: Option<Tokens>,
    pub cost_usd: Option<f64>,
    /// What has changed in its worktree since it began; `None` when the worktree is gone.
    pub changes: Option<Lines>,
    /// `None`: no check was asked for, the session has not ended, or its worktree is gone.
    pub check: Option<Checked>,
    /// Its final answer, or the last thing that it said.
    pub last: Option<String>,
    pub branch: Option<String>,
    /// Where its worktree is.
    pub path: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub archived: bool,
}

/// How much was changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Lines {
    pub files: u64,
    pub added: u64,
    pub deleted: u64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Checked {
    pub passed: bool,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The session of a check that did not pass, so that its output can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}
