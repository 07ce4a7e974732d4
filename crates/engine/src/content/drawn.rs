//! What a program draws on its terminal, as text.

use crate::error::Result;
use ostler_screen::PlainText;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::printed;
use ostler_view::terminal::{self, Drawn as Part, Replay};
use std::fmt;

/// What the newest run of a terminal session draws, as text.
pub struct Drawn {
    run: RunFolder,
    replay: Replay,
    text: PlainText,
    dropped: u64,
}

impl Drawn {
    pub(super) fn open(folder: Folder) -> Result<Drawn> {
        let run = folder.run(folder.newest_run()?)?;
        let dropped = printed::begins(&folder, &run, "out")?;
        let text = PlainText::new(terminal::first_window(run.dir())?);
        Ok(Drawn { replay: Replay::from(dropped), text, dropped, run })
    }

    /// How many bytes at the beginning were dropped because the output grew too long.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The lines that are complete since the last call.
    pub fn read(&mut self) -> Result<String> {
        let mut plain = String::new();
        let text = &mut self.text;
        self.replay.read_on(self.run.dir(), |drawn| match drawn {
            Part::Bytes(bytes) => text.feed(bytes, &mut |piece| plain.push_str(piece)),
            Part::Resized(size) => text.resize(size, &mut |piece| plain.push_str(piece)),
        })?;
        Ok(plain)
    }

    /// The text that is still on the screen.
    #[must_use]
    pub fn finish(self) -> String {
        let mut plain = String::new();
        self.text.finish(&mut |piece| plain.push_str(piece));
        plain
    }
}

impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drawn").field("run", &self.run).finish_non_exhaustive()
    }
}
