//! What a program printed. The oldest part may be dropped while it is being read.
//!
//! Dropped bytes read as zeros. The journal notes that they are dropped before it happens, so a reader that finds a
//! hole in the file after reading there checks the journal.

use crate::StoreError;
use crate::folder::{Folder, RunFolder};
use crate::growing_file::Pieces;
use crate::journal;
use ostler_core::event::Event;

/// A part of what was printed.
#[derive(Debug, PartialEq, Eq)]
pub enum Printed<'a> {
    Bytes(&'a [u8]),
    /// So many bytes are gone.
    Dropped(u64),
}

/// Where the part of `out` or `err` begins that is still there.
pub fn begins(folder: &Folder, run: &RunFolder, name: &str) -> Result<u64, StoreError> {
    let found = journal::read(folder.dir(), 0)?;
    let dropped = found.entries.into_iter().filter(|entry| entry.run == run.number).filter_map(|entry| {
        if let (Event::Trimmed { to }, "out") | (Event::TrimmedErr { to }, "err") = (entry.event, name) {
            Some(to)
        } else {
            None
        }
    });
    Ok(dropped.max().unwrap_or(0))
}

/// Reads `out` or `err` from `position` to its present end.
pub fn read_on(
    folder: &Folder,
    run: &RunFolder,
    name: &str,
    position: &mut u64,
    mut each: impl FnMut(Printed<'_>),
) -> Result<(), StoreError> {
    let Some(mut pieces) = Pieces::open(run.dir(), name, *position)? else {
        return Ok(());
    };
    loop {
        let start = *position;
        let Some(bytes) = pieces.next(position)? else {
            return Ok(());
        };
        let length = bytes.len();
        // Only the beginning of a file is dropped, so the first byte of the piece is enough. A file system may also
        // store zeros as a hole.
        let begins = if pieces.has_hole_at(start)? { begins(folder, run, name)? } else { 0 };
        if begins <= start {
            each(Printed::Bytes(pieces.last(length)));
            continue;
        }
        each(Printed::Dropped(begins - start));
        let gone = usize::try_from(begins - start).unwrap_or(usize::MAX).min(length);
        if gone < length {
            each(Printed::Bytes(&pieces.last(length)[gone..]));
        }
        *position = begins.max(*position);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::journal::Journal;
    use jiff::Timestamp;
    use ostler_core::event::Entry;
    use ostler_sys::dir::{self, Dir};
    use rustix::fs::OFlags;

    const BLOCK: u64 = 64 * 1024;

    fn session() -> (tempfile::TempDir, Folder, RunFolder) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("runs/1")).unwrap();
        std::fs::write(folder.path().join("runs/1/out"), vec![b'x'; usize::try_from(8 * BLOCK).unwrap()]).unwrap();
        let opened = Folder::new(Dir::open(folder.path()).unwrap());
        let run = opened.run(1).unwrap();
        (folder, opened, run)
    }

    fn punch(run: &RunFolder, to: u64) {
        let file = run.dir().file("out", OFlags::RDWR).unwrap();
        dir::forget_front(file, to).unwrap();
    }

    fn read(folder: &Folder, run: &RunFolder, from: u64) -> (u64, Vec<u8>, u64) {
        let (mut position, mut dropped, mut bytes) = (from, 0, Vec::new());
        read_on(folder, run, "out", &mut position, |printed| match printed {
            Printed::Bytes(more) => bytes.extend_from_slice(more),
            Printed::Dropped(gone) => dropped += gone,
        })
        .unwrap();
        (dropped, bytes, position)
    }

    #[test]
    fn what_was_dropped_is_told_and_not_read_as_zeros() {
        let (_kept, folder, run) = session();
        let note = |to| {
            let (at, event) = (Timestamp::UNIX_EPOCH, Event::Trimmed { to });
            let entry = Entry { at, ms: 1, run: 1, out: None, request: None, inbox: None, notify: None, event };
            Journal::open(folder.dir()).unwrap().append(&entry).unwrap();
        };
        note(3 * BLOCK);
        punch(&run, 3 * BLOCK);
        let (dropped, bytes, end) = read(&folder, &run, 0);
        assert_eq!((dropped, bytes.len() as u64, end), (3 * BLOCK, 5 * BLOCK, 8 * BLOCK));
        assert!(bytes.iter().all(|&byte| byte == b'x'));
        // More than one piece, and from the middle.
        note(6 * BLOCK);
        punch(&run, 6 * BLOCK);
        let (dropped, bytes, end) = read(&folder, &run, BLOCK + 7);
        assert_eq!((dropped, bytes.len() as u64, end), (5 * BLOCK - 7, 2 * BLOCK, 8 * BLOCK));
        assert!(bytes.iter().all(|&byte| byte == b'x'));
    }

    #[test]
    fn zeros_that_a_program_printed_are_what_it_printed() {
        let (_kept, folder, run) = session();
        punch(&run, 2 * BLOCK);
        let (dropped, bytes, end) = read(&folder, &run, 0);
        assert_eq!((dropped, bytes.len() as u64, end), (0, 8 * BLOCK, 8 * BLOCK));
    }
}
