//! A dialog in the terminal of an agent that reports what it does through hooks. Text that is typed then would answer
//! the dialog.
//!
//! No hook reports a dialog, but the agent's record of its own process does. So the keeper looks at that record before
//! it types a message, and once more before it presses return: a busy agent writes that record some time after it has
//! opened a dialog. While a dialog is open the message waits, and the reason is shown. The keeper closes only one
//! dialog: the one that the agent opens by itself when a turn has ended at a usage limit. This dialog opens a moment
//! after the end of the turn is reported, so after such a turn the agent must have been at rest for a while.

use super::prompting::dialog;
use super::{Keeper, KeeperError};
use jiff::Timestamp;
use ostler_agents::speak::{Doing, What};
use ostler_core::record::{Channel, Tty};
use ostler_sys::clock::since_boot_ms;

/// How long the agent must have been at rest after a turn that ended at a usage limit.
const AT_REST_MS: u64 = 1000;
/// When the record says for this long that the agent works, although its turn is over, the record is not believed.
const STALE_MS: u64 = 10_000;
/// How long a dialog may take to close before the message is shown as waiting for it.
const CLOSING_MS: u64 = 5000;

/// What a message waits for.
#[derive(Debug, Default)]
pub(super) struct AwaitedDialog {
    awaited: bool,
    /// When the keys that close the dialog were sent, in milliseconds since boot.
    closing_ms: Option<u64>,
}

impl AwaitedDialog {
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited
    }
}

impl Keeper {
    /// Whether text that is typed now goes to the prompt and not to a dialog.
    pub(super) fn is_without_dialog(&mut self) -> Result<bool, KeeperError> {
        let free = self.record.plan.channel != Channel::Tty(Tty::Hooks) || self.is_at_prompt()?;
        if free {
            self.terminal.dialog = AwaitedDialog::default();
        } else if self.own_record.is_none() {
            // The record is watched from now on. It is looked at again at once, so that nothing in between is missed.
            self.own_record = self.watch_own_record(since_boot_ms());
        }
        self.terminal.dialog.awaited = !free;
        Ok(free)
    }

    /// Whether a dialog is open now. Nothing is done about it.
    pub(super) fn shows_dialog(&self) -> bool {
        self.record.plan.channel == Channel::Tty(Tty::Hooks)
            && self.doing().is_some_and(|doing| doing.what == What::ShowsDialog)
    }

    fn doing(&self) -> Option<Doing> {
        let path = self.agent.own_record(self.process.pid(), &|name| std::env::var(name).ok())?;
        self.agent.doing(&std::fs::read(path).ok()?)
    }

    fn is_at_prompt(&mut self) -> Result<bool, KeeperError> {
        // Without a record there is nothing to wait for.
        let Some(Doing { what, since_ms }) = self.doing() else {
            return Ok(true);
        };
        // Measured with the clock that the agent reads, because the record has the agent's own times.
        let lasts_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0).saturating_sub(since_ms);
        let at_limit = self.state.is_at_limit();
        let enough_ms = match what {
            What::ShowsDialog => {
                self.wait_for_dialog(at_limit)?;
                return Ok(false);
            }
            What::Rests => AT_REST_MS,
            What::Works => STALE_MS,
        };
        if at_limit && lasts_ms < enough_ms {
            self.wake_by(since_boot_ms() + enough_ms - lasts_ms);
            return Ok(false);
        }
        Ok(true)
    }

    /// Closes the dialog of a usage limit, once for each turn; any other dialog is for a person to close.
    fn wait_for_dialog(&mut self, at_limit: bool) -> Result<(), KeeperError> {
        let now_ms = since_boot_ms();
        if let Some(keys) = self.agent.close_dialog_keys().filter(|_| at_limit) {
            self.put_in(&format!("close-{}", self.state.turns), keys)?;
            self.input.pump(&self.handles)?;
            let closing_ms = *self.terminal.dialog.closing_ms.get_or_insert(now_ms);
            if now_ms < closing_ms + CLOSING_MS {
                self.wake_by(closing_ms + CLOSING_MS);
                return Ok(());
            }
        }
        self.say_why_it_waits(Some(dialog(self.agent.name(), self.session.id.as_str())))
    }
}
