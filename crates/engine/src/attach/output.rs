//! What to show of a terminal session: first its screen, drawn from the files, then its own bytes in order, none left
//! out and none repeated. The client keeps the position in the output, so it is not lost when a keeper dies.

use crate::error::Result;
use ostler_screen::Size;
use ostler_store::folder::RunFolder;
use ostler_view::terminal;
use rustix::fs::{OFlags, SeekFrom, seek};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Output {
    run: RunFolder,
    out: File,
    /// Everything before this position was returned, or is on the drawn screen.
    position: u64,
    /// A drawn screen that was not returned yet.
    drawn: Option<Vec<u8>>,
    /// There may be more than was read: the keeper has reported changes since, or the last piece was full.
    more: bool,
    piece: Vec<u8>,
}

impl Output {
    pub fn new(run: RunFolder) -> Result<Output> {
        let out = File::from(run.dir().file("out", OFlags::RDONLY)?);
        Ok(Output { run, out, position: 0, drawn: None, more: true, piece: Vec::new() })
    }

    pub fn run(&self) -> &RunFolder {
        &self.run
    }

    /// Notes that there may be new output.
    pub fn look_again(&mut self) {
        self.more = true;
    }

    /// Whether there may be something to return.
    pub fn has_more(&self) -> bool {
        self.more || self.drawn.is_some()
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
        (self.drawn, self.position, self.more) = (Some(at.screen.redraw()), at.position, true);
        Ok(())
    }

    /// Draws the whole screen for the first time. What is on the terminal scrolls up into its scrollback, followed by
    /// what has scrolled off the session's own screen.
    ///
    /// So the terminal's own scrollback contains the session's: the mouse wheel, search and copying work as for any
    /// program, in tmux as well, and later output scrolls there by itself. A scroll mode of our own would have to take
    /// keys away from the program, and nothing could be copied from it.
    ///
    /// `greeting`: a line of the face that is shown before everything else.
    pub fn draw_first(&mut self, window: Option<(u16, u16)>, greeting: &str) -> Result<()> {
        let (mut scrollback, position) = terminal::now_with_scrollback(self.run.dir())?;
        if let Some((rows, columns)) = window {
            // What a smaller window has no room for scrolls off.
            scrollback.resize(Size { rows, columns });
        }
        let mut bytes = format!("\r{greeting}\r\n").into_bytes();
        for line in scrollback.lines().iter() {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(b"\r\n");
        }
        // The row of the cursor is empty, and all rows above it scroll off.
        let rows = usize::from(window.map_or(0, |(rows, _)| rows));
        bytes.extend(std::iter::repeat_n(b'\n', rows.saturating_sub(1)));
        bytes.extend(scrollback.screen().redraw());
        (self.drawn, self.position, self.more) = (Some(bytes), position, true);
        Ok(())
    }

    /// The next bytes for a terminal; empty when everything has been shown.
    pub fn next(&mut self, window: Option<(u16, u16)>) -> Result<&[u8]> {
        if self.drawn.is_none() {
            if !self.more {
                return Ok(&[]);
            }
            self.piece.resize(PIECE, 0);
            let count = self.out.read_at(&mut self.piece, self.position)?;
            self.more = count == PIECE;
            // Only what is far behind the end can have been dropped, before or while it was read.
            if count < PIECE || !self.was_dropped()? {
                self.position += count as u64;
                return Ok(&self.piece[..count]);
            }
            self.draw(window)?;
        }
        self.piece = self.drawn.take().unwrap_or_default();
        Ok(&self.piece)
    }

    /// Whether what comes next was dropped because the output grew too long while the terminal accepted none of it.
    fn was_dropped(&self) -> Result<bool> {
        let behind = self.out.metadata()?.len().saturating_sub(self.position);
        if behind < terminal::SNAPSHOT_EVERY {
            return Ok(false);
        }
        Ok(seek(&self.out, SeekFrom::Data(self.position)).is_ok_and(|data| data > self.position))
    }

    /// How many rows there are from the top to the last one that has text. `None` while the alternate screen is shown,
    /// or when the screen cannot be read.
    pub fn last_row(&self) -> Option<usize> {
        let at = terminal::now(self.run.dir()).ok().filter(|at| !at.screen.is_alternate())?;
        Some(at.screen.text().iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1))
    }
}
