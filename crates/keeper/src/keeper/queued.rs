//! A session whose program waits to be started (`crate::later`).
//!
//! Whether the program was started is in one file, which is published either by the waiting process or by the keeper.
//! So a program that was withdrawn has not run at all, and one that has begun is stopped like any other.

use super::{About, Keeper, KeeperError, entry};
use crate::control::{self, Order};
use crate::handles;
use ostler_core::event::Event;
use ostler_core::start_when::Claim;
use ostler_sys::pause_points::{self, Point};
use rustix::fd::OwnedFd;

impl Keeper {
    /// Notes whether a program that had to wait was started or withdrawn.
    pub(super) fn look_at_claim(&mut self) -> Result<(), KeeperError> {
        if !self.state.is_queued() {
            return Ok(());
        }
        match self.run.claim()? {
            None => Ok(()),
            Some(Claim::Begun { at, ms }) => {
                // It has been running since that time, however late the keeper learns of it.
                let noted = entry(self.record.run, About::default(), Event::Begun);
                self.write(ostler_core::event::Entry { at, ms, ..noted })?;
                pause_points::at(Point::BeginNoted);
                Ok(())
            }
            Some(Claim::Never { reason, stopped }) => self.note(Event::NotBegun { reason, stopped }),
        }
    }

    /// Withdraws the program, unless it has just been started.
    pub(super) fn withdraw(&mut self) -> Result<(), KeeperError> {
        let claim = Claim::Never { reason: "it was withdrawn from its queue".to_owned(), stopped: true };
        self.folder.even_when_full(|| self.run.publish_claim(&claim))?;
        pause_points::at(Point::ProgramWithdrawn);
        self.look_at_claim()
    }

    /// The slot of its queue is held until the session has ended, also between two of its processes. The holder keeps
    /// it as well; the replacement of a holder that has just died gets all descriptors of the keeper.
    pub(super) fn keep_slot(&mut self, slot: OwnedFd) {
        pause_points::at(Point::SlotReceived);
        if let Some(line) = self.handles.get(handles::HOLDER_LINE) {
            let _ = control::order_with_file(line, Order::UseSlot, &slot);
        }
        self.handles.put(handles::SLOT, slot);
    }
}
