//! Making way for a keeper from another binary while the agent works.
//!
//! Nothing has to be handed over but the binary: everything else is in files, and the descriptors are the holder's as
//! well. The holder hears the order before it replaces us, because it listens to a dead keeper's last words first.

use super::Keeper;
use super::KeeperError;
use crate::control::{self, Order};
use crate::handles;
use crate::wire::Reply;
use rustix::fs::{Mode, OFlags};
use std::io;

impl Keeper {
    /// Hands the new binary to the holder and leaves; the holder starts it in our place. Says why when we stay.
    pub(super) fn make_way(&mut self, client: usize, binary: &str) -> Result<(), KeeperError> {
        let reply = match self.hand_over(binary) {
            Ok(()) => {
                self.done = true;
                Reply::Upgrading
            }
            Err(error) => Reply::Staying { why: error.to_string() },
        };
        Ok(self.clients.say(client, &reply)?)
    }

    fn hand_over(&self, binary: &str) -> io::Result<()> {
        if !self.journal.is_written() {
            // These are in no file yet.
            return Err(io::Error::other(
                "the disk is full, and part of the journal is only in the memory of its keeper",
            ));
        }
        let opened = rustix::fs::open(binary, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| io::Error::other(format!("{binary}: {}", io::Error::from(error))))?;
        control::order_with_file(self.handles.need(handles::HOLDER_LINE)?, Order::UseBinary, &opened)
    }
}
