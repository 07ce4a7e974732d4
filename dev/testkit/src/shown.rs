//! What `ls --json`, `show --json` and `wait --json` promise to print, read as a script would read it: by name, from
//! the text, and not through the types that wrote it.

use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Shown {
    pub schema: u32,
    pub id: String,
    pub name: Option<String>,
    pub agent: String,
    pub native_id: Option<String>,
    pub cwd: String,
    pub mode: String,
    pub state: String,
    pub alive: bool,
    pub kept: bool,
    pub ended: bool,
    pub pid: Option<i32>,
    pub holder_pid: Option<i32>,
    pub keeper_pid: Option<i32>,
    pub run: u32,
    pub turns: u32,
    pub queued: u32,
    pub quiet_s: u64,
    pub created: String,
    pub updated: String,
    pub transcript: Option<String>,
    pub outcome: Option<Outcome>,
    pub asking: Option<Value>,
    pub last: Option<String>,
    pub alarm: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Outcome {
    pub kind: String,
    pub source: String,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub saved: String,
    pub cause: String,
    pub text: Option<String>,
    pub turns: u32,
    pub duration_ms: Option<u64>,
    #[serde(default)]
    pub left: Vec<String>,
}

impl Shown {
    /// The outcome of a session that must have one.
    #[track_caller]
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        self.outcome.as_ref().unwrap_or_else(|| panic!("no outcome: {self:?}"))
    }
}
