//! A conversation in an agent's own transcript: messages to the agent, its texts and its actions, each with its time.
//!
//! In a terminal an agent draws, and a drawing does not contain the conversation; its transcript does. Readers are
//! pure: lines or rows in, items out. They accept any content, and skip what they do not know.

use crate::any_json::{AnyJson, tolerantly};
use crate::lines::{Line, Lines};
use jiff::Timestamp;
use ostler_core::fact::{Fact, TurnEnd, Verdict};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// One item of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The time, if the transcript has it.
    pub at: Option<Timestamp>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A message to the agent.
    Told { text: String },
    /// The agent said or did this.
    Agent(Fact),
}

/// Reads a transcript in its order, from its beginning.
pub trait Recording {
    /// The reading begins at a later line or row instead.
    fn begin_in_the_middle(&mut self) {}

    /// No more lines are expected for now: items that were held back are added to `items`.
    fn finish(&mut self, items: &mut Vec<Recorded>) {
        let _ = items;
    }

    /// Whether an item is held back until a line comes that belongs before it.
    fn waits(&self) -> bool {
        false
    }

    /// One complete line without its newline; its items are added to `items`.
    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        let _ = (line, items);
    }

    /// The same for a row, if the agent has a database.
    fn row(&mut self, row: &RecordedRow<'_>, items: &mut Vec<Recorded>) {
        let _ = (row, items);
    }

    /// Whether this row is final: agents write a row when it begins, and again as it grows.
    fn is_whole(&self, row: &RecordedRow<'_>) -> bool {
        let _ = row;
        true
    }
}

/// A row of an agent's database: a part of a message.
#[derive(Clone, Copy, Debug)]
pub struct RecordedRow<'a> {
    /// The agent's data about the message, and about the part.
    pub message_data: &'a [u8],
    pub part_data: &'a [u8],
}

/// A row as a line, in a copy of a conversation.
#[derive(Serialize, Deserialize)]
struct Copied<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
    #[serde(borrow)]
    part: &'a RawValue,
}

impl<'a> RecordedRow<'a> {
    /// The line for this row in a copy of the conversation; `None` when it is not JSON.
    #[must_use]
    pub fn as_line(&self) -> Option<Vec<u8>> {
        let message = serde_json::from_slice(self.message_data).ok()?;
        let part = serde_json::from_slice(self.part_data).ok()?;
        let mut line = serde_json::to_vec(&Copied { message, part }).ok()?;
        line.push(b'\n');
        Some(line)
    }

    /// The row of a line that [`RecordedRow::as_line`] made.
    #[must_use]
    pub fn of_line(line: &'a [u8]) -> Option<RecordedRow<'a>> {
        let Copied { message, part } = serde_json::from_slice(line).ok()?;
        Some(RecordedRow { message_data: message.get().as_bytes(), part_data: part.get().as_bytes() })
    }
}

/// A transcript that arrives in pieces.
pub struct Reading {
    lines: Lines,
    recording: Box<dyn Recording>,
    items: Vec<Recorded>,
    damaged: u64,
}

impl Reading {
    /// From its beginning.
    #[must_use]
    pub fn new(recording: Box<dyn Recording>) -> Reading {
        Reading { lines: Lines::from(0), recording, items: Vec::new(), damaged: 0 }
    }

    /// Takes the next bytes and calls `each` with every item in them.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Recorded)) {
        let Reading { lines, recording, items, damaged } = self;
        lines.feed(bytes, |line, _| {
            match line {
                Line::Whole(line) => {
                    recording.line(line, items);
                    // A line that gave items was readable.
                    *damaged += u64::from(items.is_empty() && is_damaged(line));
                }
                Line::TooLong { bytes, .. } => {
                    items.push(Recorded { at: None, what: What::Agent(Fact::LineTooLong { bytes }) });
                }
            }
            items.drain(..).for_each(&mut each);
        });
    }

    /// How many complete lines were not records: torn, overwritten, or something else.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Whether an item waits for a line that belongs before it.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.recording.waits()
    }

    /// No further bytes follow.
    pub fn finish(&mut self, each: impl FnMut(Recorded)) {
        self.recording.finish(&mut self.items);
        self.items.drain(..).for_each(each);
    }
}

/// Whether a line is not a JSON object, as every line of every agent is. An empty line is not damage.
fn is_damaged(line: &[u8]) -> bool {
    let is_object = |line: &[u8]| serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(line).is_ok();
    !line.trim_ascii().is_empty() && !tolerantly(line, is_object)
}

/// Collects the items of one line or row.
pub(crate) struct Items<'a> {
    pub at: Option<Timestamp>,
    pub items: &'a mut Vec<Recorded>,
}

impl Items<'_> {
    /// A message to the agent, unless it is only white space.
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
pub(crate) fn time(field: &AnyJson<'_>) -> Option<Timestamp> {
    match field {
        AnyJson::Text(text) => text.parse().ok(),
        AnyJson::Count(ms) => Timestamp::from_millisecond(i64::try_from(*ms).ok()?).ok(),
        AnyJson::Nothing | AnyJson::Amount(_) | AnyJson::Flag(_) | AnyJson::Object(_) | AnyJson::List(_) => None,
    }
}
