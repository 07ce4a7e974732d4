//! The screen of a terminal session as it is now, from its files alone: the stored screen and what was drawn since.

use crate::error::Result;
use ostler_screen::{Piece, Screen, Size};
use ostler_store::folder::{Folder, RunFolder};
use ostler_view::terminal::{self, Drawn, Replay};
use std::fmt;

/// The screen of the newest run of a terminal session.
pub struct ProgramScreen {
    run: RunFolder,
    screen: Screen,
    replay: Replay,
}

impl ProgramScreen {
    pub(super) fn open(folder: &Folder) -> Result<ProgramScreen> {
        let run = folder.run(folder.newest_run()?)?;
        let at = terminal::now(run.dir())?;
        Ok(ProgramScreen { run, screen: at.screen, replay: Replay::from(at.position) })
    }

    /// Applies what was drawn since the last call.
    pub fn read(&mut self) -> Result<()> {
        let screen = &mut self.screen;
        self.replay.read_on(self.run.dir(), |drawn| match drawn {
            Drawn::Bytes(bytes) => screen.feed(bytes),
            Drawn::Resized(size) => screen.resize(size),
        })?;
        Ok(())
    }

    /// The visible rows.
    #[must_use]
    pub fn rows(&self) -> Vec<Vec<Piece>> {
        self.screen.pieces()
    }

    /// Row and column of its cursor.
    #[must_use]
    pub fn cursor(&self) -> (u16, u16) {
        self.screen.cursor()
    }

    /// Rows and columns of its window.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        let Size { rows, columns } = self.screen.size();
        (rows, columns)
    }

    /// The rows that have scrolled off the screen, the oldest first.
    pub fn scrolled_off(&self) -> Result<Vec<Vec<Piece>>> {
        let columns = self.screen.size().columns;
        let (scrollback, _) = terminal::now_with_scrollback(self.run.dir())?;
        let piece = |bytes: &[u8]| {
            let mut row = Screen::new(Size { rows: 1, columns });
            row.feed(bytes);
            row.pieces().into_iter().next().unwrap_or_default()
        };
        Ok(scrollback.lines().iter().map(piece).collect())
    }
}

impl fmt::Debug for ProgramScreen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramScreen").field("run", &self.run).finish_non_exhaustive()
    }
}
