//! A session whose program waits to be started (`crate::later`).
//!
//! Whether it was started is in one file, which either the waiting process or we publish: a program that was withdrawn has run nothing,
//! and one that has begun is stopped like any other.

use super::{About, Keeper, KeeperError, entry};
use crate::control::{self, Order};
use crate::handles;
use ostler_core::event::Event;
use ostler_core::start_when::Claim;
use ostler_sys::pause::{self, Point};
use rustix::fd::OwnedFd;

impl Keeper {
    /// Notes what has become of a program that had to wait.
    pub(super) fn look_at_claim(&mut self) -> Result<(), KeeperError> {
        if !self.state.is_queued() {
            return Ok(());
        }
        match self.run.claim()? {
            None => Ok(()),
            Some(Claim::Begun { at, ms }) => {
                // It runs since then, whenever we are told.
                let noted = entry(self.record.run, About::default(), Event::Begun);
                self.write(ostler_core::event::Entry { at, ms, ..noted })?;
                pause::at(Point::BeginNoted);
                Ok(())
            }
            Some(Claim::Never { reason, stopped }) => self.note(Event::NotBegun { reason, stopped }),
        }
    }

    /// Withdraws the program, unless it was started in this moment.
    pub(super) fn withdraw(&mut self) -> Result<(), KeeperError> {
        let claim = Claim::Never { reason: "it was withdrawn from its queue".to_owned(), stopped: true };
        self.folder.even_when_full(|| self.run.publish_claim(&claim))?;
        pause::at(Point::ProgramWithdrawn);
        self.look_at_claim()
    }

    /// The slot of its queue is held until the session has ended, also between two processes of it. The holder keeps it as well; one that
    /// has just died is replaced by one that gets all that we have.
    pub(super) fn keep_slot(&mut self, slot: OwnedFd) {
        pause::at(Point::SlotReceived);
        if let Some(line) = self.handles.get(handles::HOLDER_LINE) {
            let _ = control::order_with_file(line, Order::UseSlot, &slot);
        }
        self.handles.put(handles::SLOT, slot);
    }
}
