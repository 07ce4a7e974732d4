//! A conversation, from the output of the agent or from its own transcript.

use super::{All, Piece};
use crate::error::Result;
use jiff::Timestamp;
use ostler_store::StoreError;
use ostler_store::folder::Folder;
use ostler_view::conversation::{Item, Reader, Start};
use ostler_view::recorded;

/// Where the conversation is read.
pub enum Said<'a> {
    /// The output of the agent.
    Told { folder: &'a Folder, reader: Box<Reader<'a>> },
    /// Its transcript.
    Transcript(Box<recorded::Reader>),
}

impl<'a> Said<'a> {
    pub fn told(folder: &'a Folder) -> Said<'a> {
        Said::Told { folder, reader: Box::new(Reader::new(folder, 1)) }
    }

    /// The transcript that is read, if one is.
    pub fn transcript(&mut self) -> Option<&mut recorded::Reader> {
        match self {
            Said::Told { .. } => None,
            Said::Transcript(reader) => Some(reader),
        }
    }

    /// Starts again with what came since `since`; with a size, only with about the last `size` bytes of that. Returns
    /// whether that is all of it.
    pub fn rewind(&mut self, size: Option<u64>, since: Option<Timestamp>) -> Result<All> {
        match self {
            Said::Told { folder, reader } => {
                let first = match since {
                    Some(since) => Reader::start_since(folder, since)?,
                    None => Start { run: 1, position: 0 },
                };
                let (start, all) = match size {
                    Some(size) => Reader::start_before_end(folder, size)?,
                    None => (first, true),
                };
                let is_earlier = (start.run, start.position) <= (first.run, first.position);
                **reader = Reader::starting(folder, if is_earlier { first } else { start });
                Ok(All::of_out(all || is_earlier))
            }
            Said::Transcript(reader) => Ok(All::of_out(reader.rewind(size.unwrap_or(u64::MAX))?)),
        }
    }

    /// `ended`: nothing more will come.
    pub fn read_on(&mut self, ended: bool, give: &mut dyn FnMut(Piece<'_>)) -> Result<()> {
        let mut give = |item: Item, at: Option<Timestamp>| -> std::result::Result<(), StoreError> {
            give(Piece::Item { item, at });
            Ok(())
        };
        match self {
            Said::Told { reader, .. } => reader.read_timed(give)?,
            Said::Transcript(reader) => reader.read_on(ended, &mut give)?,
        }
        Ok(())
    }
}
