//! Room on the disk.
//!
//! On a disk that fills up, the agent's output fails first, and then the few records that say how the session ended. So
//! each session reserves a little space for those, and output that has met a full disk continues only when there is
//! room for much more.

use crate::StoreError;
use crate::folder::Folder;
use ostler_sys::dir::{Dir, free_space};
use std::io;

/// Kept free for the stop request, the exit and the outcome of a session on a full disk.
const RESERVE: u64 = 64 * 1024;
const RESERVED: &str = "keeper.lock";
/// So much must be free before output that met a full disk continues: several times the reserve for records.
const ROOM_FOR_OUTPUT: u64 = 256 * 1024;
/// A disk with less free space than this is full: not even a page of output fits beside the records.
const NO_ROOM: u64 = 16 * 1024;

/// Whether this much free space is enough for output beside the records.
#[must_use]
pub fn has_for_output(free: u64) -> bool {
    free >= ROOM_FOR_OUTPUT
}

/// Whether sessions on this disk may be waiting for room.
pub fn is_nearly_full(disk: &Dir) -> io::Result<bool> {
    Ok(!has_for_output(free_space(disk)?))
}

impl Folder {
    /// Whether there is room for a session: for its first records, and for what its keeper will reserve.
    pub fn has_room(&self) -> Result<bool, StoreError> {
        Ok(free_space(self.dir()).map_err(StoreError::io("the disk"))? >= 2 * RESERVE)
    }

    /// Whether output that met a full disk may continue.
    pub fn has_room_for_output(&self) -> Result<bool, StoreError> {
        Ok(!is_nearly_full(self.dir()).map_err(StoreError::io("the disk"))?)
    }

    /// Reserves disk space, in the keeper's lock file, which has no other contents: a separate file would cost every
    /// launch one more name. Best effort: if it fails, it is tried again when there is room.
    pub fn keep_reserve(&self) {
        let _ = self.dir().reserve(RESERVED, RESERVE);
    }

    /// Frees a part of the reserve, when it is needed. Not all of it at once, because a program that still writes may
    /// be faster than we are. False when nothing is left.
    pub fn spend_reserve(&self) -> bool {
        self.dir().shorten(RESERVED, RESERVE / 8).unwrap_or(false)
    }

    /// Shows that output has met a full disk and waits: readers see that the reserve is not whole.
    pub fn show_that_output_waits(&self) {
        if self.reserve_is_whole() {
            self.spend_reserve();
        }
    }

    fn reserve_is_whole(&self) -> bool {
        self.dir().stat(RESERVED).is_ok_and(|lock| lock.is_some_and(|lock| lock.size >= RESERVE))
    }

    /// Whether the session waits for room on the disk.
    pub fn waits_for_room(&self) -> bool {
        let free = free_space(self.dir()).unwrap_or(u64::MAX);
        free < NO_ROOM || (free < ROOM_FOR_OUTPUT && !self.reserve_is_whole())
    }

    /// Frees the whole reserve: nothing more will be written.
    pub fn release_reserve(&self) {
        // If the file is already gone, there is nothing to free.
        let _ = self.dir().empty(RESERVED);
    }

    /// Does something that needs a little disk space, with the reserve if necessary.
    pub fn even_when_full<T>(&self, mut action: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        loop {
            match action() {
                Err(error) if error.is_full_disk() && self.spend_reserve() => {}
                other => return other,
            }
        }
    }
}
