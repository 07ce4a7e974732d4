//! A terminal session's screen from its files: `size` notes when the window changed, `screen` is a snapshot taken at
//! least every MiB, `out` has the bytes since. `screen.scrollback` is the same snapshot together with what had scrolled
//! off by then: only attaching needs that, and a list that draws many screens should not have to read it. No keeper is
//! needed to read them.

use ostler_screen::{Lines, Screen, Scrollback, Size};
use ostler_store::StoreError;
use ostler_store::folder::read_dispensable;
use ostler_store::growing_file::read_from;
use ostler_store::journal::open_for_append;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::lock;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// How much output may come between two snapshots.
pub const SNAPSHOT_EVERY: u64 = 1 << 20;

/// How many lines that have scrolled off are kept: as many as tmux keeps.
pub const SCROLLBACK: usize = 2000;

/// The window had this size from position `at` of the output on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resize {
    pub at: u64,
    pub rows: u16,
    pub columns: u16,
}

/// Appends to `size`.
pub fn note_size(run: &Dir, resize: Resize) -> Result<(), StoreError> {
    let mut file = open_for_append(run, "size")?;
    file.write_all(&ostler_store::folder::to_json(&resize)).map_err(StoreError::io("size"))
}

fn sizes(run: &Dir) -> Result<Vec<Resize>, StoreError> {
    let bytes = read_dispensable(run, "size")?.unwrap_or_default();
    Ok(bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// A screen and the position of the output up to which it is right.
#[derive(Debug)]
pub struct At {
    pub screen: Screen,
    pub position: u64,
}

/// Position of the newest snapshot, 0 when there is none.
pub fn snapshot_position(run: &Dir) -> Result<u64, StoreError> {
    let bytes = read_dispensable(run, "screen")?.unwrap_or_default();
    Ok(parse_snapshot(&bytes).map_or(0, |(position, _)| position))
}

/// Reads what a program drew, with the changes of its window at their positions.
#[derive(Debug)]
pub struct Replay {
    position: u64,
}

/// A piece of what a program drew.
#[derive(Debug)]
pub enum Drawn<'a> {
    Bytes(&'a [u8]),
    Resized(Size),
}

impl Replay {
    #[must_use]
    pub fn from(position: u64) -> Replay {
        Replay { position }
    }

    /// Everything up to the present end. A change of the window at which the last call ended comes again, which does no
    /// harm.
    pub fn read_on(&mut self, run: &Dir, mut each: impl FnMut(Drawn<'_>)) -> Result<(), StoreError> {
        let mut place = self.position;
        let mut changes = sizes(run)?.into_iter().filter(|resize| resize.at >= place).collect::<Vec<_>>().into_iter();
        let mut next = changes.next();
        read_from(run, "out", &mut self.position, |mut bytes| {
            while let Some(resize) = next {
                let before = usize::try_from(resize.at.saturating_sub(place)).unwrap_or(usize::MAX);
                if before > bytes.len() {
                    break;
                }
                let (first, rest) = bytes.split_at(before);
                each(Drawn::Bytes(first));
                each(Drawn::Resized(window(&resize)));
                place += first.len() as u64;
                bytes = rest;
                next = changes.next();
            }
            each(Drawn::Bytes(bytes));
            place += bytes.len() as u64;
        })?;
        for resize in next.into_iter().chain(changes) {
            each(Drawn::Resized(window(&resize)));
        }
        Ok(())
    }
}

/// The screen at the present end of the output.
pub fn now(run: &Dir) -> Result<At, StoreError> {
    read_to_end(stored_screen(run)?, run)
}

/// If a snapshot cannot be read, only time is lost: everything is in the output.
fn read_to_end(stored: Option<At>, run: &Dir) -> Result<At, StoreError> {
    let At { mut screen, position } = match stored {
        Some(at) => at,
        None => At { screen: Screen::new(first_window(run)?), position: 0 },
    };
    let mut replay = Replay::from(position);
    replay.read_on(run, |drawn| match drawn {
        Drawn::Bytes(bytes) => screen.feed(bytes),
        Drawn::Resized(size) => screen.resize(size),
    })?;
    Ok(At { screen, position: replay.position })
}

/// How much a list draws of a program that has drawn at least twice as much since the snapshot: about two screens.
const NEARLY: u64 = 8 * 1024;

/// The screen for a list, which shows its last line. If a program has drawn a lot since the snapshot, only the end of
/// that is drawn, over the screen of the snapshot: otherwise a hundred of them would take a second.
pub fn nearly_now(run: &Dir) -> Result<Screen, StoreError> {
    let stored = stored_screen(run)?;
    let end = run.stat("out").map_err(StoreError::io("out"))?.map_or(0, |out| out.size);
    let from = end.saturating_sub(NEARLY);
    if from < stored.as_ref().map_or(0, |at| at.position) + NEARLY {
        return Ok(read_to_end(stored, run)?.screen);
    }
    let size = sizes(run)?.iter().rev().find(|resize| resize.at <= from).map(window);
    let size = size.map_or_else(|| first_window(run), Ok)?;
    let mut screen = stored.map_or_else(|| Screen::new(size), |at| at.screen);
    screen.resize(size);
    // An escape sequence that was incomplete at the snapshot is over, and the next text is mostly at the bottom.
    screen.feed(b"\x18\x1b[9999;1H");
    let mut begun = false;
    Replay::from(from).read_on(run, |drawn| match drawn {
        Drawn::Bytes([]) => {}
        Drawn::Bytes(bytes) => {
            // From the beginning of a line, so that half an escape sequence is not drawn as text.
            let line = if begun { 0 } else { bytes.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1) };
            begun = true;
            screen.feed(&bytes[line..]);
        }
        Drawn::Resized(size) => screen.resize(size),
    })?;
    Ok(screen)
}

/// The screen at the present end of the output with what has scrolled off it, and the position of that end.
pub fn now_with_scrollback(run: &Dir) -> Result<(Scrollback, u64), StoreError> {
    let (mut scrollback, position) = stored_scrollback(run)?;
    let mut replay = Replay::from(position);
    replay.read_on(run, |drawn| match drawn {
        Drawn::Bytes(bytes) => scrollback.feed(bytes),
        Drawn::Resized(size) => scrollback.resize(size),
    })?;
    Ok((scrollback, replay.position))
}

fn stored_screen(run: &Dir) -> Result<Option<At>, StoreError> {
    let bytes = read_dispensable(run, "screen")?.unwrap_or_default();
    Ok(parse_snapshot(&bytes).and_then(|(position, state)| Some(At { screen: Screen::restore(state).ok()?, position })))
}

/// The newest snapshot with what had scrolled off. A version that knows only `screen` may have written `screen` later,
/// and the output before it may be gone. So both files are read, `screen` first, because `screen.scrollback` is written
/// first and is otherwise never older.
fn stored_scrollback(run: &Dir) -> Result<(Scrollback, u64), StoreError> {
    let screen = stored_screen(run)?;
    let bytes = read_dispensable(run, "screen.scrollback")?.unwrap_or_default();
    if let Ok((scrollback, position)) = Scrollback::restore(&bytes, SCROLLBACK)
        && screen.as_ref().is_none_or(|screen| screen.position <= position)
    {
        return Ok((scrollback, position));
    }
    Ok(match screen {
        Some(At { screen, position }) => {
            (Scrollback::of(screen, scrolled_off_before(run, position)?, SCROLLBACK), position)
        }
        None => (Scrollback::new(first_window(run)?, SCROLLBACK), 0),
    })
}

/// How much output is replayed at most to find what has scrolled off, if that was not stored.
const SCROLLED: u64 = 4 << 20;

/// The last lines that have scrolled off the screen up to this position, from the output alone. Of a long output only
/// the end is read; then the first lines found there may be wrong, where the program drew over earlier text.
fn scrolled_off_before(run: &Dir, until: u64) -> Result<Lines, StoreError> {
    let from = until.saturating_sub(SCROLLED);
    let begun = sizes(run)?.iter().rev().find(|resize| resize.at <= from).map(window);
    let mut scrollback = Scrollback::new(begun.map_or_else(|| first_window(run), Ok)?, SCROLLBACK);
    if from > 0 {
        scrollback.begin_at_the_bottom();
    }
    let mut replay = Replay::from(from);
    let mut left = usize::try_from(until - from).unwrap_or(usize::MAX);
    replay.read_on(run, |drawn| match drawn {
        Drawn::Bytes(bytes) => {
            let bytes = &bytes[..bytes.len().min(left)];
            left -= bytes.len();
            scrollback.feed(bytes);
        }
        Drawn::Resized(size) if left > 0 => scrollback.resize(size),
        Drawn::Resized(_) => {}
    })?;
    Ok(scrollback.lines())
}

/// The window in which the program began.
pub fn first_window(run: &Dir) -> Result<Size, StoreError> {
    Ok(sizes(run)?.first().map_or(Size { rows: 24, columns: 80 }, window))
}

fn window(resize: &Resize) -> Size {
    Size { rows: resize.rows, columns: resize.columns }
}

/// Takes a snapshot at the present end of the output, unless another process is taking one. Otherwise the snapshots of
/// keepers that were killed one after the other would accumulate, and an older one might replace a newer one.
pub fn take_snapshot(run: &Dir) -> Result<(), StoreError> {
    let file = run.file("screen.lock", OFlags::RDWR | OFlags::CREATE).map_err(StoreError::io("screen.lock"))?;
    let Some(_held) = lock::try_exclusive(file).map_err(StoreError::io("screen.lock"))? else {
        return Ok(());
    };
    let (scrollback, position) = now_with_scrollback(run)?;
    // Written first, so that it is never older than `screen`: output before `screen` may be dropped.
    let written = run.replace("screen.scrollback", &scrollback.snapshot(position), Sync::No);
    written.map_err(StoreError::io("screen.scrollback"))?;
    let mut bytes = format!("{position}\n").into_bytes();
    bytes.extend(scrollback.screen().snapshot());
    run.replace("screen", &bytes, Sync::No).map_err(StoreError::io("screen"))
}

/// The position on the first line, then the state.
fn parse_snapshot(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let position = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    Some((position, &bytes[end + 1..]))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn run_with(out: &[u8]) -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("out"), out).unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        (folder, dir)
    }

    #[test]
    fn a_snapshot_and_what_came_after_it_make_the_same_screen_as_everything() {
        let (folder, run) = run_with(b"one\r\ntwo \x1b[3");
        note_size(&run, Resize { at: 0, rows: 5, columns: 20 }).unwrap();
        take_snapshot(&run).unwrap();
        std::fs::write(folder.path().join("out"), b"one\r\ntwo \x1b[31mred\r\nand wide").unwrap();
        note_size(&run, Resize { at: 18, rows: 4, columns: 5 }).unwrap();
        let from_snapshot = now(&run).unwrap();
        run.remove("screen").unwrap();
        let from_nothing = now(&run).unwrap();
        assert_eq!(from_snapshot.screen, from_nothing.screen);
        assert_eq!(from_snapshot.position, from_nothing.position);
        assert_eq!(from_snapshot.screen.size(), Size { rows: 4, columns: 5 });
    }

    fn lines(run: &Dir) -> Vec<String> {
        let (scrollback, _) = now_with_scrollback(run).unwrap();
        scrollback.lines().iter().map(|line| String::from_utf8(line.to_vec()).unwrap()).collect()
    }

    #[test]
    fn what_has_scrolled_off_is_found_with_every_part_of_the_snapshot_missing_or_old() {
        let (folder, run) = run_with(b"one\r\ntwo\r\nthree");
        let path = |name: &str| folder.path().join(name);
        note_size(&run, Resize { at: 0, rows: 2, columns: 20 }).unwrap();
        assert_eq!(lines(&run), ["one"]);
        take_snapshot(&run).unwrap();
        let old = std::fs::read(path("screen.scrollback")).unwrap();
        std::fs::write(path("out"), b"one\r\ntwo\r\nthree\r\nfour\r\nfive").unwrap();
        take_snapshot(&run).unwrap();
        let whole = ["one", "two", "three"];
        assert_eq!(lines(&run), whole);
        // Written by a version that knows only `screen`, or damaged, or deleted.
        std::fs::write(path("screen.scrollback"), &old).unwrap();
        assert_eq!(lines(&run), whole);
        std::fs::write(path("screen.scrollback"), b"damaged").unwrap();
        assert_eq!(lines(&run), whole);
        std::fs::remove_file(path("screen.scrollback")).unwrap();
        assert_eq!(lines(&run), whole);
        std::fs::write(path("screen.scrollback"), &old).unwrap();
        std::fs::write(path("screen"), b"damaged").unwrap();
        assert_eq!(lines(&run), whole);
        std::fs::remove_file(path("screen")).unwrap();
        assert_eq!(lines(&run), whole);
    }

    #[test]
    fn what_scrolled_off_before_a_snapshot_is_not_read_again() {
        let (folder, run) = run_with(b"one\r\ntwo\r\nthree");
        note_size(&run, Resize { at: 0, rows: 2, columns: 20 }).unwrap();
        take_snapshot(&run).unwrap();
        // The output up to there is gone, as when it grew too long.
        let mut out = vec![0; 15];
        out.extend_from_slice(b"\r\nfour");
        std::fs::write(folder.path().join("out"), out).unwrap();
        assert_eq!(lines(&run), ["one", "two"]);
    }

    #[test]
    fn a_list_draws_the_end_of_what_came_after_the_snapshot() {
        let (folder, run) = run_with(b"$ make\r\n\x1b[3");
        note_size(&run, Resize { at: 0, rows: 5, columns: 20 }).unwrap();
        let text = |screen: Screen| screen.text();
        assert_eq!(text(nearly_now(&run).unwrap()), text(now(&run).unwrap().screen), "a little is drawn as a whole");
        let mut out = b"$ make\r\n\x1b[31mred".to_vec();
        for number in 0..5000 {
            out.extend_from_slice(format!("\x1b[32mline {number}\x1b[m\r\n").as_bytes());
        }
        note_size(&run, Resize { at: 50_000, rows: 4, columns: 30 }).unwrap();
        for snapshot in [false, true] {
            if snapshot {
                take_snapshot(&run).unwrap();
            }
            std::fs::write(folder.path().join("out"), &out).unwrap();
            assert_eq!(text(nearly_now(&run).unwrap()), ["line 4997", "line 4998", "line 4999", ""]);
            std::fs::write(folder.path().join("out"), b"$ make\r\n\x1b[3").unwrap();
        }
    }

    #[test]
    fn only_one_process_takes_a_snapshot_at_a_time() {
        let (_folder, run) = run_with(b"text");
        let file = run.file("screen.lock", OFlags::RDWR | OFlags::CREATE).unwrap();
        let held = lock::try_exclusive(file).unwrap().unwrap();
        take_snapshot(&run).unwrap();
        assert_eq!(snapshot_position(&run).unwrap(), 0);
        // Not only closed: a process that another test is starting may have a copy of the open file until it executes.
        rustix::fs::flock(held.file(), rustix::fs::FlockOperation::Unlock).unwrap();
        take_snapshot(&run).unwrap();
        assert_eq!(snapshot_position(&run).unwrap(), 4);
    }
}
