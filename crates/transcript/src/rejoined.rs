//! A transcript put together with an earlier copy of itself.

use crate::edits::Edits;
use std::io::{self, Read, Seek, Write};

/// How the two are put together: the copy first, then what only the transcript has.
#[derive(Debug)]
pub struct Rejoined {
    /// How many messages are brought back.
    pub messages: usize,
    /// How much of the copy is whole lines.
    pub whole: u64,
    /// Takes out of the transcript what the copy has as well.
    pub edits: Edits,
}

impl Rejoined {
    /// Writes the two as one.
    ///
    /// # Errors
    /// When one of them cannot be read or written.
    pub fn write(&self, transcript: impl Read + Seek, copy: impl Read, mut target: impl Write) -> io::Result<()> {
        io::copy(&mut copy.take(self.whole), &mut target)?;
        self.edits.apply(transcript, target)
    }
}
