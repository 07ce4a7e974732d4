//! A conversation as an agent's own transcript has it: what was told, said and done, each with its time.
//!
//! In a terminal an agent draws, and what remains of a drawing is no conversation. Its transcript is one. Readers are pure:
//! lines or rows in, items out; they survive whatever stands there, and pass over what they do not know.

use crate::loose::Loose;
use jiff::Timestamp;
use ostler_core::fact::{Fact, TurnEnd, Verdict};

/// One thing in a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// When, as far as the transcript says.
    pub at: Option<Timestamp>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Somebody told the agent this.
    Told { text: String },
    /// The agent said or did this.
    Agent(Fact),
}

/// Reads a transcript in its order, from its beginning.
pub trait Recording {
    /// It begins at a later line or row instead.
    fn begin_in_the_middle(&mut self) {}

    /// Nothing follows for now, and nobody waits for more: what was held back is added to `items`.
    fn finish(&mut self, items: &mut Vec<Recorded>) {
        let _ = items;
    }

    /// One whole line without its newline; what it tells is added to `items`.
    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        let _ = (line, items);
    }

    /// The same of a row, where the agent has a database.
    fn row(&mut self, row: &RecordedRow<'_>, items: &mut Vec<Recorded>) {
        let _ = (row, items);
    }

    /// Whether this row is as it will stay: agents write a row as it begins, and again as it grows.
    fn is_whole(&self, row: &RecordedRow<'_>) -> bool {
        let _ = row;
        true
    }
}

/// A row of an agent's database: a part of a message.
#[derive(Clone, Copy, Debug)]
pub struct RecordedRow<'a> {
    /// What the agent wrote about the message, and about the part.
    pub message_data: &'a [u8],
    pub part_data: &'a [u8],
}

/// Collects what one line or row tells.
pub(crate) struct Items<'a> {
    pub at: Option<Timestamp>,
    pub items: &'a mut Vec<Recorded>,
}

impl Items<'_> {
    /// A message to the agent; one of white space alone is none.
    pub fn told(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.items.push(Recorded { at: self.at, what: What::Told { text: text.to_owned() } });
        }
    }

    pub fn said(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.fact(Fact::Said { text: text.to_owned() });
        }
    }

    pub fn thought(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.fact(Fact::Thought { text: text.to_owned() });
        }
    }

    pub fn interrupted(&mut self) {
        let reason = Some("the turn was interrupted".to_owned());
        let end = TurnEnd {
            verdict: Verdict::Interrupted,
            text: None,
            reason,
            tokens: None,
            cost_usd: None,
            messages: Vec::new(),
        };
        self.fact(Fact::TurnEnded(end));
    }

    pub fn fact(&mut self, fact: Fact) {
        self.items.push(Recorded { at: self.at, what: What::Agent(fact) });
    }
}

/// A time as transcripts write it.
pub(crate) fn time(field: &Loose<'_>) -> Option<Timestamp> {
    match field {
        Loose::Text(text) => text.parse().ok(),
        Loose::Count(ms) => Timestamp::from_millisecond(i64::try_from(*ms).ok()?).ok(),
        Loose::Nothing | Loose::Amount(_) | Loose::Flag(_) | Loose::Object(_) | Loose::List(_) => None,
    }
}
