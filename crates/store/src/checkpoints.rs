//! Copies of the agent's transcript, taken while it works.
//!
//! This protects against a transcript that is lost, cut short or rewritten by the process that owns it, and with it
//! turns that were paid for. A checkpoint is a copy, never a branch: `checkpoints/<n>.copy` follows the transcript and
//! only ever grows by what is new, and `checkpoints/index.jsonl` notes how long it was at which time. So a hundred
//! checkpoints cost one copy. When the transcript no longer begins with what was copied, the copy stays as it is and
//! another one is begun.

use crate::StoreError;
use crate::folder::Folder;
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_sys::clock;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::memory_file;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FOLDER: &str = "checkpoints";
const INDEX: &str = "index.jsonl";
/// How much of the end of a copy is compared before more is added to it.
const COMPARED: u64 = 64 * 1024;
/// How many copies are kept of a transcript that is rewritten again and again: the longest, and the newest others.
const COPIES: usize = 5;

/// So many of the newest checkpoints are kept, however old they are: those of ten minutes, one every five seconds.
const NEWEST: usize = 120;

/// The transcript as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub at: Timestamp,
    /// Of which file: an agent may begin another conversation in the middle of a run.
    pub of: PathBuf,
    /// Which copy.
    pub copy: u32,
    /// How much of it.
    pub length: u64,
    /// It differs from earlier copies on purpose: it was restored or repaired by us.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
}

/// The result of saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// Nothing is new, or there is no transcript yet.
    Unchanged,
    Grown,
    /// The transcript does not begin with what was copied any more. That copy stays; `now` is the length of the
    /// transcript.
    Rewritten {
        copied: u64,
        now: u64,
    },
}

impl Saving {
    /// What a person should know about it.
    #[must_use]
    pub fn words(self, session: SessionId) -> Option<String> {
        let (copied, now) = match self {
            Saving::Unchanged | Saving::Grown => return None,
            Saving::Rewritten { copied, now } => (copied, now),
        };
        let what = if now == 0 {
            format!("its transcript of {copied} bytes is gone; a copy is kept")
        } else if now < copied {
            format!("its transcript shrank from {copied} to {now} bytes; the longer copy is kept")
        } else {
            format!("its transcript was rewritten; a copy of what it was ({copied} bytes) is kept")
        };
        Some(format!("{what}; see ostler checkpoints {session}"))
    }
}

/// Copies what is new. The caller holds `keeper.lock`.
pub fn save(folder: &Folder, transcript: &Path, at: Timestamp) -> Result<Saving, StoreError> {
    let name = || transcript.to_string_lossy().into_owned();
    let file = match File::open(transcript) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::io(name())(error)),
    };
    let size =
        file.as_ref().map(File::metadata).transpose().map_err(StoreError::io(name()))?.map_or(0, |meta| meta.len());
    let dir = open(folder.dir(), size > 0)?;
    let Some(dir) = dir else {
        return Ok(Saving::Unchanged);
    };
    let all = list_in(&dir)?;
    let highest = all.iter().map(|one| one.copy).max().unwrap_or(0);
    let number = all.iter().rfind(|one| one.of == transcript).map_or(highest + 1, |one| one.copy);
    let copied = copy_length(&dir, number)?;
    let checkpoint = |copy| Checkpoint { at, of: transcript.to_owned(), copy, length: size, settled: false };
    let same = match &file {
        Some(file) => size >= copied && ends_alike(file, &open_copy(&dir, number)?, copied)?,
        None => copied == 0,
    };
    if same && size == copied {
        return Ok(Saving::Unchanged);
    }
    if same && let Some(file) = &file {
        append(&dir, number, file, copied, size)?;
        note(&dir, checkpoint(number))?;
        return Ok(Saving::Grown);
    }
    if let Some(file) = file.filter(|_| size > 0) {
        append(&dir, highest + 1, &file, 0, size)?;
        note(&dir, checkpoint(highest + 1))?;
        drop_surplus(&dir)?;
    }
    Ok(Saving::Rewritten { copied, now: size })
}

/// How many bytes the next copy would write, judged by the lengths only.
pub fn missing(folder: &Folder, transcript: &Path) -> Result<u64, StoreError> {
    let size = match std::fs::metadata(transcript) {
        Ok(meta) => meta.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(StoreError::io(transcript.to_string_lossy())(error)),
    };
    let Some(dir) = open(folder.dir(), false)? else {
        return Ok(size);
    };
    let copied = match list_in(&dir)?.iter().rfind(|one| one.of == transcript) {
        Some(last) => copy_length(&dir, last.copy)?,
        None => 0,
    };
    // A transcript that shrank is copied anew.
    Ok(size.checked_sub(copied).unwrap_or(size))
}

/// Copies what is new, and notes that the transcript is right as it is, whatever earlier copies contain.
pub fn settle(folder: &Folder, transcript: &Path, at: Timestamp) -> Result<(), StoreError> {
    save(folder, transcript, at)?;
    let Some(dir) = open(folder.dir(), false)? else {
        return Ok(());
    };
    if earlier_in(&dir, transcript)?.len() < 2 {
        return Ok(());
    }
    let mut all = list_in(&dir)?;
    if let Some(last) = all.iter_mut().rfind(|one| one.of == transcript) {
        last.settled = true;
    }
    write_index(&dir, &all)
}

/// What a transcript can be compared with: the last checkpoint of each of its copies since it was settled, newest
/// first.
pub fn earlier(folder: &Folder, transcript: &Path) -> Result<Vec<Checkpoint>, StoreError> {
    open(folder.dir(), false)?.map_or_else(|| Ok(Vec::new()), |dir| earlier_in(&dir, transcript))
}

fn earlier_in(dir: &Dir, transcript: &Path) -> Result<Vec<Checkpoint>, StoreError> {
    let of_it: Vec<Checkpoint> = list_in(dir)?.into_iter().filter(|one| one.of == transcript).collect();
    let settled = of_it.iter().rposition(|one| one.settled).unwrap_or(0);
    let mut found: Vec<Checkpoint> = Vec::new();
    for one in of_it[settled.min(of_it.len())..].iter().rev() {
        if found.iter().all(|other| other.copy != one.copy) {
            found.push(one.clone());
        }
    }
    Ok(found)
}

/// The copy of a checkpoint. It may have grown since.
pub fn copy(folder: &Folder, checkpoint: &Checkpoint) -> Result<File, StoreError> {
    let dir = open(folder.dir(), false)?.ok_or_else(|| StoreError::Missing { file: FOLDER.to_owned() })?;
    open_copy(&dir, checkpoint.copy)
}

/// Whether a transcript begins with what was copied of it, judged by the end of the copy.
pub fn is_followed_by(folder: &Folder, checkpoint: &Checkpoint, transcript: &File) -> Result<bool, StoreError> {
    ends_alike(transcript, &copy(folder, checkpoint)?, checkpoint.length)
}

/// All checkpoints, oldest first.
pub fn list(folder: &Folder) -> Result<Vec<Checkpoint>, StoreError> {
    open(folder.dir(), false)?.map_or_else(|| Ok(Vec::new()), |dir| list_in(&dir))
}

/// Replaces the transcript by a checkpoint. The file that was there is kept beside it, under the name that is returned.
pub fn restore(folder: &Folder, checkpoint: &Checkpoint) -> Result<Option<PathBuf>, StoreError> {
    restore_as(folder, checkpoint, &checkpoint.of)
}

/// The same for another file.
pub fn restore_as(folder: &Folder, checkpoint: &Checkpoint, transcript: &Path) -> Result<Option<PathBuf>, StoreError> {
    let mut copy = copy(folder, checkpoint)?.take(checkpoint.length);
    let failed = |error| StoreError::Io { file: transcript.to_string_lossy().into_owned(), error };
    let mut put = || -> io::Result<Option<PathBuf>> {
        let parent = transcript.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(parent)?;
        let beside = |what: &str| {
            let mut name = transcript.as_os_str().to_owned();
            name.push(format!(".{what}-{}", clock::now().as_nanosecond()));
            PathBuf::from(name)
        };
        let mode = std::fs::metadata(transcript).map_or(0o600, |meta| meta.mode() & 0o777);
        let temporary = beside("ostler-new");
        let mut file = File::options().read(true).write(true).create_new(true).mode(mode).open(&temporary)?;
        io::copy(&mut copy, &mut file)?;
        end_with_whole_line(&file, checkpoint.length)?;
        file.sync_all()?;
        let before = beside("before-restore");
        let kept = match std::fs::hard_link(transcript, &before) {
            Ok(()) => Some(before),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                // A file must not be replaced without keeping a copy of it.
                let _ = std::fs::remove_file(&temporary);
                return Err(error);
            }
        };
        std::fs::rename(&temporary, transcript)?;
        File::open(parent)?.sync_all()?;
        Ok(kept)
    };
    put().map_err(failed)
}

/// A line that the agent was writing when the copy was taken is incomplete, and the next writer would append to it. So
/// it is cut off.
fn end_with_whole_line(file: &File, length: u64) -> io::Result<()> {
    let mut end = length;
    let mut piece = vec![0; 64 * 1024];
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let part = &mut piece[..usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(part, start)?;
        if let Some(place) = part.iter().rposition(|&byte| byte == b'\n') {
            return file.set_len(start + place as u64 + 1);
        }
        end = start;
    }
    file.set_len(0)
}

fn open(session: &Dir, make: bool) -> Result<Option<Dir>, StoreError> {
    match session.open_dir(FOLDER) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && make => {
            session.make_dir(FOLDER).map_err(StoreError::io(FOLDER))?;
            session.open_dir(FOLDER).map(Some).map_err(StoreError::io(FOLDER))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(FOLDER)(error)),
    }
}

fn copy_name(number: u32) -> String {
    format!("{number}.copy")
}

fn copy_length(dir: &Dir, number: u32) -> Result<u64, StoreError> {
    let name = copy_name(number);
    Ok(dir.stat(&name).map_err(StoreError::io(&name))?.map_or(0, |stat| stat.size))
}

/// A copy, opened for reading: a copy in a packed session cannot be written. One that does not exist counts as empty.
fn open_copy(dir: &Dir, number: u32) -> Result<File, StoreError> {
    let name = copy_name(number);
    match dir.file(&name, OFlags::RDONLY) {
        Ok(file) => Ok(file.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => memory_file::with(&[]).map_err(StoreError::io(name)),
        Err(error) => Err(StoreError::io(name)(error)),
    }
}

/// Whether two files are the same before this position, judged by the last bytes before it.
fn ends_alike(transcript: &File, copy: &File, length: u64) -> Result<bool, StoreError> {
    let start = length.saturating_sub(COMPARED);
    let mut ends = [Vec::new(), Vec::new()];
    for (file, end) in [transcript, copy].into_iter().zip(&mut ends) {
        end.resize(usize::try_from(length - start).unwrap_or(0), 0);
        match file.read_exact_at(end, start) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(StoreError::io(FOLDER)(error)),
        }
    }
    Ok(ends[0] == ends[1])
}

/// Copies a part of the transcript to the end of a copy. If it is killed in the middle, the copy is shorter, and still
/// valid.
fn append(dir: &Dir, number: u32, transcript: &File, from: u64, to: u64) -> Result<(), StoreError> {
    let name = copy_name(number);
    let copy = || -> io::Result<()> {
        let mut source = transcript;
        source.seek(SeekFrom::Start(from))?;
        let mut target = File::from(dir.file(&name, OFlags::WRONLY | OFlags::CREATE)?);
        target.seek(SeekFrom::Start(from))?;
        io::copy(&mut source.take(to - from), &mut target)?;
        target.sync_data()
    };
    copy().map_err(StoreError::io(&name))
}

fn list_in(dir: &Dir) -> Result<Vec<Checkpoint>, StoreError> {
    let text = dir.read(INDEX).map_err(StoreError::io(INDEX))?.unwrap_or_default();
    // A line that is not a checkpoint is torn: the copy has the bytes that it would have named.
    Ok(text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Adds one checkpoint, and thins out the others when there are many.
fn note(dir: &Dir, checkpoint: Checkpoint) -> Result<(), StoreError> {
    let mut all = list_in(dir)?;
    all.push(checkpoint.clone());
    let thinned = thin(&all, checkpoint.at);
    if thinned.len() < all.len() {
        return write_index(dir, &thinned);
    }
    let file = dir.file(INDEX, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND).map_err(StoreError::io(INDEX))?;
    File::from(file).write_all(&line(&checkpoint)).map_err(StoreError::io(INDEX))
}

fn line(checkpoint: &Checkpoint) -> Vec<u8> {
    crate::folder::to_json(checkpoint)
}

fn write_index(dir: &Dir, all: &[Checkpoint]) -> Result<(), StoreError> {
    let text: Vec<u8> = all.iter().flat_map(line).collect();
    dir.replace(INDEX, &text, Sync::No).map_err(StoreError::io(INDEX))
}

/// Keeps everything of the last ten minutes, then one every ten minutes for a day, then one a day. The last checkpoint
/// of each copy is always kept, as it covers the whole copy, and so are the newest, even if a changed clock makes them
/// look old.
fn thin(all: &[Checkpoint], now: Timestamp) -> Vec<Checkpoint> {
    let spacing = |at: Timestamp| match now.as_second() - at.as_second() {
        ..600 => 1,
        600..86_400 => 600,
        86_400.. => 86_400,
    };
    let slot = |one: &Checkpoint| (one.copy, spacing(one.at), one.at.as_second() / spacing(one.at));
    let next = all.iter().skip(1).map(Some).chain([None]);
    let old = all.len().saturating_sub(NEWEST);
    let kept = all.iter().zip(next).enumerate();
    let kept = kept
        .filter(|(place, (one, next))| *place >= old || one.settled || next.is_none_or(|next| slot(next) != slot(one)));
    kept.map(|(_, (one, _))| one.clone()).collect()
}

/// Deletes surplus copies of a transcript that is rewritten again and again.
fn drop_surplus(dir: &Dir) -> Result<(), StoreError> {
    let all = list_in(dir)?;
    let mut last: Vec<Checkpoint> = Vec::new();
    for one in &all {
        last.retain(|other| other.copy != one.copy);
        last.push(one.clone());
    }
    let longest = last.iter().max_by_key(|one| one.length).map(|one| one.copy);
    let surplus: Vec<u32> =
        last.iter().rev().map(|one| one.copy).filter(|&copy| Some(copy) != longest).skip(COPIES - 1).collect();
    if surplus.is_empty() {
        return Ok(());
    }
    let kept: Vec<Checkpoint> = all.into_iter().filter(|one| !surplus.contains(&one.copy)).collect();
    write_index(dir, &kept)?;
    surplus.iter().try_for_each(|&copy| dir.remove(&copy_name(copy)).map_err(StoreError::io(FOLDER)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    struct Fixture {
        home: tempfile::TempDir,
        folder: Folder,
    }

    impl Fixture {
        fn set() -> Fixture {
            let home = tempfile::tempdir().unwrap();
            let folder = Folder::new(Dir::open(home.path()).unwrap());
            Fixture { home, folder }
        }

        fn transcript(&self) -> PathBuf {
            self.home.path().join("talk.jsonl")
        }

        fn write(&self, text: &str) {
            std::fs::write(self.transcript(), text).unwrap();
        }

        fn save(&self, second: i64) -> Saving {
            save(&self.folder, &self.transcript(), Timestamp::from_second(second).unwrap()).unwrap()
        }

        fn copy(&self, number: u32) -> String {
            std::fs::read_to_string(self.home.path().join(format!("checkpoints/{number}.copy"))).unwrap()
        }
    }

    #[test]
    fn only_what_is_new_is_copied() {
        let fixture = Fixture::set();
        assert_eq!(fixture.save(1), Saving::Unchanged, "no transcript yet");
        fixture.write("one\n");
        assert_eq!(fixture.save(2), Saving::Grown);
        assert_eq!(fixture.save(3), Saving::Unchanged);
        fixture.write("one\ntwo\n");
        assert_eq!(fixture.save(4), Saving::Grown);
        assert_eq!(fixture.copy(1), "one\ntwo\n");
        let lengths: Vec<u64> = list(&fixture.folder).unwrap().iter().map(|one| one.length).collect();
        assert_eq!(lengths, [4, 8]);
    }

    #[test]
    fn a_transcript_that_shrinks_vanishes_or_is_rewritten_is_told_and_the_longer_copy_stays() {
        let fixture = Fixture::set();
        fixture.write("one\ntwo\nthree\n");
        fixture.save(1);
        fixture.write("stub\n");
        assert_eq!(fixture.save(2), Saving::Rewritten { copied: 14, now: 5 });
        assert_eq!((fixture.copy(1).as_str(), fixture.copy(2).as_str()), ("one\ntwo\nthree\n", "stub\n"));
        assert_eq!(fixture.save(3), Saving::Unchanged, "told once");
        fixture.write("stab\nand more than before\n");
        assert_eq!(fixture.save(4), Saving::Rewritten { copied: 5, now: 26 });
        std::fs::remove_file(fixture.transcript()).unwrap();
        assert_eq!(fixture.save(5), Saving::Rewritten { copied: 26, now: 0 });
        assert_eq!(fixture.copy(1), "one\ntwo\nthree\n");
    }

    #[test]
    fn another_conversation_is_another_copy_and_no_surprise() {
        let fixture = Fixture::set();
        fixture.write("one\n");
        fixture.save(1);
        let other = fixture.home.path().join("other.jsonl");
        std::fs::write(&other, "two\n").unwrap();
        let save = |second| save(&fixture.folder, &other, Timestamp::from_second(second).unwrap()).unwrap();
        assert_eq!(save(2), Saving::Grown);
        assert_eq!((fixture.copy(1).as_str(), fixture.copy(2).as_str()), ("one\n", "two\n"));
        assert_eq!((fixture.save(3), save(4)), (Saving::Unchanged, Saving::Unchanged));
    }

    #[test]
    fn a_transcript_rewritten_for_ever_does_not_fill_the_disk_and_the_longest_copy_stays() {
        let fixture = Fixture::set();
        fixture.write("the longest of all of them\n");
        fixture.save(0);
        for number in 1..40 {
            fixture.write(&format!("{number}\n"));
            fixture.save(number);
        }
        let copies = std::fs::read_dir(fixture.home.path().join("checkpoints")).unwrap().count() - 1;
        assert_eq!(copies, COPIES);
        assert_eq!(fixture.copy(1), "the longest of all of them\n");
    }

    #[test]
    fn what_is_restored_ends_with_a_whole_line_and_what_was_there_is_kept() {
        let fixture = Fixture::set();
        fixture.write("one\ntwo\nhal");
        fixture.save(1);
        fixture.write("stub\n");
        let first = &list(&fixture.folder).unwrap()[0];
        let before = restore(&fixture.folder, first).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(fixture.transcript()).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(before).unwrap(), "stub\n");
    }

    #[test]
    fn a_transcript_is_measured_by_every_copy_since_it_was_settled() {
        let fixture = Fixture::set();
        let copies = || -> Vec<u32> {
            earlier(&fixture.folder, &fixture.transcript()).unwrap().iter().map(|one| one.copy).collect()
        };
        fixture.write("one\n");
        fixture.save(1);
        fixture.write("two\n");
        fixture.save(2);
        assert_eq!(copies(), [2, 1]);
        fixture.write("three\n");
        settle(&fixture.folder, &fixture.transcript(), Timestamp::from_second(3).unwrap()).unwrap();
        assert_eq!(copies(), [3]);
        fixture.write("four\n");
        fixture.save(4);
        assert_eq!(copies(), [4, 3]);
    }

    #[test]
    fn old_checkpoints_are_thinned_out_by_age() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut all = Vec::new();
        for second in 0..20_000 {
            let length = u64::try_from(second).unwrap();
            all.push(Checkpoint { at: at(second * 5), of: PathBuf::new(), copy: 1, length, settled: false });
            all = thin(&all, at(second * 5));
        }
        let recent = all.iter().filter(|one| one.at > at(100_000 - 600)).count();
        assert!((110..=121).contains(&recent), "{recent}");
        assert!(all.len() < NEWEST + 145 + 3, "{}", all.len());
        assert_eq!(all.last().unwrap().length, 19_999);
    }

    #[test]
    fn a_clock_that_jumps_a_year_ahead_thins_out_none_of_the_newest() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut all = Vec::new();
        let year = 31_536_000;
        for (length, second) in [0, 5, 10, 15, year, 20, 25].into_iter().enumerate() {
            let length = u64::try_from(length).unwrap();
            all.push(Checkpoint { at: at(second), of: PathBuf::new(), copy: 1, length, settled: false });
            all = thin(&all, at(second));
        }
        assert_eq!(all.len(), 7);
    }
}
