//! `live.index`: what lists have found out about sessions that run, in one file, so that a list of a thousand sessions
//! reads no records of sessions to which nothing has happened since.
//!
//! It is derived and may be deleted. The file has a header and records; the `live_views` module of `view` defines what is
//! in a record and how long it is valid. A file of another build of ostler or of another boot is read as if it were not
//! there, and so is each record that is damaged or cut off. Commands that look at many sessions write it again, in one
//! step and without waiting for the disk, when enough has changed. If two do so at once, the last one wins; nothing is
//! lost by that.

use crate::progress::BUILD;
use ostler_core::id::SessionId;
use ostler_sys::dir::{Dir, FileStat, Sync};
use ostler_sys::pack::check;
use ostler_sys::process::boot_id;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

pub const NAME: &str = "live.index";
/// With fewer sessions than this, the index saves no time.
pub const WORTH_IT: usize = 16;
/// The file is not written for fewer new records than this, nor for fewer than one in `NEW_PART` of its records.
const NEW_RECORDS: usize = 8;
const NEW_PART: usize = 32;
/// A longer file is not one of ours.
const LARGEST: u64 = 1 << 28;
/// Before the bytes of a record: its id, the checksum of the bytes, and their number.
const ID: usize = 8;
const HEAD: usize = ID + 8 + 4;

/// The file as it was when it was opened, and what is to be added.
#[derive(Debug, Default)]
pub struct LiveIndex {
    bytes: Vec<u8>,
    records: HashMap<SessionId, Record>,
    file: Option<FileStat>,
    new: Mutex<BTreeMap<SessionId, Vec<u8>>>,
}

/// Where the bytes of a record are, and whether this process has found that they are still valid.
#[derive(Debug)]
struct Record {
    place: Range<usize>,
    confirmed: AtomicBool,
}

impl LiveIndex {
    /// Reads the file. One that cannot be read counts as empty.
    #[must_use]
    pub fn read(home: &Path) -> LiveIndex {
        let read = || {
            let home = Dir::open(home).ok()?;
            let file = home.stat(NAME).ok()?.filter(|file| file.size <= LARGEST)?;
            Some((file, home.read_long(NAME, file.size).ok()?))
        };
        let Some((file, bytes)) = read() else {
            return LiveIndex::default();
        };
        let records = places(&bytes);
        LiveIndex { bytes, records, file: Some(file), new: Mutex::default() }
    }

    /// What was noted of a session.
    #[must_use]
    pub fn find(&self, id: SessionId) -> Option<&[u8]> {
        let Record { place, .. } = self.records.get(&id)?;
        let bytes = self.bytes.get(place.clone())?;
        let noted = self.bytes.get(place.start.checked_sub(HEAD)? + ID..)?.first_chunk().copied()?;
        (check_of(id, bytes) == u64::from_le_bytes(noted)).then_some(bytes)
    }

    /// The record of a session is valid: it need not be checked again when the file is written.
    pub fn confirm(&self, id: SessionId) {
        if let Some(record) = self.records.get(&id) {
            record.confirmed.store(true, Ordering::Relaxed);
        }
    }

    /// Notes this record of a session, in place of an earlier one.
    pub fn add(&self, id: SessionId, record: Vec<u8>) {
        if let Ok(mut new) = self.new.lock() {
            new.insert(id, record);
        }
    }

    /// Writes the file again with what was added, if there is enough of it. Of the other records, it keeps those that
    /// were confirmed and those for which `counts` returns true. Best effort: a session that is not in it is looked up
    /// in its folder.
    pub fn save(self, home: &Path, counts: impl Fn(SessionId, &[u8]) -> bool) {
        let new = self.new.lock().map(|mut new| std::mem::take(&mut *new)).unwrap_or_default();
        if new.len() >= NEW_RECORDS.max(self.records.len() / NEW_PART) {
            // Nothing is lost by a file that was not written.
            let _ = self.write(home, &new, counts);
        }
    }

    fn write(
        &self,
        home: &Path,
        new: &BTreeMap<SessionId, Vec<u8>>,
        counts: impl Fn(SessionId, &[u8]) -> bool,
    ) -> Option<()> {
        let home = Dir::open(home).ok()?;
        // Another process may have replaced the file since, and may know more.
        if !home.is_ours().ok()? || home.stat(NAME).ok()? != self.file {
            return None;
        }
        let old = self.records.iter().filter(|(id, _)| !new.contains_key(id));
        let old = old.filter_map(|(&id, record)| {
            let bytes = self.find(id)?;
            (record.confirmed.load(Ordering::Relaxed) || counts(id, bytes)).then_some((id, bytes))
        });
        let mut bytes = header().into_bytes();
        for (id, record) in new.iter().map(|(&id, record)| (id, record.as_slice())).chain(old) {
            bytes.extend_from_slice(id.as_bytes());
            bytes.extend_from_slice(&check_of(id, record).to_le_bytes());
            bytes.extend_from_slice(&u32::try_from(record.len()).ok()?.to_le_bytes());
            bytes.extend_from_slice(record);
        }
        home.replace(NAME, &bytes, Sync::No).ok()
    }
}

/// Identifies the build and the boot that the records are from.
fn header() -> String {
    format!("ostler live 01 {BUILD} {}\n", boot_id())
}

fn check_of(id: SessionId, record: &[u8]) -> u64 {
    check(record) ^ u64::from_le_bytes(*id.as_bytes())
}

/// Where each record is, as far as the file is whole.
fn places(bytes: &[u8]) -> HashMap<SessionId, Record> {
    let mut found = HashMap::new();
    let header = header();
    if !bytes.starts_with(header.as_bytes()) {
        return found;
    }
    let mut at = header.len();
    while let Some(head) = bytes.get(at..at + HEAD) {
        let length = head[ID + 8..].first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
        let place = at + HEAD..at + HEAD + length;
        let Some(id) = SessionId::from_bytes(&head[..ID]).filter(|_| place.end <= bytes.len()) else {
            break;
        };
        at = place.end;
        found.insert(id, Record { place, confirmed: AtomicBool::new(false) });
    }
    found
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn id(number: u64) -> SessionId {
        SessionId::from_random(number)
    }

    fn record(number: u64) -> Vec<u8> {
        format!("what is known of {number}").into_bytes()
    }

    /// A home whose index has a record of each of these.
    fn home(numbers: Range<u64>) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        add(home.path(), numbers, |_| true);
        home
    }

    fn add(home: &Path, numbers: Range<u64>, counts: impl Fn(SessionId) -> bool) {
        let index = LiveIndex::read(home);
        numbers.for_each(|number| index.add(id(number), record(number)));
        index.save(home, |id, _| counts(id));
    }

    fn known(home: &Path, numbers: Range<u64>) -> Vec<u64> {
        let index = LiveIndex::read(home);
        let found = |number: &u64| {
            let found = index.find(id(*number));
            assert!(found.is_none_or(|found| found == record(*number)), "{number}: {found:?}");
            found.is_some()
        };
        numbers.filter(found).collect()
    }

    #[test]
    fn what_was_noted_is_found_again() {
        let home = home(0..20);
        assert_eq!(known(home.path(), 0..30), (0..20).collect::<Vec<_>>());
        add(home.path(), 20..30, |id| id != self::id(7));
        assert_eq!(known(home.path(), 0..40), (0..30).filter(|&number| number != 7).collect::<Vec<_>>());
    }

    #[test]
    fn a_few_new_records_are_not_worth_a_write() {
        let home = home(0..320);
        add(home.path(), 320..329, |_| true);
        assert!(known(home.path(), 320..329).is_empty());
        add(home.path(), 320..330, |_| true);
        assert_eq!(known(home.path(), 0..330).len(), 330);
    }

    #[test]
    fn what_was_confirmed_stays_without_a_further_question() {
        let home = home(0..20);
        let index = LiveIndex::read(home.path());
        (20..30).for_each(|number| index.add(id(number), record(number)));
        (0..10).for_each(|number| index.confirm(id(number)));
        index.confirm(id(99));
        index.save(home.path(), |one, _| {
            assert!((10..20).any(|number| id(number) == one), "{one} was confirmed");
            false
        });
        assert_eq!(known(home.path(), 0..40), (0..10).chain(20..30).collect::<Vec<_>>());
    }

    #[test]
    fn damage_costs_records_and_never_changes_one() {
        let home = home(0..20);
        let file = home.path().join(NAME);
        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&file, bytes).unwrap();
            assert!(known(home.path(), 0..20).len() < 20, "byte {at} is another one");
            std::fs::write(&file, &whole[..at]).unwrap();
            assert!(known(home.path(), 0..20).len() < 20, "cut off at {at}");
        }
    }

    #[test]
    fn that_of_another_build_or_boot_is_not_taken_over() {
        let home = home(0..20);
        let file = home.path().join(NAME);
        let whole = std::fs::read(&file).unwrap();
        for other in [BUILD, boot_id(), "live 01"] {
            let header = header().replace(other, &"0".repeat(other.len()));
            let bytes = [header.as_bytes(), &whole[header.len()..]].concat();
            std::fs::write(&file, bytes).unwrap();
            assert!(known(home.path(), 0..20).is_empty());
            // And the next list replaces it.
            add(home.path(), 0..20, |_| true);
            assert_eq!(known(home.path(), 0..20).len(), 20);
        }
    }

    #[test]
    fn one_that_was_replaced_meanwhile_stays() {
        let home = home(0..20);
        let late = LiveIndex::read(home.path());
        (30..60).for_each(|number| late.add(id(number), record(number)));
        add(home.path(), 20..30, |_| true);
        late.save(home.path(), |_, _| true);
        assert_eq!(known(home.path(), 0..60), (0..30).collect::<Vec<_>>());
    }
}
