//! Ending a running session whose records cannot be read: its helpers have what they need in memory.

use crate::error::{Error, Result};
use crate::orphans::still_runs;
use ostler_store::StoreError;
use ostler_store::home::Place;
use ostler_sys::process::Pidfd;
use ostler_view::look::{Depth, look_to};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::time::{Duration, Instant};

/// How long helpers may take in addition to the grace period: they also save and clean up.
const CLEARING_UP: Duration = Duration::from_secs(10);

/// The helpers of a damaged session, which were told to end it.
pub struct Helpers {
    place: Place,
    damage: String,
    pidfds: Vec<Pidfd>,
}

/// Asks the helpers of a session that cannot be looked at to end it, with the signal of a machine that shuts down.
/// `None`: the session can be looked at, or none of its processes lives.
pub fn tell_helpers(place: &Place) -> Result<Option<Helpers>> {
    let damage = match look_to(Depth::Awaited, place).map_err(StoreError::without_session) {
        Err(error @ (StoreError::Damaged { .. } | StoreError::Missing { .. })) => error.to_string(),
        Ok(_) | Err(_) => return Ok(None),
    };
    let mut pidfds = Vec::new();
    for helper in place.open()?.helpers() {
        if let Some(pidfd) = Pidfd::open(&helper.process)?
            && !pidfd.has_exited()?
        {
            pidfds.push(pidfd);
        }
    }
    if pidfds.is_empty() && !still_runs(place)? {
        return Ok(None);
    }
    // Both helpers: a keeper that has just been started cannot read those records either, and then the holder ends the
    // agent.
    for pidfd in &pidfds {
        pidfd.signal(Signal::TERM)?;
    }
    Ok(Some(Helpers { place: place.clone(), damage, pidfds }))
}

impl Helpers {
    /// Waits until the helpers have ended the session and exited; returns what is damaged.
    pub fn until_gone(self, grace: Duration) -> Result<String> {
        let deadline = Instant::now() + grace + CLEARING_UP;
        for pidfd in &self.pidfds {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
            while !pidfd.has_exited()? {
                match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.as_ref()) {
                    Ok(0) => {
                        return Err(Error::HelpersDoNotEndIt { id: self.place.id, damage: self.damage });
                    }
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(std::io::Error::from(error).into()),
                }
            }
        }
        if still_runs(&self.place)? {
            return Err(Error::ProcessLeft { id: self.place.id, damage: self.damage });
        }
        Ok(self.damage)
    }
}
