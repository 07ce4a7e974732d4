//! `ended.index`: what lists and lookups need of sessions that have ended, in one file, so that they open no folder
//! that has not changed. Each month of the archive has its own index.
//!
//! It is derived and may be deleted. A command that finds sessions at rest which are not in it writes it again, with
//! them. Each record holds the date on which the session's folder last changed. Reading 10,000 dates takes longer than
//! all the rest of a list, so the dates of all folders are compared once an hour and after a boot. In between, a record
//! is valid unless the session is named in `woken/`: everything that writes to a session at rest notes it there first
//! ([`crate::summary`]). Only an ostler from before this file does not; a session that it resumes is listed after the
//! next comparison.
//!
//! * `table`: the bytes. `woken`: the sessions whose record is not valid. `sessions_list`: which sessions there are. `names`:
//!   which of them may have a name.

mod names;
mod sessions_list;
mod table;
mod woken;

use crate::journal::mark_of;
use crate::summary::read_summary;
pub use names::Addition;
use ostler_core::id::SessionId;
use ostler_core::outcome::{Closing, Kind};
use ostler_sys::clock;
use ostler_sys::dir::{Date, Dir, FileStat, Sync};
use ostler_sys::process::boot_id;
use ostler_sys::threads::parallel;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
pub use table::Ended;
use table::{Header, Table};
use woken::Woken;
pub(crate) use woken::note;

pub(crate) const NAME: &str = "ended.index";
/// A folder that changed less than this ago gets no record: a further change could have the same date.
const MOMENT_S: i64 = 2;
/// The dates of all folders are compared after this time.
const COMPARE_S: i64 = 3600;
/// The file is not written for fewer new records than this, nor for fewer than one in `NEW_PART` of its records.
const NEW_RECORDS: usize = 32;
const NEW_PART: usize = 256;
/// How many dates one thread reads at a time.
const BATCH: usize = 64;

/// The file as it was when it was opened, and what is to be added.
#[derive(Debug, Default)]
pub struct EndedIndex {
    name: String,
    table: Table,
    file: Option<FileStat>,
    /// The records of these sessions are not valid.
    changed: HashSet<SessionId>,
    /// `changed` has every session that was noted since the table was begun.
    notes_whole: bool,
    /// The records of all other sessions are valid without a further check.
    trusted: bool,
    compared_now: bool,
    new: Mutex<Vec<Ended<'static>>>,
}

/// Which sessions a folder has.
enum Listed {
    /// The folder has not changed since it was listed; the list is given as the difference from the index.
    Before(sessions_list::Difference),
    Now(Vec<SessionId>),
}

impl EndedIndex {
    /// The index of the sessions that are not archived. A file that cannot be read counts as empty.
    #[must_use]
    pub fn read(home: &Path) -> EndedIndex {
        EndedIndex::open(home, NAME.to_owned())
    }

    /// The index of the sessions that were archived in this month.
    #[must_use]
    pub fn of_month(home: &Path, month: &str) -> EndedIndex {
        EndedIndex::open(home, format!("archive/{month}.index"))
    }

    fn open(home: &Path, name: String) -> EndedIndex {
        // In this order: the new record of a woken session is in the index before its note is removed.
        let noted = Woken::open(home).and_then(|woken| woken.noted().ok()).unwrap_or_default();
        let read = || {
            let home = Dir::open(home).ok()?;
            let file = home.stat(&name).ok()??;
            Some((file, Table::parse(home.read_long(&name, file.size).ok()?)))
        };
        let (file, table) = read().map_or((None, None), |(file, table)| (Some(file), table));
        let table = table.unwrap_or_default();
        let age = clock::now().as_second() - table.header.compared;
        let notes_whole = noted.number == Some(table.header.woken);
        let trusted = notes_whole && table.header.boot == boot() && (0..COMPARE_S).contains(&age);
        let changed = noted.ids;
        EndedIndex { name, table, file, changed, notes_whole, trusted, compared_now: false, new: Mutex::default() }
    }

    /// The ids of the sessions in this folder. It is listed only if it has changed since the last time.
    pub fn ids(&self, home: &Path, sessions: &Dir) -> io::Result<Vec<SessionId>> {
        Ok(match self.listed(home, sessions)? {
            Listed::Before(difference) => difference.applied_to(self.table.ids()),
            Listed::Now(ids) => ids,
        })
    }

    /// The records with this name that are valid.
    pub fn named(&self, name: &str) -> impl Iterator<Item = Ended<'_>> {
        self.table.named(name).filter(|ended| !self.changed.contains(&ended.id))
    }

    fn listed(&self, home: &Path, sessions: &Dir) -> io::Result<Listed> {
        let list = || {
            let mut ids = Vec::new();
            sessions.each_name(|name| ids.extend(SessionId::from_bytes(name))).map(|()| ids)
        };
        let (Ok(home), Some(changed)) = (Dir::open(home), sessions.changed(".")?) else {
            return list().map(Listed::Now);
        };
        let of = sessions_list::Of { folder: sessions.inode()?, changed, index: self.table.check() };
        let name = self.name.replace("ended.index", "sessions.list").replace(".index", ".list");
        if let Some(difference) = sessions_list::read(&home, &name, of) {
            return Ok(Listed::Before(difference));
        }
        let ids = list()?;
        let settled = clock::now().as_second() - changed.seconds >= MOMENT_S && sessions.changed(".")? == Some(changed);
        if settled {
            // Without this file the next command lists the folder again.
            let _ = sessions_list::write(&home, &name, of, self.table.ids(), &ids);
        }
        Ok(Listed::Now(ids))
    }

    /// What was known of the session when it ended. It may have been resumed since.
    #[must_use]
    pub fn once(&self, id: SessionId) -> Option<Ended<'_>> {
        let at = self.table.find(id)?;
        if self.changed.contains(&id) { None } else { self.table.get(at) }
    }

    /// Compares the dates of all folders if that is due. Without this, [`EndedIndex::still`] has to check each folder.
    pub fn compare(&mut self, sessions: &Dir) {
        if self.trusted || self.table.len() == 0 {
            return;
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut changed = Vec::new();
            loop {
                let begin = next.fetch_add(BATCH, Ordering::Relaxed);
                if begin >= self.table.len() {
                    return changed;
                }
                for at in begin..self.table.len().min(begin + BATCH) {
                    changed.extend(self.table.get(at).filter(|ended| !is_same(sessions, ended)).map(|ended| ended.id));
                }
            }
        };
        let threads = if self.table.len() < BATCH { 1 } else { 8 };
        let changed = parallel(threads, work).concat();
        self.changed.extend(changed);
        (self.trusted, self.compared_now) = (true, true);
    }

    /// The session, if it has ended and nothing has happened to it since. `sessions`: the folder in which its folder
    /// is.
    #[must_use]
    pub fn still(&self, sessions: &Dir, id: SessionId) -> Option<Ended<'_>> {
        self.once(id).filter(|ended| self.trusted || is_same(sessions, ended))
    }

    /// Adds the session if it is at rest, and returns what it was at its end.
    pub fn learn(&self, sessions: &Dir, id: SessionId) -> Option<Closing> {
        // The date is read first: what happens after that is noticed by the next reader.
        let changed = sessions.changed(id.as_str()).ok()??;
        let (outcome, closing) = read_summary(sessions, id).filter(|(_, closing)| closing.session.id == id)?;
        self.add(changed, outcome.kind, &closing);
        Some(closing)
    }

    fn add(&self, changed: Date, kind: Kind, closing: &Closing) {
        let session = &closing.session;
        let new = Ended {
            id: session.id,
            changed,
            ended: closing.ended,
            created: session.created,
            parent: session.parent,
            kind: Some(kind),
            name: session.name.clone().map(Into::into),
        };
        let settled = clock::now().as_second() - changed.seconds >= MOMENT_S;
        if let Ok(mut list) = self.new.lock()
            && settled
        {
            list.push(new);
        }
    }

    /// Writes the file again with what was added. Best effort: a session that is not in it is looked up in its folder.
    pub fn save(self, home: &Path) {
        let new = self.new.lock().map(|mut new| std::mem::take(&mut *new)).unwrap_or_default();
        if self.compared_now || new.len() >= NEW_RECORDS.max(self.table.len() / NEW_PART) {
            // Nothing is lost by a file that was not written.
            let _ = self.write(home, new);
        }
    }

    fn write(&self, home: &Path, new: Vec<Ended<'static>>) -> Option<()> {
        let root = Dir::open(home).ok()?;
        if !root.is_ours().ok()? {
            return None;
        }
        let woken = Woken::open_or_make(&root).ok()?;
        let _lock = woken.lock()?;
        if root.stat(&self.name).ok()? != self.file {
            // Another process has replaced the file since, and may know more.
            return None;
        }
        let kept = (0..self.table.len()).filter_map(|at| self.table.get(at));
        let kept = kept.filter(|ended| !self.changed.contains(&ended.id));
        let mut records: BTreeMap<SessionId, Ended<'_>> = kept.map(|ended| (ended.id, ended)).collect();
        let all_compared = self.compared_now || self.table.len() == 0;
        let compared = match (all_compared, self.trusted) {
            (true, _) => clock::now().as_second(),
            (false, true) => self.table.header.compared,
            (false, false) => 0,
        };
        let header = Header { woken: woken.number().ok()?, compared, boot: boot() };
        let settled: Vec<(SessionId, Date)> =
            new.iter().filter(|one| self.changed.contains(&one.id)).map(|one| (one.id, one.changed)).collect();
        records.extend(new.into_iter().map(|ended| (ended.id, ended)));
        root.replace(&self.name, &table::encode(header, &records), Sync::No).ok()?;
        if self.name == NAME {
            let sessions = root.open_dir_or_link("sessions").ok()?;
            for (id, changed) in settled {
                // On failure the session keeps its note, and its folder is read.
                let _ = woken.settle(&sessions, id, changed);
            }
            if self.compared_now {
                let _ = woken.forget_gone(&sessions, &self.changed);
            }
        }
        Some(())
    }
}

/// For a session that is about to be archived in this month: what is known of it from an earlier time in the archive is
/// not valid any more. Rarely needed, so the whole file is removed; the next lookup writes it again.
pub fn forget_in_month(home: &Path, month: &str, id: SessionId) -> io::Result<()> {
    let index = EndedIndex::of_month(home, month);
    if index.table.find(id).is_some() { Dir::open(home)?.remove(&index.name) } else { Ok(()) }
}

fn is_same(sessions: &Dir, ended: &Ended<'_>) -> bool {
    sessions.changed(ended.id.as_str()).is_ok_and(|now| now == Some(ended.changed))
}

fn boot() -> u64 {
    mark_of(boot_id().as_bytes())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use jiff::Timestamp;

    /// A home with a folder for each of these sessions.
    fn home(ids: &[&str]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for id in ids {
            std::fs::create_dir_all(home.path().join("sessions").join(id)).unwrap();
            std::fs::write(home.path().join("sessions").join(id).join("session.json"), "{}").unwrap();
        }
        home
    }

    fn sessions(home: &tempfile::TempDir) -> Dir {
        Dir::open(home.path().join("sessions")).unwrap()
    }

    fn ended(home: &tempfile::TempDir, id: &str, name: Option<&str>) -> Ended<'static> {
        Ended {
            id: SessionId::parse(id).unwrap(),
            changed: sessions(home).changed(id).unwrap().unwrap(),
            ended: Timestamp::new(30, 31).unwrap(),
            created: Timestamp::new(20, 21).unwrap(),
            parent: SessionId::parse("zzzzzzzz"),
            kind: Some(Kind::Stopped),
            name: name.map(|name| name.to_owned().into()),
        }
    }

    fn write(home: &tempfile::TempDir, new: Vec<Ended<'static>>) {
        EndedIndex::read(home.path()).write(home.path(), new).unwrap();
    }

    #[test]
    fn what_was_written_is_read_and_the_newest_record_of_a_session_counts() {
        let home = home(&["aaaaaaaa", "bbbbbbbb", "0000000z"]);
        let one = ended(&home, "aaaaaaaa", Some("a name with spaces"));
        let other = ended(&home, "bbbbbbbb", None);
        write(&home, vec![other.clone(), one.clone()]);
        let later = Ended { ended: Timestamp::from_second(99).unwrap(), ..other.clone() };
        // As an earlier version wrote it.
        let unknown = Ended { kind: None, ..ended(&home, "0000000z", Some("x")) };
        write(&home, vec![later.clone(), unknown.clone()]);
        let index = EndedIndex::read(home.path());
        assert_eq!(index.once(one.id), Some(one.clone()));
        assert_eq!(index.once(other.id), Some(later));
        assert_eq!(index.once(unknown.id), Some(unknown.clone()));
        assert_eq!(index.once(SessionId::parse("bbbbbbbc").unwrap()), None);
        assert_eq!(index.table.len(), 3);
    }

    #[test]
    fn a_month_of_the_archive_has_a_file_of_its_own_in_the_archive() {
        let home = home(&["aaaaaaaa"]);
        let one = ended(&home, "aaaaaaaa", Some("first"));
        std::fs::create_dir(home.path().join("archive")).unwrap();
        EndedIndex::of_month(home.path(), "2026-11").write(home.path(), vec![one.clone()]).unwrap();
        assert_eq!(EndedIndex::of_month(home.path(), "2026-11").once(one.id), Some(one.clone()));
        assert_eq!(EndedIndex::read(home.path()).once(one.id), None);
        let left: Vec<_> = std::fs::read_dir(home.path().join("archive")).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "no temporary file stays");
        // It was restored, renamed perhaps, and is archived again.
        forget_in_month(home.path(), "2026-11", SessionId::parse("bbbbbbbb").unwrap()).unwrap();
        assert!(EndedIndex::of_month(home.path(), "2026-11").once(one.id).is_some());
        forget_in_month(home.path(), "2026-11", one.id).unwrap();
        assert_eq!(EndedIndex::of_month(home.path(), "2026-11").once(one.id), None);
    }

    #[test]
    fn a_file_that_is_damaged_or_cut_off_is_read_as_none_and_written_again() {
        let home = home(&["aaaaaaaa", "bbbbbbbb"]);
        write(&home, vec![ended(&home, "aaaaaaaa", Some("first")), ended(&home, "bbbbbbbb", Some("second"))]);
        let path = home.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for damaged in [whole[..at].to_vec(), [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat()] {
                std::fs::write(&path, &damaged).unwrap();
                assert_eq!(EndedIndex::read(home.path()).table.len(), 0, "byte {at}");
            }
        }
        std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert_eq!(EndedIndex::read(home.path()).table.len(), 0);
        write(&home, vec![ended(&home, "aaaaaaaa", None)]);
        assert_eq!(EndedIndex::read(home.path()).table.len(), 1);
    }

    #[test]
    fn a_session_that_was_woken_does_not_count_until_it_is_at_rest_again() {
        let home = home(&["aaaaaaaa", "bbbbbbbb"]);
        let one = ended(&home, "aaaaaaaa", None);
        write(&home, vec![one.clone(), ended(&home, "bbbbbbbb", None)]);
        let old = std::fs::read(home.path().join(NAME)).unwrap();
        let is_known = || EndedIndex::read(home.path()).still(&sessions(&home), one.id).is_some();
        assert!(is_known());
        note(&Dir::open(home.path()).unwrap(), one.id).unwrap();
        assert!(!is_known());
        // An old copy of the file does not make it known either.
        std::fs::write(home.path().join(NAME), old).unwrap();
        assert!(!is_known());
        // A record that was made while the session was being changed.
        let outdated = Ended { changed: Date { seconds: 1, nanos: 1 }, ..one.clone() };
        write(&home, vec![outdated]);
        assert!(!is_known());
        write(&home, vec![ended(&home, "aaaaaaaa", None)]);
        assert!(is_known());
    }

    #[test]
    fn without_the_notes_of_what_was_woken_the_dates_of_the_folders_count() {
        let home = home(&["aaaaaaaa", "bbbbbbbb", "cccccccc"]);
        let [one, two, three] = ["aaaaaaaa", "bbbbbbbb", "cccccccc"].map(|id| ended(&home, id, None));
        let two = Ended { changed: Date { seconds: 1, nanos: 1 }, ..two };
        write(&home, vec![one.clone(), two.clone(), three.clone()]);
        assert!(EndedIndex::read(home.path()).trusted);
        std::fs::remove_dir_all(home.path().join("woken")).unwrap();
        let mut index = EndedIndex::read(home.path());
        assert!(!index.trusted);
        let still = |index: &EndedIndex, one: &Ended<'_>| index.still(&sessions(&home), one.id).is_some();
        assert!(still(&index, &one) && !still(&index, &two));
        std::fs::remove_dir_all(home.path().join("sessions/cccccccc")).unwrap();
        index.compare(&sessions(&home));
        assert!(still(&index, &one) && !still(&index, &two) && !still(&index, &three));
        index.save(home.path());
        let index = EndedIndex::read(home.path());
        assert!(index.trusted, "they were compared");
        assert_eq!(index.table.len(), 1);
    }

    #[test]
    fn of_sessions_with_the_same_name_one_that_was_resumed_is_meant_and_the_others_are_not_opened() {
        let home = home(&["aaaaaaaa", "bbbbbbbb"]);
        for id in ["aaaaaaaa", "bbbbbbbb"] {
            let session = format!(
                r#"{{"schema":1,"id":"{id}","agent":"command","cwd":"/","mode":"headless","created":"2026-01-01T00:00:00Z","name":"same"}}"#
            );
            // Without a run, so that a look would say that it has not ended.
            std::fs::write(home.path().join("sessions").join(id).join("session.json"), session).unwrap();
        }
        let older = ended(&home, "aaaaaaaa", Some("same"));
        let newer = Ended { created: Timestamp::new(25, 0).unwrap(), ..ended(&home, "bbbbbbbb", Some("same")) };
        write(&home, vec![older.clone(), newer.clone()]);
        let meant = || crate::home::Home::at(home.path().to_owned()).select("same").unwrap().id;
        assert_eq!(meant(), newer.id);
        note(&Dir::open(home.path()).unwrap(), older.id).unwrap();
        assert_eq!(meant(), older.id);
    }

    #[test]
    fn of_two_who_write_at_once_the_second_does_not_bring_back_what_it_had_read_before() {
        let home = home(&["aaaaaaaa", "bbbbbbbb"]);
        let one = ended(&home, "aaaaaaaa", None);
        write(&home, vec![one.clone()]);
        let slow = EndedIndex::read(home.path());
        let later = Ended { ended: Timestamp::from_second(99).unwrap(), ..one.clone() };
        write(&home, vec![later.clone()]);
        assert!(slow.write(home.path(), vec![ended(&home, "bbbbbbbb", None)]).is_none());
        assert_eq!(EndedIndex::read(home.path()).once(one.id), Some(later));
    }
}
