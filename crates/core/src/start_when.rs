//! When the program of a run starts: at once, or later.
//!
//! A session may exist before its program runs. It has its folder, its helpers and a process of its own that waits
//! (`keeper/src/later`) and becomes the program when there is nothing left to wait for.

use crate::id::SessionId;
use crate::outcome::Kind;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What has to happen before the program starts. All of it; the queue comes last.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct StartWhen {
    /// Not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The same time in milliseconds since boot, when it was asked for as a duration: a change of the clock does not
    /// move it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub at_ms: Option<u64>,
    /// Not before these sessions have ended like this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// Not before this queue has a free slot for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<InQueue>,
    /// When it entered the queue, if it was in the queue before and its processes were killed: it gets the same place
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub arrived: Option<Timestamp>,
}

/// A session that has to end first.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct After {
    pub id: SessionId,
    /// How it has to end; none: in any way.
    pub outcome: Option<Kind>,
}

/// A place in a queue.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct InQueue {
    pub name: String,
    /// A session with a higher priority starts first; sessions of the same priority start in the order in which they
    /// came.
    pub priority: i32,
}

/// What a queued session waits for, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Waits {
    #[serde(flatten)]
    pub when: StartWhen,
    /// Its place in the queue, from 1 on; none while it still waits for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}

impl StartWhen {
    /// Whether there is nothing to wait for.
    #[must_use]
    pub fn is_now(&self) -> bool {
        *self == StartWhen::default()
    }
}

/// `claim.json` in the folder of a run: whether its program was started. Published with link(2), so that either the
/// process that becomes the program or the process that withdraws it decides, and never both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Claim {
    /// The program was started.
    Begun {
        at: Timestamp,
        /// Milliseconds since boot.
        ms: u64,
    },
    /// The program will never be started: why, and whether that counts as stopped rather than failed.
    Never { reason: String, stopped: bool },
}

/// Whether the program of a run was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Begin {
    /// It runs, or has run.
    #[default]
    Begun,
    /// It waits.
    Queued,
    /// It will never run, and why; whether that counts as stopped.
    Never { reason: String, stopped: bool },
}
