//! A turn that waits for the model's server, which the agent asks again and again. Most agents tell so in their output; one
//! does on its standard error, which is read here. A turn that does nothing else for too long becomes an alarm.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_core::fact::Fact;
use ostler_core::limits::counted;
use ostler_core::record::Mode;
use ostler_sys::clock::since_boot_ms;
use ostler_view::agent_feed::AgentFeed;

impl Keeper {
    /// What reads the agent's standard error, if anything in it matters.
    pub(super) fn error_reader(&self) -> Option<AgentFeed> {
        let decoder = self.agent.error_reader().filter(|_| self.record.plan.mode() == Mode::Headless)?;
        Some(AgentFeed::of_errors(self.state.output.err_read, decoder))
    }

    /// Reads what is new on the agent's standard error. Before its output: an answer there comes after the retry.
    pub(super) fn understand_errors(&mut self) -> Result<(), KeeperError> {
        let Some(mut pieces) =
            self.error_feed.as_ref().map(|errors| errors.pieces(self.run.dir())).transpose()?.flatten()
        else {
            return Ok(());
        };
        while let Some(told) = self.error_feed.as_mut().map(|errors| errors.read(&mut pieces)).transpose()?.flatten() {
            for (end, fact) in told {
                if let Fact::Retrying(retry) = fact
                    && self.state.turn_running()
                {
                    self.note(Event::Retrying { retry, err: Some(end) })?;
                }
            }
        }
        Ok(())
    }

    /// The only timer is that of a turn that retries now.
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
