//! `runs/<n>/fed.jsonl`: which bytes of `in` came from which source.
//!
//! The race this solves: the process that appends to `in` may be killed before it has noted that it did, or after it
//! has noted it and before it did. So each piece is noted first, with its position and length. What really arrived is
//! decided by the size of `in`: a piece that never (or only partly) arrived counts for as much as arrived, and its
//! source is asked for the rest. Nothing is put in twice, nothing is lost.

use crate::StoreError;
use crate::journal::open_for_append;
use ostler_sys::dir::Dir;
use ostler_sys::pause_points::{self, Point};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

const NOTES: &str = "fed.jsonl";

/// A note of typed input covers at least so many bytes: what is typed next needs no note of its own.
const TYPED: u64 = 64 * 1024;

/// One piece of input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Piece {
    /// The source: `m7` for message 7, a client's own name for its keys.
    from: String,
    /// Where in `in` it begins.
    at: u64,
    len: u64,
}

/// The one writer of `in`.
#[derive(Debug)]
pub struct Feed {
    notes: File,
    input: File,
    size: u64,
    received: HashMap<String, u64>,
    ends: HashMap<String, u64>,
    /// The last note, if it covers more than has been put in.
    open: Option<Open>,
    /// The last note may be only partly on the disk, because the disk was full.
    torn: bool,
}

/// A note of typed input: its source, and up to where in `in` it reaches.
#[derive(Debug)]
struct Open {
    from: String,
    end: u64,
}

impl Feed {
    /// Opens both files and computes how much of each source has really been put in.
    pub fn open(run: &Dir, input: File) -> Result<Feed, StoreError> {
        let size = input.metadata().map_err(StoreError::io("in"))?.len();
        let bytes = run.read(NOTES).map_err(StoreError::io(NOTES))?.unwrap_or_default();
        let pieces: Vec<Piece> =
            bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let ends = pieces.iter().map(|piece| (piece.from.clone(), piece.at.saturating_add(piece.len))).collect();
        let (notes, received) = (open_for_append(run, NOTES)?, received(&pieces, size));
        Ok(Feed { notes, input, size, received, ends, open: None, torn: false })
    }

    /// How many bytes of this source are in.
    #[must_use]
    pub fn received(&self, from: &str) -> u64 {
        self.received.get(from).copied().unwrap_or(0)
    }

    /// Where the last piece of this source ends, whether it was put in or not.
    #[must_use]
    pub fn end_of(&self, from: &str) -> Option<u64> {
        self.ends.get(from).copied()
    }

    /// Where the input ends.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Puts the next bytes of this source in.
    pub fn put(&mut self, from: &str, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.open = None;
        self.note(from, bytes.len() as u64)?;
        self.write(from, bytes)
    }

    /// Puts in what a person types, key by key. A note is written only when another source has put something in since
    /// the last one, or when the last note is used up. A piece counts for what has arrived before the next one begins,
    /// so its note may be longer than the piece will be.
    pub fn put_typed(&mut self, from: &str, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = self.size + bytes.len() as u64;
        if self.open.as_ref().is_none_or(|open| open.from != from || end > open.end) {
            self.open = None;
            let covered = TYPED.max(bytes.len() as u64);
            self.note(from, covered)?;
            self.open = Some(Open { from: from.to_owned(), end: self.size + covered });
        }
        self.write(from, bytes)
    }

    fn note(&mut self, from: &str, len: u64) -> Result<(), StoreError> {
        let piece = Piece { from: from.to_owned(), at: self.size, len };
        let mut line = crate::folder::to_json(&piece);
        if std::mem::replace(&mut self.torn, true) {
            line.insert(0, b'\n');
        }
        self.notes.write_all(&line).map_err(StoreError::io(NOTES))?;
        self.torn = false;
        self.ends.insert(piece.from, piece.at + piece.len);
        pause_points::at(Point::PieceNoted);
        Ok(())
    }

    fn write(&mut self, from: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut written = 0;
        while written < bytes.len() {
            match self.input.write_at(&bytes[written..], self.size) {
                Ok(count) => {
                    written += count;
                    self.size += count as u64;
                    *self.received.entry(from.to_owned()).or_default() += count as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io("in")(error)),
            }
        }
        pause_points::at(Point::PiecePut);
        Ok(())
    }
}

/// A piece has arrived up to the beginning of the next one, or up to the end of the file.
fn received(pieces: &[Piece], size: u64) -> HashMap<String, u64> {
    let mut received: HashMap<String, u64> = HashMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        let end = pieces.get(index + 1).map_or(size, |next| next.at.min(size));
        *received.entry(piece.from.clone()).or_default() += end.saturating_sub(piece.at).min(piece.len);
    }
    received
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rustix::fs::OFlags;

    fn open(dir: &Dir) -> Feed {
        Feed::open(dir, File::from(dir.file("in", OFlags::RDWR | OFlags::CREATE).unwrap())).unwrap()
    }

    #[test]
    fn killed_before_during_or_after_a_piece_the_source_learns_what_arrived() {
        let text: Vec<u8> = (0..=255).collect();
        for arrived in [0, 1, 100, 256] {
            let folder = tempfile::tempdir().unwrap();
            let dir = Dir::open(folder.path()).unwrap();
            let mut feed = open(&dir);
            feed.put("a", b"before").unwrap();
            feed.put("b", &text).unwrap();
            feed.input.set_len(6 + arrived).unwrap();
            drop(feed);

            let mut feed = open(&dir);
            assert_eq!((feed.received("a"), feed.received("b")), (6, arrived));
            feed.put("a", b"more").unwrap();
            let rest = usize::try_from(arrived).unwrap();
            feed.put("b", &text[rest..]).unwrap();
            let feed = open(&dir);
            assert_eq!((feed.received("a"), feed.received("b"), feed.size()), (10, 256, 266));
        }
    }

    #[test]
    fn keys_typed_one_after_the_other_share_a_note_and_are_still_counted_exactly() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let notes = || dir.read(NOTES).unwrap().unwrap().split(|&byte| byte == b'\n').count() - 1;
        let mut feed = open(&dir);
        for key in b"abc" {
            feed.put_typed("one", &[*key]).unwrap();
        }
        assert_eq!(notes(), 1);
        // Another source comes in between, and a keeper is killed.
        feed.put("message-1", b"hello").unwrap();
        feed.put_typed("one", b"d").unwrap();
        feed.put_typed("two", b"x").unwrap();
        feed.put_typed("one", b"e").unwrap();
        drop(feed);
        let mut feed = open(&dir);
        let counted = |feed: &Feed| ["one", "two", "message-1"].map(|from| feed.received(from));
        assert_eq!(counted(&feed), [5, 1, 5]);
        assert_eq!(feed.end_of("message-1"), Some(8));
        feed.put_typed("one", b"f").unwrap();
        // Killed after a note and before its keys.
        feed.note("two", TYPED).unwrap();
        assert_eq!(counted(&open(&dir)), [6, 1, 5]);
        feed.put_typed("one", &vec![b'y'; 2 * TYPED as usize]).unwrap();
        feed.put_typed("one", b"z").unwrap();
        assert_eq!(counted(&open(&dir)), [6 + 2 * TYPED + 1, 1, 5]);
        assert_eq!(dir.read("in").unwrap().unwrap().len() as u64, open(&dir).size());
    }
}
