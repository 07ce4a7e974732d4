//! What was said and done in a session, as typed items.

use super::Runs;
use crate::error::{Error, Result};
use jiff::Timestamp;
use ostler_store::StoreError;
use ostler_store::folder::Folder;
pub use ostler_view::conversation::Item;
use ostler_view::conversation::{Reader, Start};
use std::fmt;

/// A conversation, read from its beginning and then as it grows, over all its runs.
pub struct Conversation {
    reader: Reader<'static>,
    size: u64,
}

impl Conversation {
    pub(super) fn open(folder: Folder, runs: Runs) -> Result<Conversation> {
        let newest = folder.newest_run()?;
        let size = match newest {
            0 => 0,
            newest => folder.run(newest)?.dir().stat("out")?.map_or(0, |stat| stat.size),
        };
        let run = match runs {
            Runs::All => 1,
            Runs::Newest => newest.max(1),
        };
        Ok(Conversation { reader: Reader::owning(folder, Start { run, position: 0 }), size })
    }

    /// Begins about this many bytes before the end; also returns whether that is the whole conversation.
    pub(super) fn near_the_end(folder: Folder, bytes: u64) -> Result<(Conversation, bool)> {
        let (start, all) = Reader::start_before_end(&folder, bytes)?;
        Ok((Conversation { reader: Reader::owning(folder, start), size: bytes }, all))
    }

    /// How many bytes of the newest run there were to read when it was opened: a face can announce that reading takes
    /// long.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What has come since the last call, item by item, with its time as far as that is known. A long conversation is
    /// never in memory as a whole.
    pub fn read<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(Item, Option<Timestamp>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let read = self.reader.read_timed(|item, at| each(item, at).map_err(Failed::Caller));
        read.map_err(|error| match error {
            Failed::Store(error) => Error::from(error).into(),
            Failed::Caller(error) => error,
        })
    }

    /// The same as a list, for a caller that accepts a long one.
    pub fn new_items(&mut self) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        self.read(|item, _| -> Result<()> {
            items.push(item);
            Ok(())
        })?;
        Ok(items)
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("size", &self.size).finish_non_exhaustive()
    }
}

/// What failed: reading, or the caller's callback.
enum Failed<E> {
    Store(StoreError),
    Caller(E),
}

impl<E> From<StoreError> for Failed<E> {
    fn from(error: StoreError) -> Failed<E> {
        Failed::Store(error)
    }
}
