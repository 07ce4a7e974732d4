//! What only a terminal session has: a window, a screen of which snapshots are taken, and messages that are typed.

use super::dialogs::AwaitedDialog;
use super::prompt_screen::ScreenWatch;
use super::prompting::Prompting;
use super::screen_snapshots::Snapshots;
use super::typing::KeysToCome;
use super::{Keeper, KeeperError};
use crate::handles;
use ostler_core::record::Mode;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pty;
use ostler_view::terminal;
use rustix::fd::OwnedFd;

pub(super) struct Terminal {
    /// The window that the program was given last.
    window: Option<(u16, u16)>,
    pub screen: ScreenWatch,
    pub snapshots: Snapshots,
    /// The message that is being typed into a prompt that has to be seen, and the end of a message that is typed
    /// without looking.
    pub prompting: Prompting,
    pub keys_to_come: Option<KeysToCome>,
    /// A message waits for a dialog to be closed.
    pub dialog: AwaitedDialog,
}

impl Terminal {
    pub fn new(snapshots: Snapshots) -> Terminal {
        Terminal {
            window: None,
            screen: ScreenWatch::default(),
            snapshots,
            prompting: Prompting::default(),
            keys_to_come: None,
            dialog: AwaitedDialog::default(),
        }
    }

    /// When the rest of a message is to be typed.
    pub fn due_ms(&self) -> Option<u64> {
        self.keys_to_come.as_ref().and_then(KeysToCome::due_ms)
    }

    /// Whether the program has to be given this window, because it has another one.
    fn must_resize(&mut self, terminal: &OwnedFd, window: (u16, u16)) -> bool {
        let same = self.window == Some(window) || pty::size(terminal) == Some(window);
        self.window = Some(window);
        !same
    }
}

impl Keeper {
    /// Gives the terminal the window of the newest client.
    pub(super) fn follow_window(&mut self) -> Result<(), KeeperError> {
        let (Some(window), Some(pty)) = (self.clients.window(), self.handles.get(handles::PTY)) else {
            return Ok(());
        };
        if !self.terminal.must_resize(pty, window) {
            return Ok(());
        }
        let (at, (rows, columns)) = (self.output.end(), window);
        // A size that cannot be noted on a full disk makes a replay wrong only for a while: the program redraws.
        match terminal::note_size(self.run.dir(), terminal::Resize { at, rows, columns }) {
            Err(error) if !error.is_full_disk() => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        Ok(pty::resize(pty, rows, columns)?)
    }

    pub(super) fn snapshot_when_due(&mut self) -> Result<(), KeeperError> {
        if self.record.plan.mode() == Mode::Terminal {
            let position = self.output.end();
            let due_ms = self.terminal.snapshots.take_when_due(&self.handles, &self.run, position, since_boot_ms());
            if let Some(due_ms) = due_ms {
                self.wake_by(due_ms);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_sys::pty::Pty;

    #[test]
    fn a_window_is_given_once_and_not_one_that_the_program_has() {
        let pty = Pty::open(24, 80).unwrap();
        let mut terminal = Terminal::new(Snapshots::default());
        assert!(!terminal.must_resize(&pty.ours, (24, 80)), "it began with that");
        assert!(terminal.must_resize(&pty.ours, (50, 120)));
        assert!(!terminal.must_resize(&pty.ours, (50, 120)));
        pty::resize(&pty.ours, 50, 120).unwrap();
        assert!(terminal.must_resize(&pty.ours, (24, 80)));
    }
}
