//! What has been shown of a terminal session: its screen once, drawn from the files, and from there on its own bytes in
//! order, none left out and none twice. The place in the output is ours, so no keeper can lose it.

use super::tty::{Tty, Wrote};
use crate::exit::Result;
use ostler_screen::Size;
use ostler_store::folder::RunFolder;
use ostler_view::terminal;
use rustix::fs::{OFlags, SeekFrom, seek};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// How many lines are put into the terminal's own scrollback: as many as tmux keeps.
const SCROLLBACK: usize = 2000;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

pub struct Shown {
    run: RunFolder,
    out: File,
    /// Everything before this is on the screen or in `pending`.
    position: u64,
    /// Read and not yet written.
    pending: Vec<u8>,
    written: usize,
}

/// What came of showing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything there is has been shown.
    UpToDate,
    /// There is more to show at once.
    More,
    /// There is more, and the terminal takes none of it now.
    Blocked,
    /// The terminal is gone.
    Gone,
}

impl Shown {
    pub fn new(run: RunFolder) -> Result<Shown> {
        let out = File::from(run.dir().file("out", OFlags::RDONLY)?);
        Ok(Shown { run, out, position: 0, pending: Vec::new(), written: 0 })
    }

    /// Draws the whole screen anew, for a window of this size.
    pub fn draw(&mut self, window: Option<(u16, u16)>) -> Result<()> {
        let mut at = terminal::now(self.run.dir())?;
        if let Some((rows, columns)) = window {
            let size = Size { rows, columns };
            if at.screen.size() != size {
                at.screen.resize(size);
            }
        }
        (self.pending, self.written, self.position) = (at.screen.redraw(), 0, at.position);
        Ok(())
    }

    /// Draws the whole screen for the first time, below what stands on the terminal: that scrolls out of the way, where it
    /// can be found again, and behind it goes what has scrolled off the session's own screen.
    ///
    /// So the terminal's own scrollback is the session's: the wheel, the search and the copying that a person knows work as
    /// they do for any program, in tmux as well, and what comes later scrolls there by itself. A scroll mode of our own would
    /// have to take keys away from the program and could not be copied from.
    ///
    /// `greeting`: a line of ours that stands before all of it.
    pub fn draw_first(&mut self, window: Option<(u16, u16)>, greeting: &str) -> Result<()> {
        self.draw(window)?;
        let rows = usize::from(window.map_or(0, |(rows, _)| rows));
        let size = window.map(|(rows, columns)| Size { rows, columns });
        let history = terminal::scrolled_off(self.run.dir(), self.position, size, SCROLLBACK)?;
        let mut before = format!("\r{greeting}\r\n").into_bytes();
        for line in &history {
            before.extend_from_slice(line);
            before.extend_from_slice(b"\r\n");
        }
        // The row that the cursor is in is empty, and all above it scroll off.
        before.extend(std::iter::repeat_n(b'\n', rows.saturating_sub(1)));
        self.pending.splice(0..0, before);
        Ok(())
    }

    /// Shows the next piece.
    pub fn show(&mut self, tty: &Tty, window: Option<(u16, u16)>) -> Result<Progress> {
        if self.pending.is_empty() {
            self.fill(window)?;
        }
        if self.pending.is_empty() {
            return Ok(Progress::UpToDate);
        }
        match tty.write(&self.pending[self.written..])? {
            Wrote::Some(count) => self.written += count,
            Wrote::NotNow => return Ok(Progress::Blocked),
            Wrote::Gone => return Ok(Progress::Gone),
        }
        if self.written == self.pending.len() {
            self.pending.clear();
            self.written = 0;
        }
        Ok(Progress::More)
    }

    fn fill(&mut self, window: Option<(u16, u16)>) -> Result<()> {
        if self.was_dropped()? {
            return self.draw(window);
        }
        self.pending.resize(PIECE, 0);
        let count = self.out.read_at(&mut self.pending, self.position);
        self.pending.truncate(*count.as_ref().unwrap_or(&0));
        self.position += count? as u64;
        Ok(())
    }

    /// Whether what comes next was dropped because the output grew too long while the terminal took none of it.
    fn was_dropped(&self) -> Result<bool> {
        let behind = self.out.metadata()?.len().saturating_sub(self.position);
        if behind < terminal::SNAPSHOT_EVERY {
            return Ok(false);
        }
        Ok(seek(&self.out, SeekFrom::Data(self.position)).is_ok_and(|data| data > self.position))
    }

    /// Where a line of ours can be written below what is shown, on a terminal that was reset: row, counted from 1.
    /// `None`: at the bottom, because what is shown there is not what the emulator knows.
    pub fn last_row(&self) -> Option<usize> {
        let at = terminal::now(self.run.dir()).ok().filter(|at| !at.screen.is_alternate())?;
        Some(at.screen.text().iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1))
    }
}
