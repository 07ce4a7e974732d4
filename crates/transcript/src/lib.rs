//! What transcripts of agents have in common when they are damaged: lines, fields, findings, and the changes that repair one.
//!
//! Which records a transcript has and what belongs together is the agent's own format; those parts are in `ostler-agents`
//! (`<agent>/repair`), made from the parts here. A transcript is read line by line, in bounded memory; the answer is what was
//! found and which ranges of the file are to be replaced by what. Nothing is written here and no clock is asked; the caller
//! has the file and applies the [`Edits`] to a copy. Three promises, for every agent:
//!
//! * A healthy transcript has no edits. A repaired one has none either, after two or three rounds at the most: what was
//!   broken can hide something else.
//! * No whole record is lost: only what nobody can read, and copies of what stays, are taken out.
//! * In a repaired conversation every tool call that the model sees has a result, and every result a call.
//!
//! Whatever a file contains, the answer is a value: files come from crashes.

pub mod edits;
pub mod fields;
pub mod finding;
pub mod lines;
pub mod place;
mod rejoined;
mod salvage;
mod shrunken;
mod split;
pub mod surface;

pub use edits::{Edit, Edits};
pub use finding::{Finding, MAY_HAVE_RUN, Remedy};
pub use lines::LONGEST;
pub use rejoined::Rejoined;
pub use shrunken::missing_from;
pub use split::Moved;

use std::hash::{DefaultHasher, Hash, Hasher};

/// What becomes of branches that two processes made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// One conversation, with all of them in it.
    Join,
    /// Each a conversation of its own.
    Split,
}

/// What was found, and what is to be done.
#[derive(Debug)]
pub struct Examination {
    pub findings: Vec<Finding>,
    pub edits: Edits,
    /// Conversations that leave this file.
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

/// An id for something new, the same whenever it is made from the same.
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
