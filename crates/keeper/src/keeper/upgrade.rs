//! Replacing this keeper by one from another binary while the agent works.
//!
//! Only the binary has to be handed over: everything else is in files, and the holder has the descriptors too. The
//! holder receives the order before it replaces the keeper, because it reads a dead keeper's last orders first.

use super::Keeper;
use super::KeeperError;
use crate::control::{self, Order};
use crate::handles;
use crate::wire::Reply;
use rustix::fs::{Mode, OFlags};
use std::io;

impl Keeper {
    /// Hands the new binary to the holder and exits; the holder starts a keeper from it. Replies with the reason when
    /// this keeper stays.
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
            // The unwritten entries are in no file yet.
            return Err(io::Error::other(
                "the disk is full, and part of the journal is only in the memory of its keeper",
            ));
        }
        let opened = rustix::fs::open(binary, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| io::Error::other(format!("{binary}: {}", io::Error::from(error))))?;
        control::order_with_file(self.handles.need(handles::HOLDER_LINE)?, Order::UseBinary, &opened)
    }
}
