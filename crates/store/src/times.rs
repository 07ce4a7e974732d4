//! When output came: `out.times` and `err.times`, beside the output itself. The kernel moves output unchanged, so there
//! is no room in it for times. A line here says that the output from a position on came at that time or later.
//!
//! A note is written with the first output of each second. Best effort: where notes are missing (an older session, a
//! full disk, a keeper that was killed between moving and noting), output gets the time of the note before it.

use crate::StoreError;
use crate::folder::read_dispensable;
use crate::journal::open_for_append;
use jiff::Timestamp;
use ostler_sys::dir::Dir;
use std::io::Write;

fn name_of(stream: &str) -> String {
    format!("{stream}.times")
}

/// Notes that the output of this stream (`out`, `err`) from `position` on came now.
pub fn note(run: &Dir, stream: &str, position: u64, at: Timestamp) -> Result<(), StoreError> {
    let name = name_of(stream);
    let line = format!("{} {position}\n", at.as_millisecond());
    open_for_append(run, &name)?.write_all(line.as_bytes()).map_err(StoreError::io(name))
}

/// The notes of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In the order of positions.
    notes: Vec<(u64, Timestamp)>,
}

impl Times {
    pub fn read(run: &Dir, stream: &str) -> Result<Times, StoreError> {
        let name = name_of(stream);
        let text = read_dispensable(run, &name)?.unwrap_or_default();
        let mut notes: Vec<(u64, Timestamp)> = text.split(|&byte| byte == b'\n').filter_map(parse).collect();
        notes.sort_by_key(|(position, _)| *position);
        Ok(Times { notes })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// When the output at this position came.
    #[must_use]
    pub fn at(&self, position: u64) -> Option<Timestamp> {
        let behind = self.notes.partition_point(|(noted, _)| *noted <= position);
        self.notes.get(behind.checked_sub(1)?).map(|(_, at)| *at)
    }

    /// Where the output since then begins; `None` when there is none.
    #[must_use]
    pub fn first_since(&self, since: Timestamp) -> Option<u64> {
        let last_before = self.notes.iter().rposition(|(_, at)| *at < since).map_or(0, |place| place + 1);
        self.notes.get(last_before).map(|(position, _)| *position)
    }
}

/// A line that is torn or joined with another is skipped.
fn parse(line: &[u8]) -> Option<(u64, Timestamp)> {
    let (ms, position) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    Some((position.parse().ok()?, Timestamp::from_millisecond(ms.parse().ok()?).ok()?))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn output_came_with_the_note_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let run = Dir::open(folder.path()).unwrap();
        assert!(Times::read(&run, "out").unwrap().is_empty());
        note(&run, "out", 0, second(10)).unwrap();
        note(&run, "out", 100, second(20)).unwrap();
        // Torn by a crash; the next writer ends the line.
        std::fs::write(folder.path().join("err.times"), "12").unwrap();
        note(&run, "err", 7, second(30)).unwrap();
        let (out, err) = (Times::read(&run, "out").unwrap(), Times::read(&run, "err").unwrap());
        assert_eq!([0, 99, 100, 5000].map(|at| out.at(at)), [10, 10, 20, 20].map(second).map(Some));
        assert_eq!((err.at(0), err.at(7)), (None, Some(second(30))));
        assert_eq!(
            [5, 10, 11, 20, 21].map(|at| out.first_since(second(at))),
            [Some(0), Some(0), Some(100), Some(100), None]
        );
    }
}
