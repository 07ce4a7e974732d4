//! A conversation that is moved from the file of another to its own file.

use crate::lines::Lines;
use memchr::memmem;
use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The content of the new file: everything of the old one up to the fork, and the branch.
#[derive(Debug)]
pub struct Moved {
    /// The agent's id for the new conversation.
    pub id: String,
    /// How records name the old conversation, and how they are to name the new one.
    pub renamed: (String, String),
    /// Only records that begin like this are copied: the others are notes about the other branch.
    pub taken: &'static str,
    /// The start positions of the records that are not copied.
    pub without: HashSet<u64>,
}

impl Moved {
    /// Writes the new file from the old one as it was before any change.
    ///
    /// # Errors
    /// When one of the two cannot be read or written.
    pub fn write<R: Read + Seek>(&self, mut source: R, mut target: impl Write) -> io::Result<()> {
        source.seek(SeekFrom::Start(0))?;
        let (old, new) = &self.renamed;
        let mut lines = Lines::new(&mut source);
        while let Some(line) = lines.next()? {
            let Some(bytes) = line.bytes else { continue };
            if self.without.contains(&line.start) || !bytes.starts_with(self.taken.as_bytes()) {
                continue;
            }
            let mut from = 0;
            for at in memmem::find_iter(bytes, old.as_bytes()) {
                target.write_all(&bytes[from..at])?;
                target.write_all(new.as_bytes())?;
                from = at + old.len();
            }
            target.write_all(&bytes[from..])?;
            target.write_all(b"\n")?;
        }
        Ok(())
    }
}
