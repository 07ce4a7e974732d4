//! A turn that waits for the model's server, to which the agent repeats its request. Most agents report this in their
//! output; one reports it on its standard error, which [`super::reader`] reads. A turn that does nothing else for too
//! long raises an alarm.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_core::limits::counted;
use ostler_sys::clock::since_boot_ms;

impl Keeper {
    /// A timer runs only for a turn that retries now.
    pub(super) fn raise_retry_alarm_when_due(&mut self) -> Result<(), KeeperError> {
        let (Some(limit_ms), Some(retrying)) = (self.record.retry_alarm_ms, self.state.retrying()) else {
            return Ok(());
        };
        let due_ms = retrying.since_ms.saturating_add(limit_ms);
        if retrying.alarm.is_some() {
            return Ok(());
        }
        if since_boot_ms() < due_ms {
            self.wake_by(due_ms);
            return Ok(());
        }
        let reason = &retrying.reason;
        let text = format!("retrying for more than {}: {reason}", counted(limit_ms / 1000, "second", "seconds"));
        self.note(Event::RetryAlarm { text })
    }
}
