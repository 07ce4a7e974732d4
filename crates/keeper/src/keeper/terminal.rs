//! What only a terminal session has: a window.

use super::{Keeper, KeeperError};
use crate::handles;
use ostler_sys::pty;
use ostler_view::terminal;

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
        let at = self.output.end();
        // A note that does not fit on a full disk makes a replay less right, not wrong for ever: the program redraws.
        match terminal::note_size(self.run.dir(), terminal::Resize { at, rows, columns }) {
            Err(error) if !error.is_full_disk() => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        pty::resize(terminal, rows, columns)?;
        self.window = Some((rows, columns));
        Ok(())
    }
}
