//! `draft`: the message that a person was writing when their terminal was closed. The file is written with every
//! change, so that even a SIGKILL loses no more than the last key. It is removed once the message is sent or emptied.

use crate::engine::Engine;
use crate::error::Result;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_sys::dir::Sync;

const NAME: &str = "draft";

/// A message that is being written.
#[derive(Debug)]
pub struct Draft {
    folder: Folder,
    /// What this client has read from or written to the file. The draft of another client must not be removed.
    kept: String,
}

impl Engine {
    /// The message that was being written to a session and not sent.
    pub fn draft(&self, place: &Place) -> Result<Draft> {
        Ok(Draft::load(place.open()?))
    }
}

impl Draft {
    /// A draft that cannot be read is empty.
    fn load(folder: Folder) -> Draft {
        let bytes = folder.dir().read(NAME).ok().flatten().unwrap_or_default();
        Draft { folder, kept: String::from_utf8(bytes).unwrap_or_default() }
    }

    /// The message so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.kept
    }

    /// Stores the message as it is now. An empty one is removed. Errors are ignored: a person can go on writing even
    /// when the disk is full.
    pub fn keep(&mut self, text: &str) {
        if text == self.kept {
            return;
        }
        let kept = if text.is_empty() {
            self.folder.dir().remove(NAME)
        } else {
            self.folder.dir().replace(NAME, text.as_bytes(), Sync::No)
        };
        if kept.is_ok() {
            text.clone_into(&mut self.kept);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_sys::dir::Dir;

    #[test]
    fn what_was_written_comes_back_until_it_is_sent() {
        let place = tempfile::tempdir().unwrap();
        let folder = || Folder::new(Dir::open(place.path()).unwrap());
        Draft::load(folder()).keep("half a thou");
        let mut draft = Draft::load(folder());
        assert_eq!(draft.text(), "half a thou");
        draft.keep("");
        assert_eq!(Draft::load(folder()).text(), "");
        assert!(!place.path().join("draft").exists());
    }
}
