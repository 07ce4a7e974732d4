//! What only a terminal session has: a window, and output that must not grow for ever.

use super::{Keeper, KeeperError};
use crate::handles;
use ostler_core::event::Event;
use ostler_store::terminal;
use ostler_sys::{dir, pty};

impl Keeper {
    /// Gives the terminal the window of the newest client.
    pub(super) fn follow_window(&mut self) -> Result<(), KeeperError> {
        let (Some((rows, columns)), Some(terminal)) = (self.clients.window(), self.handles.get(handles::PTY)) else {
            return Ok(());
        };
        if self.window == Some((rows, columns)) || pty::size(terminal) == Some((rows, columns)) {
            self.window = Some((rows, columns));
            return Ok(());
        }
        let at = self.out_position()?;
        // A note that does not fit on a full disk makes a replay less right, not wrong for ever: the program redraws.
        match terminal::note_size(self.run.dir(), terminal::Resize { at, rows, columns }) {
            Err(error) if !error.is_full_disk() => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        pty::resize(terminal, rows, columns)?;
        self.window = Some((rows, columns));
        Ok(())
    }

    /// Drops the oldest terminal output, in large steps and never past the newest snapshot.
    pub(super) fn trim(&mut self, snapshot: u64) -> Result<(), KeeperError> {
        let Some(limit) = self.record.output_limit else {
            return Ok(());
        };
        let position = self.out_position()?;
        let to = position.saturating_sub(limit).min(snapshot);
        if to < self.state.trimmed + limit / 8 {
            return Ok(());
        }
        if let Some(out) = self.handles.get(handles::OUT) {
            match dir::forget_front(out, to) {
                Ok(()) => self.note(Event::Trimmed { to })?,
                Err(error) => {
                    self.note(Event::Alarm { text: format!("old output cannot be dropped here: {error}") })?;
                    self.record.output_limit = None;
                }
            }
        }
        Ok(())
    }
}
