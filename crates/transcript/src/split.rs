//! A conversation that leaves another's file for one of its own.

use crate::lines::Lines;
use crate::new_uuid;
use crate::place::Placed;
use memchr::memmem;
use serde::Deserialize;
use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// What the new file has: everything of the old one up to the fork, and the branch.
#[derive(Debug)]
pub struct Moved {
    /// The agent's name for the new conversation.
    pub id: String,
    old_id: String,
    /// Where the records begin that stay behind.
    without: HashSet<u64>,
}

impl Moved {
    pub(crate) fn new(head: &Placed, without: Vec<u64>) -> io::Result<Moved> {
        #[derive(Deserialize)]
        struct Session {
            #[serde(rename = "sessionId", default)]
            id: String,
        }
        let Session { id: old_id } = head.fields()?;
        Ok(Moved { id: new_uuid(&[b"split", &head.text]), old_id, without: without.into_iter().collect() })
    }

    /// Writes the new file from the old one as it was before any change.
    ///
    /// # Errors
    /// When one of the two cannot be read or written.
    pub fn write<R: Read + Seek>(&self, mut source: R, mut target: impl Write) -> io::Result<()> {
        source.seek(SeekFrom::Start(0))?;
        let name = |id: &str| format!(r#""sessionId":{}"#, serde_json::json!(id));
        let (old, new) = (name(&self.old_id), name(&self.id));
        let mut lines = Lines::new(&mut source);
        while let Some(line) = lines.next()? {
            let Some(bytes) = line.bytes else { continue };
            // Only messages: notes about where to go on are about the other branch.
            if self.without.contains(&line.start) || !bytes.starts_with(br#"{"parentUuid":"#) {
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
