//! What is wrong with a transcript, as text, and what is done about it.

use std::fmt;

/// What is done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The file is changed.
    Repair,
    /// Only reported: the file is right as it is, or it is not known what would be right.
    Note,
    /// The file does not contain what would be needed to repair it.
    None,
}

/// One problem that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Empty,
    /// The last line was being written when its writer was killed.
    TornTail {
        bytes: u64,
    },
    /// The last line is complete but has no newline: the next record would be appended to it.
    Unended,
    Broken {
        line: u64,
        bytes: u64,
    },
    /// Bytes that are not text.
    BadBytes {
        line: u64,
    },
    /// A broken line contained complete records.
    Freed {
        line: u64,
        records: usize,
    },
    /// One line contained several complete records, and nothing else.
    Fused {
        line: u64,
        records: usize,
    },
    TooLong {
        line: u64,
    },
    CallWithoutResult {
        tool: String,
    },
    ResultWithoutCall,
    /// The parent of a message is not in the file.
    LostParent,
    /// Records that occur twice.
    Copies {
        records: usize,
    },
    /// Two records with one id: the agent uses the later one.
    SameId,
    /// Two processes wrote at the same time.
    Joined {
        messages: usize,
    },
    Split {
        messages: usize,
        into: String,
    },
    /// A branch that the conversation no longer follows: a prompt that was taken back, or a second process that wrote a
    /// turn in between.
    LeftAside {
        messages: usize,
    },
    /// The record that the agent needs first is missing.
    NoBeginning,
    BeginningMade,
    /// A list that replaces all messages is lost, and the one before it would have emptied the conversation.
    Emptied,
    /// The last answer called a tool, and the agent has stored nothing about that call.
    CutOff,
    /// Messages of an earlier copy are missing.
    Shrunken {
        messages: usize,
    },
}

impl Finding {
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Finding::TornTail { .. }
            | Finding::Unended
            | Finding::Broken { .. }
            | Finding::BadBytes { .. }
            | Finding::Freed { .. }
            | Finding::Fused { .. }
            | Finding::CallWithoutResult { .. }
            | Finding::ResultWithoutCall
            | Finding::LostParent
            | Finding::Copies { .. }
            | Finding::Joined { .. }
            | Finding::Split { .. }
            | Finding::BeginningMade
            | Finding::Emptied
            | Finding::CutOff => Remedy::Repair,
            Finding::TooLong { .. } | Finding::SameId | Finding::LeftAside { .. } => Remedy::Note,
            Finding::Empty | Finding::NoBeginning | Finding::Shrunken { .. } => Remedy::None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Empty => f.write_str("the file is empty"),
            Finding::TornTail { bytes } => write!(f, "the last line is torn: {bytes} bytes cut off"),
            Finding::Unended => f.write_str("the last line has no end: newline added"),
            Finding::Broken { line, bytes } => write!(f, "line {line} is damaged: {bytes} bytes removed"),
            Finding::BadBytes { line } => write!(f, "line {line} has bytes that are not text: replaced"),
            Finding::Freed { line, records } => {
                write!(f, "line {line} is damaged: {} in it saved", counted(*records, "whole record"))
            }
            Finding::Fused { line, records } => {
                write!(f, "line {line} holds {}: put on separate lines", counted(*records, "record"))
            }
            Finding::TooLong { line } => write!(f, "line {line} is too long to check: not changed"),
            Finding::CallWithoutResult { tool } => {
                write!(f, "a call of {tool} has no result: the agent is told that it may have run")
            }
            Finding::ResultWithoutCall => f.write_str("a tool's result has no call: kept as text"),
            Finding::LostParent => f.write_str("a message refers to one that is lost: linked to the one before it"),
            Finding::Copies { records: 1 } => f.write_str("a record is there twice: the copy removed"),
            Finding::Copies { records } => write!(f, "{records} records are there twice: the copies removed"),
            Finding::SameId => f.write_str("two different records have the same id: the agent uses the later one"),
            Finding::Joined { messages } => {
                write!(f, "two processes wrote at once: {} joined in", counted(*messages, "message"))
            }
            Finding::Split { messages, into } => {
                write!(f, "two processes wrote at once: {} moved to {into}", counted(*messages, "message"))
            }
            Finding::LeftAside { messages } => write!(
                f,
                "{} on an abandoned branch (an undone prompt, or another process): not changed",
                counted(*messages, "message")
            ),
            Finding::NoBeginning => f.write_str("the first record is lost, and its content is unknown"),
            Finding::BeginningMade => f.write_str("the first record was lost: created again"),
            Finding::Emptied => f.write_str("a lost list of messages had emptied the conversation: messages restored"),
            Finding::CutOff => {
                f.write_str("the conversation was cut off during a tool call: the agent is told that it may have run")
            }
            Finding::Shrunken { messages } => {
                write!(f, "{} of an earlier copy are missing", counted(*messages, "message"))
            }
        }
    }
}

/// Adds a copy to those that were found: a doubled file has thousands, and they are reported as one finding.
pub fn count_copy(findings: &mut Vec<Finding>) {
    let known = findings
        .iter_mut()
        .find_map(|finding| if let Finding::Copies { records } = finding { Some(records) } else { None });
    match known {
        Some(records) => *records += 1,
        None => findings.push(Finding::Copies { records: 1 }),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The text for the model about a tool call that was cut off.
pub const MAY_HAVE_RUN: &str = "The session was cut off while this tool call was running, and its result was lost. \
    The command was started and may have run in part or in full. Check what it did before running it again.";

/// The text for the model before the result of a call that is lost.
pub const CALL_IS_LOST: &str = "A tool returned the following; the record of its call was lost.";
