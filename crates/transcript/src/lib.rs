//! Transcripts of agents: what is wrong with one, and the changes that mend it.
//!
//! [`examine`] reads a transcript of claude, codex or gemini line by line, in bounded memory, and returns what it found and
//! which ranges of the file are to be replaced by what. Nothing is written here and no clock is asked; whoever has the
//! file applies the [`Edits`] to a copy. Three promises:
//!
//! * A healthy transcript has no edits. A mended one has none either, after two or three rounds at the most: what was
//!   broken can hide something else.
//! * No whole record is lost: only what nobody can read, and copies of what stays, are taken out.
//! * In a mended conversation every tool call that the model sees has a result, and every result a call.
//!
//! Whatever a file contains, the answer is a value: files come from crashes.

mod claude;
mod codex;
mod edits;
mod fields;
mod finding;
mod gemini;
mod lines;
mod place;
mod rejoin;
mod salvage;
mod shrunken;
mod split;
mod surface;

pub use edits::{Edit, Edits};
pub use finding::{Finding, MAY_HAVE_RUN, Remedy};
pub use lines::LONGEST;
pub use rejoin::{Rejoined, rejoin};
pub use shrunken::missing_from;
pub use split::Moved;

use lines::Lines;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};

/// Whose transcript it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Claude,
    Codex,
    Gemini,
}

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
    pub fn mends(&self) -> bool {
        !self.edits.is_empty()
    }

    /// Whether something is wrong that cannot be mended from the file itself.
    #[must_use]
    pub fn is_beyond_mending(&self) -> bool {
        self.findings.iter().any(|finding| finding.remedy() == Remedy::None)
    }
}

impl Format {
    #[must_use]
    pub fn of_agent(name: &str) -> Option<Format> {
        match name {
            "claude" => Some(Format::Claude),
            "codex" => Some(Format::Codex),
            "gemini" => Some(Format::Gemini),
            _ => None,
        }
    }

    #[must_use]
    pub fn agent(self) -> &'static str {
        match self {
            Format::Claude => "claude",
            Format::Codex => "codex",
            Format::Gemini => "gemini",
        }
    }

    /// Tells by the first records of a file whose it is; `None` when they are nobody's.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn detect<R: Read + Seek>(mut source: R) -> io::Result<Option<Format>> {
        const ENOUGH: usize = 50;
        source.seek(SeekFrom::Start(0))?;
        let mut lines = Lines::new(&mut source);
        for _ in 0..ENOUGH {
            let Some(line) = lines.next()? else { break };
            let record: serde_json::Value =
                line.bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
            let has = |name: &str| record.get(name).is_some();
            if has("payload") && has("timestamp") {
                return Ok(Some(Format::Codex));
            }
            if has("$set") || has("projectHash") {
                return Ok(Some(Format::Gemini));
            }
            if has("type") && (has("sessionId") || has("parentUuid") || has("leafUuid")) {
                return Ok(Some(Format::Claude));
            }
        }
        Ok(None)
    }
}

/// Looks at a transcript.
///
/// # Errors
/// When it cannot be read.
pub fn examine<R: Read + Seek>(format: Format, source: R, branches: Branches) -> io::Result<Examination> {
    match format {
        Format::Claude => claude::examine(source, branches),
        Format::Codex => codex::examine(source),
        Format::Gemini => gemini::examine(source),
    }
}

/// An id for something new, the same whenever it is made from the same.
fn new_uuid(from: &[&[u8]]) -> String {
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
