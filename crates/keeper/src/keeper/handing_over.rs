//! At a usage limit another agent continues: the id of its session is reserved in the journal, then a process of its
//! own (`__handover`) starts that session. However often this process is started, there is only one session with that
//! id.

use super::helper_process::{Ended, Errand};
use super::{Keeper, KeeperError};
use crate::HANDOVER;
use ostler_core::event::Event;
use ostler_core::id::SessionId;
use ostler_sys::pause_points::{self, Point};
use rustix::fd::AsFd;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The result of the handover.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Why there is no session.
    pub refused: Option<String>,
}

impl Keeper {
    pub(super) fn hand_over_to_agent(&mut self) -> Result<bool, KeeperError> {
        let Some(handover) = self.state.handover.clone().filter(|_| self.handing_over.is_none()) else {
            return Ok(false);
        };
        let Some(id) = handover.id else {
            #[expect(clippy::cast_possible_truncation, reason = "random bits")]
            let id = SessionId::from_random(Uuid::new_v4().as_u128() as u64);
            self.note(Event::HandingOver { agent: handover.agent, id })?;
            self.journal.sync()?;
            pause_points::at(Point::HandoverReserved);
            return Ok(true);
        };
        let words = [handover.agent.as_str(), id.as_str()];
        match Errand::start(&self.handles, HANDOVER, &words, self.folder.dir().as_fd(), &[]) {
            Ok(errand) => {
                self.handing_over = Some(errand);
                pause_points::at(Point::HandoverStarted);
                Ok(false)
            }
            Err(error) => {
                self.note(Event::NotHandedOver { why: error.to_string() })?;
                Ok(true)
            }
        }
    }

    /// The process has ended. If it was killed, it is started again.
    pub(super) fn handover_ended(&mut self) -> Result<(), KeeperError> {
        let Some(errand) = self.handing_over.take() else {
            return Ok(());
        };
        let event = match errand.ended::<Answer>()? {
            Ended::Answered(Answer { refused: None }) => Event::HandedOver,
            Ended::Answered(Answer { refused: Some(why) }) => Event::NotHandedOver { why },
            Ended::Failed => Event::NotHandedOver { why: "the process that starts the session failed".to_owned() },
            Ended::Killed => return Ok(()),
        };
        self.note(event)
    }
}
