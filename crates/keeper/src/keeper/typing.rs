//! Typing a message into an agent's terminal. Agents take keys that come close together for one paste, and the return that
//! should send it for a line break in it. So the return is pressed as a person would: when the text has appeared and the
//! screen has come to rest.

use super::{Keeper, KeeperError};
use ostler_sys::clock::since_boot_ms;

/// How long the screen must have been at rest. The agent with the longest memory takes keys for one paste that come within
/// 120 ms of each other.
const REST_MS: u64 = 250;
/// A screen that never rests, or never shows what is typed, is not waited for any longer than this.
const LONGEST_MS: u64 = 3000;

/// The end of a message, when its beginning is typed already.
pub(super) struct KeysToCome {
    name: String,
    keys: Vec<u8>,
    /// Begins when the program has taken what comes before.
    pause: Option<Pause>,
}

struct Pause {
    began_ms: u64,
    /// How much it had drawn when we last looked.
    drawn: u64,
    /// When it drew something since the pause began.
    drew_ms: Option<u64>,
}

impl KeysToCome {
    /// Nothing, when there are no keys to come.
    pub(super) fn after(name: &str, keys: Vec<u8>) -> Option<KeysToCome> {
        (!keys.is_empty()).then(|| KeysToCome { name: format!("{name}-sent"), keys, pause: None })
    }

    /// When to look again whether it is time.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.pause.as_ref().map(Pause::ends_ms)
    }
}

impl Pause {
    fn ends_ms(&self) -> u64 {
        let longest = self.began_ms + LONGEST_MS;
        self.drew_ms.map_or(longest, |ms| longest.min(ms + REST_MS))
    }
}

impl Keeper {
    /// Once the program has taken what was put in: types the rest of the message when it is time. True when all of it is
    /// typed.
    pub(super) fn all_is_typed(&mut self) -> Result<bool, KeeperError> {
        let (now, drawn) = (since_boot_ms(), self.out_position()?);
        let Some(rest) = &mut self.keys_to_come else {
            return Ok(true);
        };
        let pause = rest.pause.get_or_insert(Pause { began_ms: now, drawn, drew_ms: None });
        if pause.drawn != drawn {
            pause.drawn = drawn;
            pause.drew_ms = Some(now);
        }
        if now < pause.ends_ms() {
            return Ok(false);
        }
        if let Some(rest) = self.keys_to_come.take() {
            self.put_in(&rest.name, rest.keys)?;
            self.input.pump(&self.handles)?;
        }
        Ok(self.input.is_taken(&self.handles)?)
    }
}
