//! `journal.jsonl`: what ostler did and observed. Written only by the process that holds `keeper.lock`; any process may
//! read it at any time.
//!
//! A crash leaves a torn last line: readers skip it, and the next writer ends it and starts a new one. Nothing is ever
//! cut off or rewritten. A bad line in the middle is counted and reported, and does not affect other lines.

use crate::{StoreError, backwards};
use jiff::{SignedDuration, Timestamp};
use ostler_core::event::{Entry, Event};
use ostler_core::id::SessionId;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::pause_points::{self, Point};
use rustix::fs::{FlockOperation, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

const NAME: &str = "journal.jsonl";

/// What a reader finds.
#[derive(Debug, Default)]
pub struct Found {
    pub entries: Vec<Entry>,
    /// Whole lines that are not entries.
    pub bad_lines: u32,
    /// Where the last whole line ends: the position to continue reading from.
    pub end: u64,
}

/// Reads the whole lines from `position` on.
pub fn read(dir: &Dir, position: u64) -> Result<Found, StoreError> {
    if position == 0 {
        let bytes = dir.read(NAME).map_err(StoreError::io(NAME))?.unwrap_or_default();
        return Ok(parse(&bytes, 0));
    }
    let file = match dir.file(NAME, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(parse(&[], position)),
        Err(error) => return Err(StoreError::io(NAME)(error)),
    };
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(position)).map_err(StoreError::io(NAME))?;
    file.read_to_end(&mut bytes).map_err(StoreError::io(NAME))?;
    Ok(parse(&bytes, position))
}

/// The mark of a position is a hash of so many bytes before it.
const MARKED: u64 = 512;

/// Reads the whole lines from `position` on, if what is before it has this mark. `None`: it does not.
pub fn read_behind(dir: &Dir, position: u64, mark: u64) -> Result<Option<Found>, StoreError> {
    let file = match dir.file(NAME, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io(NAME)(error)),
    };
    let start = position.saturating_sub(MARKED);
    let size = file.metadata().map_err(StoreError::io(NAME))?.len();
    let length = usize::try_from(size.saturating_sub(start)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length];
    match file.read_exact_at(&mut bytes, start) {
        Ok(()) => {}
        // The file was shortened.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(StoreError::io(NAME)(error)),
    }
    let marked = usize::try_from(position - start).ok().and_then(|marked| bytes.split_at_checked(marked));
    Ok(marked.filter(|(before, _)| mark_of(before) == mark).map(|(_, behind)| parse(behind, position)))
}

/// A hash: other bytes hardly have the same one.
pub fn mark_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The whole lines of `bytes`, which begin at `position` in the file.
#[must_use]
pub fn parse(bytes: &[u8], position: u64) -> Found {
    let mut found = Found { end: position, ..Found::default() };
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        found.end += line.len() as u64;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(entry) => found.entries.push(entry),
            Err(_) => found.bad_lines += 1,
        }
    }
    found
}

/// How many whole lines of a session's journal are not entries. `sessions`: the folder that its folder is in.
pub fn bad_lines(sessions: &Dir, id: SessionId) -> Result<u32, StoreError> {
    let bytes = sessions.read(&format!("{id}/{NAME}")).map_err(StoreError::io(NAME))?.unwrap_or_default();
    Ok(parse(&bytes, 0).bad_lines)
}

/// Bytes in the file.
pub fn size(dir: &Dir) -> Result<u64, StoreError> {
    Ok(dir.stat(NAME).map_err(StoreError::io(NAME))?.map_or(0, |stat| stat.size))
}

/// What `find` returns for the newest entry for which it returns anything.
pub fn newest<T>(dir: &Dir, mut find: impl FnMut(Entry) -> Option<T>) -> Result<Option<T>, StoreError> {
    let file = match dir.file(NAME, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io(NAME)(error)),
    };
    let mut found = None;
    let read = backwards::lines(&file, 0, |line| {
        found = serde_json::from_slice(line).ok().and_then(&mut find);
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.map_err(StoreError::io(NAME))?;
    Ok(found)
}

/// How much of the end of a journal is searched for entries to notify of. No journal grows by this much in an hour.
const NOTED: u64 = 4 << 20;

/// The newest entries of which a person is to be notified, each with the position at which it begins.
pub fn noted(dir: &Dir) -> Result<Vec<(u64, Entry)>, StoreError> {
    let mut position = size(dir)?.saturating_sub(NOTED);
    let mut bytes = Vec::new();
    let file = match dir.file(NAME, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io(NAME)(error)),
    };
    let mut file = File::from(file);
    file.seek(SeekFrom::Start(position)).map_err(StoreError::io(NAME))?;
    file.read_to_end(&mut bytes).map_err(StoreError::io(NAME))?;
    let mut found = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        // A line that is torn, or that begins before what was read, is not an entry.
        if let Ok(entry @ Entry { notify: Some(_), .. }) = serde_json::from_slice(line) {
            found.push((position, entry));
        }
        position += line.len() as u64;
    }
    Ok(found)
}

/// The answer to a request: granted, or refused and why. `None`: not answered yet.
pub fn answer(dir: &Dir, request: &str) -> Result<Option<Option<String>>, StoreError> {
    newest(dir, |entry| (entry.request.as_deref() == Some(request)).then(|| refusal(entry.event)))
}

/// Why it was refused.
#[must_use]
pub fn refusal(event: Event) -> Option<String> {
    if let Event::Refused { why } = event { Some(why) } else { None }
}

/// The one writer.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

impl Journal {
    /// Opens for appending. The caller holds `keeper.lock`.
    pub fn open(dir: &Dir) -> Result<Journal, StoreError> {
        Ok(Journal { file: open_for_append(dir, NAME)? })
    }

    /// Appends one entry in one write, whole or not at all. Returns its length.
    pub fn append(&mut self, entry: &Entry) -> Result<u64, StoreError> {
        let before = self.file.metadata().map_err(StoreError::io(NAME))?.len();
        let line = crate::folder::to_json(entry);
        if let Err(error) = self.file.write_all(&line) {
            // Half an entry on a full disk: the next entry would continue in the middle of it.
            let _ = self.file.set_len(before);
            return Err(StoreError::io(NAME)(error));
        }
        pause_points::at(Point::JournalAppended);
        Ok(line.len() as u64)
    }

    /// Shows by the file's date that something has happened which has no entry yet, so that what lists have noted of
    /// the session is not valid any more.
    pub fn touch(&self) -> Result<(), StoreError> {
        self.file.set_modified(SystemTime::now()).map_err(StoreError::io(NAME))
    }

    /// Where the journal ends, and the mark of that position.
    pub fn end(&self) -> Result<(u64, u64), StoreError> {
        let end = self.file.metadata().map_err(StoreError::io(NAME))?.len();
        let start = end.saturating_sub(MARKED);
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, start).map_err(StoreError::io(NAME))?;
        Ok((end, mark_of(&bytes)))
    }

    /// Waits until what was appended is on the disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(StoreError::io(NAME))?;
        pause_points::at(Point::JournalSynced);
        Ok(())
    }
}

/// By how much the clock may have been corrected after the last entry was written.
const CLOCK_CORRECTION: SignedDuration = SignedDuration::from_mins(10);

/// Whether an entry may be newer than `since`. Not when the file was last written well before that time: then most
/// journals of an old home need not be read.
pub fn may_have_news(dir: &Dir, since: Timestamp) -> Result<bool, StoreError> {
    let Some(stat) = dir.stat(NAME).map_err(StoreError::io(NAME))? else {
        return Ok(false);
    };
    let written = Timestamp::from_second(stat.modified_s).and_then(|time| time.checked_add(CLOCK_CORRECTION));
    Ok(written.is_ok_and(|time| time >= since))
}

/// Appends a line to a file with many writers: whole, or not at all.
pub fn append_line(dir: &Dir, name: &str, line: &[u8], sync: Sync) -> Result<(), StoreError> {
    let lock = dir.file(name, OFlags::RDWR | OFlags::CREATE).map_err(StoreError::io(name))?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|error| StoreError::io(name)(error.into()))?;
    pause_points::at(Point::InboxLocked);
    let mut file = open_for_append(dir, name)?;
    let before = file.metadata().map_err(StoreError::io(name))?.len();
    let written = file.write_all(line).and_then(|()| {
        pause_points::at(Point::InboxWritten);
        match sync {
            Sync::Yes | Sync::Bytes => file.sync_data(),
            Sync::No => Ok(()),
        }
    });
    if let Err(error) = written {
        // Half a line on a full disk: removed while we hold the lock. No client was told that it was accepted.
        let _ = file.set_len(before);
        return Err(StoreError::io(name)(error));
    }
    if before == 0 && sync == Sync::Yes {
        // A synced file whose name is not synced is lost after a power cut.
        dir.sync().map_err(StoreError::io(name))?;
    }
    pause_points::at(Point::InboxSynced);
    Ok(())
}

/// Opens a file of lines for appending and ends a line that a crash left torn.
pub fn open_for_append(dir: &Dir, name: &str) -> Result<File, StoreError> {
    let file = dir.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND).map_err(StoreError::io(name))?;
    let mut file = File::from(file);
    let size = file.seek(SeekFrom::End(0)).map_err(StoreError::io(name))?;
    if size > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1)).map_err(StoreError::io(name))?;
        file.read_exact(&mut last).map_err(StoreError::io(name))?;
        if last != *b"\n" {
            file.write_all(b"\n").map_err(StoreError::io(name))?;
        }
    }
    Ok(file)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(n: u64) -> Entry {
        Entry {
            at: Timestamp::UNIX_EPOCH,
            ms: n,
            run: 1,
            out: None,
            request: None,
            inbox: None,
            notify: None,
            event: Event::Delivered { n },
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn cut_anywhere_no_half_entry_is_read_and_the_next_one_is_whole(count in 1..6u64, cut in 0..600usize) {
            let folder = tempfile::tempdir().unwrap();
            let dir = Dir::open(folder.path()).unwrap();
            let mut journal = Journal::open(&dir).unwrap();
            for n in 0..count {
                journal.append(&entry(n)).unwrap();
            }
            let path = folder.path().join(NAME);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.truncate(cut.min(bytes.len()));
            std::fs::write(&path, &bytes).unwrap();
            let whole = bytes.iter().filter(|&&byte| byte == b'\n').count();

            let found = read(&dir, 0).unwrap();
            prop_assert_eq!(found.entries.len(), whole);
            prop_assert_eq!(found.bad_lines, 0);
            Journal::open(&dir).unwrap().append(&entry(99)).unwrap();
            let found = read(&dir, 0).unwrap();
            prop_assert_eq!(found.entries.last(), Some(&entry(99)));
        }

        #[test]
        fn garbage_in_the_middle_is_counted_and_other_lines_are_read(garbage in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = crate::folder::to_json(&entry(1));
            bytes.extend(garbage.iter().map(|&byte| if byte == b'\n' { b'?' } else { byte }));
            bytes.push(b'\n');
            bytes.extend(crate::folder::to_json(&entry(2)));
            let found = parse(&bytes, 0);
            prop_assert_eq!(found.entries.first(), Some(&entry(1)));
            prop_assert_eq!(found.entries.last(), Some(&entry(2)));
        }
    }

    #[test]
    fn an_event_of_a_newer_version_is_read_as_unknown() {
        let found =
            parse(b"{\"at\":\"2026-01-01T00:00:00Z\",\"ms\":1,\"run\":1,\"what\":\"teleported\",\"to\":7}\n", 0);
        assert_eq!(found.bad_lines, 0);
        assert_eq!(found.entries[0].event, Event::Unknown);
    }

    #[test]
    fn what_is_to_be_notified_is_found_at_its_position_beside_lines_that_are_torn_or_bad() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::open(root.path()).unwrap();
        assert!(noted(&dir).unwrap().is_empty());
        let mut journal = Journal::open(&dir).unwrap();
        journal.append(&entry(1)).unwrap();
        let told = |n| Entry { notify: Some(ostler_core::moment::Moment::Turn), ..entry(n) };
        let first = size(&dir).unwrap();
        journal.append(&told(2)).unwrap();
        std::fs::OpenOptions::new().append(true).open(root.path().join(NAME)).unwrap().write_all(b"{\"torn").unwrap();
        // The next writer ends the torn line.
        let mut journal = Journal::open(&dir).unwrap();
        let second = size(&dir).unwrap();
        journal.append(&told(3)).unwrap();
        let found: Vec<(u64, u64)> =
            noted(&dir).unwrap().iter().map(|(position, entry)| (*position, entry.ms)).collect();
        assert_eq!(found, [(first, 2), (second, 3)]);
    }
}
