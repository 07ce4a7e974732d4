//! How much output may move.
//!
//! Two limits bound it, so that a program that prints without end does no harm to others. A run may print
//! `output_limit`: there the oldest output of a command is dropped, and an agent, of whose output every line matters,
//! is held at its full pipe. And no session prints while less than `min_free_space` is free on the file system.
//!
//! The file system is asked again after a part of the room that it had, so that several sessions that print at the same
//! time do not go far below the limit together. Only while output is held, a timer asks again and reads the settings
//! again.

use super::streams::Hold;
use crate::ReadBounds;
use ostler_core::limits::{OutputBounds, default_min_free};
use ostler_core::record::Mode;
use ostler_sys::dir::Space;
use std::io;

/// The most that is moved between two looks at the file system.
const MOST: u64 = 8 << 20;
/// The least that is moved, where there is little room.
const LEAST: u64 = 64 * 1024;
/// After this time another program may have filled the file system, so the last look counts no more.
const STALE_MS: u64 = 500;
/// How much more a session that is to end may write, for the last output of its agent; at most an eighth of a small
/// limit.
const LAST_WORDS: u64 = 16 << 20;
/// The least that is dropped at once; at most half of a small limit.
const LEAST_DROPPED: u64 = 4 << 20;

pub(super) struct Room {
    mode: Mode,
    limit: Option<u64>,
    min_free: Option<u64>,
    settings: ReadBounds,
    /// How much may move before the file system is looked at again, and when it was looked at.
    left: u64,
    looked_ms: u64,
    min_free_in_force: u64,
    /// How much a session that is to end has written below `min_free_space`, and whether it does so now.
    last_words: u64,
    spends_last_words: bool,
}

/// What the room depends on at this moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub ms: u64,
    /// How much output is stored.
    pub kept: u64,
    /// Its oldest output may be dropped.
    pub drops_oldest: bool,
    /// The session is to end, or its agent is done: its output now is the last.
    pub is_to_end: bool,
}

/// How much may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    Bytes(u64),
    /// Something, once this many bytes of the oldest output are dropped.
    WhenDropped(u64),
    Nothing(Hold),
}

impl Room {
    pub fn new(mode: Mode, bounds: OutputBounds, settings: ReadBounds) -> Room {
        Room {
            mode,
            limit: bounds.limit,
            min_free: bounds.min_free,
            settings,
            left: 0,
            looked_ms: 0,
            min_free_in_force: 0,
            last_words: 0,
            spends_last_words: false,
        }
    }

    /// How much the run may print.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// This many bytes were written.
    pub fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        if self.spends_last_words {
            self.last_words += bytes;
        }
    }

    /// Reads the settings again. The limit of a terminal is another setting, and no output is held there.
    pub fn read_settings(&mut self) {
        if let Some(now) = (self.settings)() {
            self.min_free = now.min_free;
            if self.mode == Mode::Headless {
                self.limit = now.limit;
            }
        }
    }

    /// The file system is looked at before anything moves.
    pub fn look_again(&mut self) {
        self.left = 0;
    }

    /// How much may move now. `held`: why nothing has moved so far. `space` asks the file system.
    pub fn allowed(
        &mut self,
        now: Now,
        held: Option<Hold>,
        space: impl FnOnce() -> io::Result<Space>,
    ) -> io::Result<Allowed> {
        let by_limit = match self.below_limit(now) {
            Allowed::Bytes(bytes) => bytes,
            other @ (Allowed::WhenDropped(_) | Allowed::Nothing(_)) => return Ok(other),
        };
        if self.left == 0 || now.ms >= self.looked_ms + STALE_MS {
            self.look_at_disk(now, held, space()?);
        }
        if self.left == 0 {
            return Ok(Allowed::Nothing(Hold::LittleSpace { min_free: self.min_free_in_force }));
        }
        Ok(Allowed::Bytes(self.left.min(by_limit)))
    }

    fn look_at_disk(&mut self, now: Now, held: Option<Hold>, space: Space) {
        let min_free = self.min_free_of(space);
        // Output that was held continues only when there is a little more room, so that it is not held again at once.
        let more = if matches!(held, Some(Hold::LittleSpace { .. })) { (min_free / 8).min(64 << 20) } else { 0 };
        (self.looked_ms, self.min_free_in_force) = (now.ms, min_free);
        self.spends_last_words = false;
        self.left = match space.free.checked_sub(min_free + more) {
            // Without `min_free_space` the disk is filled to the end; writing then fails with an error.
            _ if min_free == 0 => MOST,
            Some(spare) => (spare / 16).clamp(spare.min(LEAST), MOST),
            None => 0,
        };
        if self.left == 0 && now.is_to_end {
            self.spends_last_words = true;
            // At most half of what is free: the records of the end, and those of other sessions, need room as well.
            let last_words = LAST_WORDS.min(min_free / 8).min(space.free / 2);
            self.left = last_words.saturating_sub(self.last_words).min(MOST);
            if !ostler_store::disk_reserve::has_for_output(space.free) {
                self.left = 0;
            }
        }
    }

    fn min_free_of(&self, space: Space) -> u64 {
        self.min_free.unwrap_or_else(|| default_min_free(space.total))
    }

    /// Whether this many bytes may be written in addition to the output.
    pub fn leaves_min_free(&self, bytes: u64, space: Space) -> bool {
        let min_free = self.min_free_of(space);
        min_free == 0 || space.free.saturating_sub(bytes) >= min_free
    }

    /// How much may be written before the limit of the run is reached. The output of a terminal is dropped when there
    /// is a snapshot of its screen.
    fn below_limit(&self, now: Now) -> Allowed {
        let Some(limit) = self.limit.filter(|_| self.mode == Mode::Headless) else {
            return Allowed::Bytes(u64::MAX);
        };
        if now.kept >= limit && now.drops_oldest {
            // Not too little at once: each drop is an entry in the journal.
            let part = (limit / 8).max((limit / 2).min(LEAST_DROPPED));
            return Allowed::WhenDropped(now.kept - (limit - part));
        }
        let last_words = if now.is_to_end { LAST_WORDS.min(limit / 8) } else { 0 };
        match (limit + last_words).saturating_sub(now.kept) {
            0 => Allowed::Nothing(Hold::Limit { limit }),
            _ if now.kept < limit => Allowed::Bytes(limit - now.kept),
            bytes => Allowed::Bytes(bytes),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const TOTAL: u64 = 1 << 40;
    const NOW: Now = Now { ms: 1000, kept: 0, drops_oldest: false, is_to_end: false };

    fn room(limit: Option<u64>, min_free: u64) -> Room {
        Room::new(Mode::Headless, OutputBounds { limit, min_free: Some(min_free) }, || None)
    }

    fn free(bytes: u64) -> impl FnOnce() -> io::Result<Space> {
        move || Ok(Space { free: bytes, total: TOTAL })
    }

    fn not_asked() -> io::Result<Space> {
        Err(io::Error::other("the file system is asked too often"))
    }

    #[test]
    fn the_file_system_is_asked_again_when_its_share_is_used_or_the_answer_is_old() {
        let mut room = room(None, 100 * MIB);
        assert_eq!(room.allowed(NOW, None, free(116 * MIB)).unwrap(), Allowed::Bytes(MIB));
        room.spend(MIB - 1);
        assert_eq!(room.allowed(NOW, None, not_asked).unwrap(), Allowed::Bytes(1));
        // Other programs have filled the disk: what was allowed before no longer counts.
        let later = Now { ms: NOW.ms + STALE_MS, ..NOW };
        let hold = Hold::LittleSpace { min_free: 100 * MIB };
        assert_eq!(room.allowed(later, None, free(100 * MIB)).unwrap(), Allowed::Nothing(hold));
        // Held output continues when there is a little more than that.
        assert_eq!(room.allowed(later, Some(hold), free(101 * MIB)).unwrap(), Allowed::Nothing(hold));
        assert_eq!(
            room.allowed(later, Some(hold), free(200 * MIB)).unwrap(),
            Allowed::Bytes((100 * MIB - 100 * MIB / 8) / 16)
        );
    }

    #[test]
    fn at_the_limit_a_command_drops_its_oldest_output_and_an_agent_is_held() {
        let mut room = room(Some(16 * MIB), 0);
        let full = Now { kept: 16 * MIB, ..NOW };
        let near = Now { kept: 16 * MIB - 5, ..NOW };
        assert_eq!(room.allowed(near, None, free(0)).unwrap(), Allowed::Bytes(5));
        let held = Allowed::Nothing(Hold::Limit { limit: 16 * MIB });
        assert_eq!(room.allowed(full, None, not_asked).unwrap(), held);
        let dropped = room.allowed(Now { drops_oldest: true, ..full }, None, not_asked).unwrap();
        assert_eq!(dropped, Allowed::WhenDropped(4 * MIB));
        // A session that is to end may write its last output.
        let ending = Now { is_to_end: true, ..full };
        assert_eq!(room.allowed(ending, None, not_asked).unwrap(), Allowed::Bytes(2 * MIB));
        let said = Now { kept: 18 * MIB, ..ending };
        assert_eq!(room.allowed(said, None, not_asked).unwrap(), held);
    }

    #[test]
    fn the_last_words_on_a_disk_with_little_room_are_bounded() {
        let mut room = room(None, 800 * MIB);
        let ending = Now { is_to_end: true, ..NOW };
        let mut said = 0;
        while let Allowed::Bytes(bytes) = room.allowed(ending, None, free(700 * MIB)).unwrap() {
            room.spend(bytes);
            said += bytes;
        }
        assert_eq!(said, LAST_WORDS);
        assert!(!room.leaves_min_free(1, Space { free: 800 * MIB, total: TOTAL }));
        assert!(room.leaves_min_free(0, Space { free: 800 * MIB, total: TOTAL }));
    }
}
