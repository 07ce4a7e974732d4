//! A transcript that is joined with an earlier copy of itself.

use crate::edits::Edits;
use std::io::{self, Read, Seek, Write};

/// How the two are joined: the copy first, then what only the transcript has.
#[derive(Debug)]
pub struct Rejoined {
    /// How many messages are restored.
    pub messages: usize,
    /// How many bytes of the copy are complete lines.
    pub whole: u64,
    /// Removes from the transcript what the copy has as well.
    pub edits: Edits,
}

impl Rejoined {
    /// Writes the two as one file.
    ///
    /// # Errors
    /// When one of them cannot be read or written.
    pub fn write(&self, transcript: impl Read + Seek, copy: impl Read, mut target: impl Write) -> io::Result<()> {
        io::copy(&mut copy.take(self.whole), &mut target)?;
        self.edits.apply(transcript, target)
    }
}
