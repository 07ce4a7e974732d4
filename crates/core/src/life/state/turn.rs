//! The turns of a run: the one that is worked on, and the interrupt that may end it.

use crate::fact::{Ask, Retry, TurnEnd};
use serde::{Deserialize, Serialize};

/// A turn that a running process works on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The agent has reported the turn. Until then its message was only typed, and perhaps the agent did not treat it
    /// as a message.
    pub confirmed: bool,
    /// When it began, in milliseconds since boot; 0 when an older version noted it.
    #[serde(default)]
    pub began_ms: u64,
    /// Questions that are not answered yet, oldest first.
    pub asks: Vec<Ask>,
    pub retrying: Option<Retrying>,
}

impl Turn {
    pub(super) fn new(confirmed: bool, began_ms: u64) -> Turn {
        Turn { confirmed, began_ms, asks: Vec::new(), retrying: None }
    }

    /// Some agents do not count their attempts, so we do.
    pub(super) fn retry(&mut self, retry: &Retry, now_ms: u64) {
        let before = self.retrying.take();
        self.retrying = Some(Retrying {
            reason: retry.reason.clone(),
            attempt: retry.attempt.unwrap_or_else(|| before.as_ref().map_or(1, |before| before.attempt + 1)),
            since_ms: before.as_ref().map_or(now_ms, |before| before.since_ms),
            alarm: before.and_then(|before| before.alarm),
        });
    }
}

/// The turn waits for the model's server: the agent repeats its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retrying {
    pub reason: String,
    /// How often it has failed so far.
    pub attempt: u32,
    pub since_ms: u64,
    /// What a person is told when it takes too long.
    pub alarm: Option<String>,
}

/// The newest turn of a process that has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TurnAtExit {
    /// The turn ended well, or before the process did, or there was no turn.
    Over,
    /// It is not known yet how the turn ended.
    Unfinished { confirmed: bool },
    /// The turn ended with the process, and not well: perhaps the agent never took its message.
    CutOff,
}

/// A turn that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EndedTurn {
    pub end: TurnEnd,
    pub at_ms: u64,
    /// It ended at a usage limit of its agent.
    #[serde(default)]
    pub at_limit: bool,
}

/// Whether the newest turn is to be interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Who asked for it. `None`: it was not asked for, or it follows from a request to end the session.
    pub by: Option<String>,
    /// For which limit, in words.
    #[serde(default)]
    pub why: Option<String>,
    pub(super) sent: Sent,
}

/// When the agent was last told to end a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sent {
    #[default]
    Never,
    /// It was told about an earlier turn, or is to be told again.
    Before { ms: u64 },
    /// It was told about the newest turn.
    Now { ms: u64 },
}

impl Interrupt {
    /// When the agent was told to end the newest turn.
    #[must_use]
    pub fn sent_ms(&self) -> Option<u64> {
        match self.sent {
            Sent::Now { ms } => Some(ms),
            Sent::Never | Sent::Before { .. } => None,
        }
    }

    /// When the agent was last told to end a turn of this run, whichever turn that was.
    #[must_use]
    pub fn last_sent_ms(&self) -> Option<u64> {
        match self.sent {
            Sent::Now { ms } | Sent::Before { ms } => Some(ms),
            Sent::Never => None,
        }
    }

    pub(super) fn was_sent(&mut self, ms: u64) {
        self.sent = Sent::Now { ms };
    }

    /// An interrupt that was sent before does not count any more: the next one is sent as well.
    pub(super) fn is_to_be_sent_again(&mut self) {
        if let Sent::Now { ms } = self.sent {
            self.sent = Sent::Before { ms };
        }
    }

    pub(super) fn request(&mut self, by: &str) {
        self.by.get_or_insert_with(|| by.to_owned());
    }

    /// Another turn begins.
    pub(super) fn forget(&mut self) {
        self.by = None;
        self.why = None;
        self.is_to_be_sent_again();
    }
}
