//! Messages: those that wait, the newest one that was given to the agent, and those of which it is unknown whether the
//! agent took them.

use crate::record::Written;
use serde::{Deserialize, Serialize};

/// A message that was accepted: its number, and its position in the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub n: u64,
    pub at: u64,
}

/// All messages of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// How many were ever accepted.
    pub accepted: u64,
    /// The highest number of a message that was ever given to an agent. Even if lines of the journal are lost, no
    /// message up to this number is given again unless it was returned.
    #[serde(default)]
    pub given: u64,
    /// Those that wait, in the order in which they will be delivered.
    pub queue: Vec<Message>,
    /// Why the next one for a terminal waits.
    pub waits: Option<String>,
    /// The newest one that was given to this run's process: it began the newest turn.
    pub fed: Option<Fed>,
    /// Messages whose process ended, and of which it is unknown whether the agent took them.
    pub maybe_delivered: Vec<Message>,
    /// The message of an earlier run that ended before the turn was over.
    pub unanswered: Option<Unanswered>,
    /// The message that was last taken back from a process that died with it. It prevents a message from being given
    /// again and again to processes that die because of it.
    pub(super) taken_back: Option<u64>,
}

/// A message that is or was put into the agent's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fed {
    pub message: Message,
    /// The position from which it is looked for, when it was typed.
    pub typed: Typed,
    pub given: Given,
    pub(super) delivery: Delivery,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Delivery {
    /// The message is being put in. The message before it is the newest again if it turns out that this one was never
    /// sent.
    UnderWay { before: Option<Box<Fed>> },
    Delivered {
        /// Milliseconds since boot.
        at_ms: u64,
    },
}

/// A message that was given to a process that ended before the turn was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    pub message: Message,
    /// The run of that process.
    pub run: u32,
    pub given: Given,
}

/// What was true when a message was given: where to look for what the agent did with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// How far its output had been understood.
    pub out: u64,
    pub written: Option<Written>,
}

/// The position from which a typed message is looked for: a message before it may have the same words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typed {
    /// The length of the transcript.
    pub written: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

impl Mail {
    pub(super) fn accept(&mut self, message: Message, first: bool) {
        self.accepted = self.accepted.max(message.n);
        if message.n <= self.given {
            // The journal line that accepted it first cannot be read, so it was found in the inbox once more.
            return;
        }
        if first {
            self.queue.insert(0, message);
        } else {
            self.queue.push(message);
        }
    }

    pub(super) fn withdraw(&mut self, n: u64) {
        self.queue.retain(|waiting| waiting.n != n);
        self.waits = None;
        self.is_not_unclear(n);
    }

    /// Puts the message with this number into the agent's input, if it waits.
    pub(super) fn feed(&mut self, n: u64, typed: Typed, given: Given) {
        self.waits = None;
        self.given = self.given.max(n);
        let message = self.queue.iter().find(|waiting| waiting.n == n).copied();
        self.queue.retain(|waiting| waiting.n != n);
        // Only the one before is remembered, not the one before that.
        let before = self.fed.take().map(|fed| Box::new(fed.delivered(0)));
        let delivery = Delivery::UnderWay { before };
        self.fed = message.map(|message| Fed { message, typed, given, delivery });
    }

    pub(super) fn was_delivered(&mut self, n: u64, at_ms: u64) {
        self.waits = None;
        self.given = self.given.max(n);
        // It still waits if the journal line cannot be read that says that it was given.
        self.queue.retain(|waiting| waiting.n != n);
        self.fed = self.fed.take().map(|fed| fed.delivered(at_ms));
    }

    /// The message that was being typed was never sent: the message before it is the newest again.
    pub(super) fn unsend(&mut self) {
        self.waits = None;
        self.fed = self.fed.take().and_then(|fed| match fed.delivery {
            Delivery::UnderWay { before } => before.map(|before| *before),
            Delivery::Delivered { .. } => None,
        });
    }

    /// The agent never took this message: it is the next one to be given.
    pub(super) fn take_back(&mut self, message: Message) {
        self.unanswered = None;
        self.taken_back = Some(message.n);
        self.is_not_unclear(message.n);
        self.queue.insert(0, message);
    }

    /// Whether this message was given to a process that ended before it had stored it.
    #[must_use]
    pub fn was_taken_back(&self, n: u64) -> bool {
        self.taken_back == Some(n)
    }

    /// The message does not belong to this run any more: it waits again, or it is known whether the agent took it.
    pub(super) fn forget_fed(&mut self, n: u64) {
        self.fed = self.fed.take().filter(|fed| fed.message.n != n);
    }

    pub(super) fn is_unclear(&mut self, message: Message) {
        self.unanswered = None;
        self.forget_fed(message.n);
        if !self.maybe_delivered.iter().any(|unclear| unclear.n == message.n) {
            self.maybe_delivered.push(message);
        }
    }

    pub(super) fn is_not_unclear(&mut self, n: u64) {
        self.maybe_delivered.retain(|message| message.n != n);
    }

    /// The message that is being put into the agent's input.
    #[must_use]
    pub fn feeding(&self) -> Option<Message> {
        let fed = self.fed.as_ref()?;
        match fed.delivery {
            Delivery::UnderWay { .. } => Some(fed.message),
            Delivery::Delivered { .. } => None,
        }
    }

    /// When the newest one was delivered.
    pub(in crate::life) fn delivered_ms(&self) -> u64 {
        match self.fed.as_ref().map(|fed| &fed.delivery) {
            Some(Delivery::Delivered { at_ms }) => *at_ms,
            Some(Delivery::UnderWay { .. }) | None => 0,
        }
    }

    /// What the next run takes over. A message with which this run died waits for an answer there.
    pub(super) fn for_next_run(self, unanswered: Option<Unanswered>) -> Mail {
        Mail { waits: None, fed: None, unanswered: unanswered.or(self.unanswered), ..self }
    }
}

impl Fed {
    fn delivered(self, at_ms: u64) -> Fed {
        Fed { delivery: Delivery::Delivered { at_ms }, ..self }
    }
}
