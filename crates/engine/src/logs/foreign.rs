//! A conversation that belongs to no session, read where its agent keeps it.

use super::Piece;
use crate::adopt::locate;
use crate::engine::Engine;
use crate::error::{Error, Result};
use ostler_agents::recorded::{Reading, Recorded, What};
use ostler_view::conversation::Item;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much is read at once.
const PIECE: usize = 256 * 1024;

impl Engine {
    /// Gives everything that was said and done in a conversation that an agent keeps, in order. `word`: the agent's own
    /// id of it, the beginning of that id, or its transcript. Returns how many lines of the transcript are damaged and
    /// were left out.
    pub fn foreign_log(&self, word: &str, each: &mut dyn FnMut(Piece<'_>)) -> Result<u64> {
        let stored = locate(self, word)?;
        let unreadable =
            |error: std::io::Error| Error::Unreadable { path: stored.file.clone(), error: error.to_string() };
        let Some(recording) = stored.kept_by().and_then(|agent| agent.recording()) else {
            return Err(Error::UnknownTranscript { agent: stored.agent.to_owned() });
        };
        let mut reading = Reading::new(recording);
        let mut told = 0;
        let mut give = |Recorded { at, what }: Recorded| {
            let item = match what {
                What::Told { text } => {
                    told += 1;
                    Item::Told { n: told, text }
                }
                What::Agent(fact) => Item::Agent(fact),
            };
            each(Piece::Item { item, at });
        };
        if stored.queries().is_some() {
            let mut record = Vec::new();
            stored.write_record(&mut record).map_err(unreadable)?;
            reading.feed(&record, &mut give);
        } else {
            let mut file = open(&stored.file).map_err(unreadable)?;
            let mut buffer = vec![0; PIECE];
            loop {
                let count = file.read(&mut buffer).map_err(unreadable)?;
                if count == 0 {
                    break;
                }
                reading.feed(&buffer[..count], &mut give);
            }
        }
        reading.finish(&mut give);
        Ok(reading.damaged())
    }
}

/// Opens a regular file only: a pipe in the place of a transcript must not block the reader.
fn open(path: &Path) -> std::io::Result<File> {
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::Error::other("it is not a regular file")),
    }
}
