//! What a person has begun to write in the prompt line of a terminal must neither be sent with somebody's message nor be lost.
//! Claude puts it aside for a key and brings it back once the next prompt is sent (measured, 2.1.197). Nobody tells whether
//! something stands in that line; that a person has typed since the last prompt of their own is known.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_core::record::Speaks;

/// What may stand in the prompt line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Draft {
    #[default]
    None,
    Perhaps,
    /// The person has put something aside as well: the key might bring that back, into the message.
    OutOfSight,
}

impl Draft {
    /// A person has typed these keys.
    pub(super) fn typed(&mut self, keys: &[u8], stash: Option<u8>) {
        let Some(stash) = stash else {
            return;
        };
        // As terminals of today write it: the letter's number, and 5 for the control key.
        let letter = format!("\x1b[{};5u", u32::from(stash) + 0x60);
        let stashes = keys.contains(&stash) || keys.windows(letter.len()).any(|part| part == letter.as_bytes());
        *self = match self {
            Draft::None | Draft::Perhaps if !stashes => Draft::Perhaps,
            Draft::None | Draft::Perhaps | Draft::OutOfSight => Draft::OutOfSight,
        };
    }

    /// A prompt that is not `ours` has taken along what stood there, and brought back what was put aside.
    pub(super) fn heed(&mut self, event: &Event, ours: bool) {
        if matches!(event, Event::TurnStarted) && !ours {
            *self = match self {
                Draft::None | Draft::Perhaps => Draft::None,
                Draft::OutOfSight => Draft::Perhaps,
            };
        }
    }
}

impl Keeper {
    /// Makes room for the message of this name, unless its first part is typed already.
    pub(super) fn put_draft_aside(&mut self, message: &str) -> Result<(), KeeperError> {
        let tells = self.record.plan.speaks == Speaks::Hooks;
        match (self.draft, self.agent.stash_key()) {
            (Draft::Perhaps, Some(key)) if tells && self.input.received(message) == 0 => {
                self.put_in(&format!("{message}-aside"), vec![key])
            }
            (Draft::None | Draft::Perhaps | Draft::OutOfSight, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Option<u8> = Some(0x13);

    #[test]
    fn what_was_typed_is_a_draft_until_the_person_sends_it_and_not_when_we_send_something() {
        let mut draft = Draft::default();
        draft.typed(b"my dra", None);
        assert_eq!(draft, Draft::None, "an agent without such a key");
        draft.typed(b"my dra", KEY);
        draft.heed(&Event::TurnStarted, true);
        assert_eq!(draft, Draft::Perhaps);
        draft.heed(&Event::TurnStarted, false);
        assert_eq!(draft, Draft::None);
    }

    #[test]
    fn what_a_person_has_put_aside_is_left_alone_until_it_is_back() {
        for keys in [&b"x\x13"[..], b"\x1b[115;5u"] {
            let mut draft = Draft::default();
            draft.typed(keys, KEY);
            draft.typed(b"more", KEY);
            assert_eq!(draft, Draft::OutOfSight);
            draft.heed(&Event::TurnStarted, false);
            assert_eq!(draft, Draft::Perhaps);
        }
    }
}
