//! What the damaged transcripts of all agents have in common: lines, fields, findings, and the changes that repair
//! them.
//!
//! Which records a transcript has and how they are connected is the agent's own format; that code is in `ostler-agents`
//! (`<agent>/repair`), and uses this crate. A transcript is read line by line, in bounded memory. The result is what
//! was found, and which ranges of the file are to be replaced by what. Nothing is written here and no clock is read;
//! the caller has the file and applies the [`Edits`] to a copy. Three promises, for every agent:
//!
//! * A healthy transcript has no edits. A repaired one has none either, after at most two or three rounds: one damage
//!   can hide another.
//! * No complete record is lost: only unreadable bytes, and copies of what stays, are removed.
//! * In a repaired conversation every tool call that the model sees has a result, and every result a call.
//!
//! Whatever a file contains, the functions return a value and do not panic: the files come from crashes.

pub mod edits;
pub mod fields;
pub mod finding;
pub mod lines;
pub mod place;
pub mod record_lines;
mod rejoined;
mod salvage;
mod shrunken;
mod split;

pub use edits::{Edit, Edits};
pub use finding::{Finding, MAY_HAVE_RUN, Remedy};
pub use lines::LONGEST;
pub use rejoined::Rejoined;
pub use shrunken::missing_from;
pub use split::Moved;

use std::hash::{DefaultHasher, Hash, Hasher};

/// What is done with branches that two processes made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// One conversation that contains all of them.
    Join,
    /// Each branch becomes a conversation of its own.
    Split,
}

/// What was found, and what is to be done.
#[derive(Debug)]
pub struct Examination {
    pub findings: Vec<Finding>,
    pub edits: Edits,
    /// Conversations that are moved to files of their own.
    pub moved: Vec<Moved>,
    /// How many messages it has.
    pub messages: usize,
}

impl Examination {
    /// Whether the file is to be changed.
    #[must_use]
    pub fn repairs(&self) -> bool {
        !self.edits.is_empty()
    }

    /// Whether something is wrong that cannot be repaired from the file itself.
    #[must_use]
    pub fn cannot_be_repaired(&self) -> bool {
        self.findings.iter().any(|finding| finding.remedy() == Remedy::None)
    }
}

/// A new id, always the same for the same input.
#[must_use]
pub fn new_uuid(from: &[&[u8]]) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        from.hash(&mut hasher);
        hasher.finish().to_be_bytes()
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&half(1));
    bytes[8..].copy_from_slice(&half(2));
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
