//! `names.list`: which sessions may have a name, besides those in the index, so that a launch with a name need not list
//! a folder of thousands. Each launch changes that folder, so the date that `sessions.list` relies on is of no use
//! here.
//!
//! A name is only given while `names.lock` is held, by every version of ostler. The process that holds it marks the
//! folder ([`Dir::mark`]) when it has listed it, and again when its own session has been added. As long as the folder
//! has that mark, no entry has been added to it or removed. What other processes may have added between two marks, that
//! is, while one launch holds the lock:
//!
//! * a session without a name. If it is given one later, that is noted in `woken/`, and the sessions noted there are
//!   looked at;
//! * a session of a launch that was killed. Its hidden folder was there before, and counts as a session;
//! * a session that a version without this file restores from the archive. Then a folder of the archive has another
//!   date, and the list is not written;
//! * anything else. Then the folder has one more subfolder than expected, and the list is not written.
//!
//! Ids of sessions that do not exist do no harm: each id is looked up. The file is derived: without it, or with another
//! index, the folder is listed.

use super::{Listed, sessions_list};
use crate::home::is_month;
use ostler_core::id::SessionId;
use ostler_sys::clock;
use ostler_sys::dir::{Date, Dir, NamesStamp};
use std::io::{self, ErrorKind};
use std::path::Path;

const NAME: &str = "names.list";
/// The prefix of the folder of a session that is being launched.
const HIDDEN: &[u8] = b".new-";

fn of(stamp: NamesStamp, index: u64) -> sessions_list::Of {
    sessions_list::Of { folder: stamp.inode, changed: stamp.modified, index }
}

/// The ids that are not in the index, if the folder has not changed since they were written.
pub fn read(home: &Dir, sessions: &Dir, index: u64) -> Option<Vec<SessionId>> {
    sessions_list::read(home, NAME, of(sessions.names_stamp().ok()?, index)).map(|difference| difference.more)
}

/// Lists the folder, with the sessions that are being launched, and writes the ids that are not `indexed`.
pub fn list(home: &Dir, sessions: &Dir, index: u64, indexed: impl Fn(SessionId) -> bool) -> io::Result<Vec<SessionId>> {
    // For a folder that cannot be marked, the list is not written.
    let mark = sessions.mark().ok().flatten();
    let mut ids = Vec::new();
    sessions.each_name(|name| {
        let id = SessionId::from_bytes(name.strip_prefix(HIDDEN).unwrap_or(name));
        ids.extend(id.filter(|&id| !indexed(id)));
    })?;
    if let Some(mark) = mark
        && sessions.names_stamp()? == mark
    {
        let difference = sessions_list::Difference { more: ids.clone(), ..sessions_list::Difference::default() };
        // Without this file the next command lists the folder again.
        let _ = sessions_list::write_difference(home, NAME, of(mark, index), &difference);
    }
    Ok(ids)
}

/// A session that is about to be added by the process that holds `names.lock`.
#[derive(Debug)]
pub struct Addition {
    home: Dir,
    sessions: Dir,
    before: NamesStamp,
    archive: Vec<(String, Option<Date>)>,
    index: u64,
    ids: Vec<SessionId>,
}

/// When the folders of the archive changed last, by their names.
fn archive_dates(home: &Dir) -> io::Result<Vec<(String, Option<Date>)>> {
    let archive = match home.open_dir_or_link("archive") {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut months: Vec<String> = archive.names()?.into_iter().filter(|name| is_month(name)).collect();
    months.sort_unstable();
    let dated = |month: String| {
        let date = archive.open_dir_or_link(&month)?.changed(".")?;
        Ok((month, date))
    };
    months.into_iter().map(dated).collect()
}

impl Addition {
    /// `None`: there is no valid list to which this could be added.
    #[must_use]
    pub fn begin(home: &Path) -> Option<Addition> {
        Addition::begin_at(home, clock::now().as_second())
    }

    fn begin_at(home: &Path, now: i64) -> Option<Addition> {
        let (home, sessions) = (Dir::open(home).ok()?, Dir::open(home.join("sessions")).ok()?);
        let before = sessions.names_stamp().ok()?;
        let archive = archive_dates(&home).ok()?;
        // A further change of these could have the same date.
        let settled = |date: Option<Date>| date.is_none_or(|date| now - date.seconds >= super::MOMENT_S);
        if !archive.iter().all(|(_, date)| settled(*date)) {
            return None;
        }
        let index = sessions_list::index_of(&home, NAME)?;
        let difference = sessions_list::read(&home, NAME, of(before, index))?;
        Some(Addition { home, sessions, before, archive, index, ids: difference.more })
    }

    /// The session has its folder. Best effort: if the list is not written, the folder is listed.
    pub fn done(mut self, id: SessionId) {
        self.ids.push(id);
        if let Ok(Some(mark)) = self.sessions.mark()
            && mark.links == self.before.links + 1
            && archive_dates(&self.home).is_ok_and(|archive| archive == self.archive)
        {
            let difference = sessions_list::Difference { more: self.ids, ..sessions_list::Difference::default() };
            let _ = sessions_list::write_difference(&self.home, NAME, of(mark, self.index), &difference);
        }
    }
}

impl super::EndedIndex {
    /// The sessions in this folder without a valid record, and perhaps some that are gone or have not begun.
    pub fn without_record(&self, home: &Path, sessions: &Dir) -> io::Result<Vec<SessionId>> {
        let indexed = |id| self.table.find(id).is_some();
        let index = self.table.check();
        let written = Dir::open(home).ok().filter(|_| self.notes_whole && self.table.len() >= sessions_list::WORTH_IT);
        let mut ids = match written {
            Some(home) => match read(&home, sessions, index) {
                Some(ids) => ids,
                None => list(&home, sessions, index, indexed)?,
            },
            None => match self.listed(home, sessions)? {
                Listed::Before(difference) => difference.more,
                Listed::Now(ids) => ids.into_iter().filter(|&id| !indexed(id)).collect(),
            },
        };
        ids.extend(&self.changed);
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::Addition;
    use crate::ended::table::Ended;
    use crate::ended::{EndedIndex, sessions_list};
    use crate::folder::Folder;
    use crate::home::Home;
    use jiff::Timestamp;
    use ostler_core::id::SessionId;
    use ostler_core::record::Renamed;
    use ostler_sys::dir::{Date, Dir};
    use std::path::Path;

    fn id(number: u64) -> SessionId {
        SessionId::from_random(number)
    }

    /// A home with so many records that the list is written to a file. The sessions of these records are gone.
    fn home() -> (tempfile::TempDir, Home) {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("sessions")).unwrap();
        let record = |number| Ended {
            id: id(number),
            changed: Date { seconds: 1, nanos: 1 },
            ended: Timestamp::UNIX_EPOCH,
            created: Timestamp::UNIX_EPOCH,
            parent: None,
            kind: None,
            name: Some(format!("job {number}").into()),
        };
        let records = (0..sessions_list::WORTH_IT as u64).map(|number| record(1_000_000 + number)).collect();
        EndedIndex::read(place.path()).write(place.path(), records).unwrap();
        let home = Home::at(place.path().to_owned());
        (place, home)
    }

    /// A session that counts as running when its name is looked up.
    fn add(home: &Home, folder: &str, id: SessionId, name: Option<&str>) {
        let folder = home.sessions().join(folder);
        std::fs::create_dir(&folder).unwrap();
        let name = serde_json::to_string(&name).unwrap();
        let session = format!(
            r#"{{"schema":1,"id":"{id}","agent":"command","cwd":"/","mode":"headless","created":"2026-01-01T00:00:00Z","name":{name}}}"#
        );
        std::fs::write(folder.join("session.json"), session).unwrap();
    }

    fn remove(home: &Home, id: SessionId) {
        std::fs::remove_dir_all(home.sessions().join(id.as_str())).unwrap();
    }

    /// A launch with a name, and what other processes do meanwhile.
    fn launch(home: &Home, number: u64, name: &str, meanwhile: impl FnOnce()) {
        let _names = home.lock_names().unwrap();
        assert_eq!(home.name_is_taken(name).unwrap(), None);
        let addition = home.begin_addition();
        add(home, id(number).as_str(), id(number), Some(name));
        meanwhile();
        addition.unwrap().done(id(number));
    }

    /// Whether the next name can be checked without listing the folder.
    fn is_known(place: &Path) -> bool {
        let index = EndedIndex::read(place).table.check();
        super::read(&Dir::open(place).unwrap(), &Dir::open(place.join("sessions")).unwrap(), index).is_some()
    }

    #[test]
    fn launches_with_names_add_to_what_is_known_and_whatever_else_is_added_is_found_by_listing() {
        let (place, home) = home();
        let taken = |name| home.name_is_taken(name).unwrap();
        assert_eq!(taken("job 7"), None, "it has ended");
        launch(&home, 1, "one", || {});
        assert!(is_known(place.path()));
        launch(&home, 2, "two", || {});
        assert!(is_known(place.path()));
        assert_eq!((taken("one"), taken("two"), taken("three")), (Some(id(1)), Some(id(2)), None));
        // Added by a version without this file, or from the archive, in the moment after that.
        add(&home, id(3).as_str(), id(3), Some("three"));
        assert!(!is_known(place.path()));
        assert_eq!(taken("three"), Some(id(3)));
        assert!(is_known(place.path()), "it was listed");
        remove(&home, id(2));
        assert_eq!((taken("one"), taken("two")), (Some(id(1)), None));
    }

    #[test]
    fn what_is_added_while_a_launch_adds_its_own_is_found() {
        let (place, home) = home();
        let taken = |name| home.name_is_taken(name).unwrap();
        launch(&home, 1, "one", || add(&home, id(2).as_str(), id(2), Some("two")));
        assert!(!is_known(place.path()), "there is one folder more");
        assert_eq!((taken("one"), taken("two")), (Some(id(1)), Some(id(2))));
        // As many are removed as added; the added one has no name, and is given one later.
        launch(&home, 3, "three", || {
            add(&home, id(4).as_str(), id(4), None);
            remove(&home, id(2));
        });
        assert!(is_known(place.path()));
        let four = Folder::new(Dir::open(home.sessions().join(id(4).as_str())).unwrap());
        let renamed = Renamed { name: "four".to_owned(), at: Timestamp::UNIX_EPOCH, by: String::new() };
        four.rename(&home, id(4), &renamed).unwrap();
        assert!(is_known(place.path()));
        assert_eq!(taken("four"), Some(id(4)));
        // A launch that was killed, whose session still appears later.
        add(&home, &format!(".new-{}", id(5)), id(5), Some("five"));
        launch(&home, 6, "six", || {
            let hidden = home.sessions().join(format!(".new-{}", id(5)));
            std::fs::rename(hidden, home.sessions().join(id(5).as_str())).unwrap();
        });
        assert!(is_known(place.path()));
        assert_eq!((taken("five"), taken("six")), (Some(id(5)), Some(id(6))));
    }

    #[test]
    fn what_is_brought_back_from_the_archive_while_a_launch_adds_its_own_is_found() {
        let (place, home) = home();
        let month = home.archive().join("2026-01");
        std::fs::create_dir_all(&month).unwrap();
        add(&home, id(1).as_str(), id(1), Some("one"));
        std::fs::rename(home.sessions().join(id(1).as_str()), month.join(id(1).as_str())).unwrap();
        add(&home, id(2).as_str(), id(2), Some("two"));
        assert_eq!(home.name_is_taken("one").unwrap(), None);
        assert!(home.begin_addition().is_none(), "the archive has just changed");
        let addition = Addition::begin_at(place.path(), i64::MAX).unwrap();
        add(&home, id(3).as_str(), id(3), Some("three"));
        // As many are removed as added.
        std::fs::rename(month.join(id(1).as_str()), home.sessions().join(id(1).as_str())).unwrap();
        remove(&home, id(2));
        // The clock of the file system advances in steps. `MOMENT_S` covers a change within one step.
        while super::archive_dates(&addition.home).unwrap() == addition.archive {
            std::fs::write(month.join("x"), "").unwrap();
            std::fs::remove_file(month.join("x")).unwrap();
        }
        addition.done(id(3));
        assert!(!is_known(place.path()));
        assert_eq!(home.name_is_taken("one").unwrap(), Some(id(1)));
    }

    #[test]
    fn without_the_notes_or_with_another_index_the_folder_is_listed() {
        let (place, home) = home();
        launch(&home, 1, "one", || {});
        let list = place.path().join(super::NAME);
        let whole = std::fs::read(&list).unwrap();
        for at in 0..whole.len() {
            for damaged in [whole[..at].to_vec(), [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat()] {
                std::fs::write(&list, damaged).unwrap();
                assert!(!is_known(place.path()), "byte {at}");
            }
        }
        // A valid list without the session is used, so that the following checks are meaningful.
        let (root, sessions) = (Dir::open(place.path()).unwrap(), Dir::open(home.sessions()).unwrap());
        let index = EndedIndex::read(place.path()).table.check();
        let of = super::of(sessions.names_stamp().unwrap(), index);
        sessions_list::write_difference(&root, super::NAME, of, &sessions_list::Difference::default()).unwrap();
        assert_eq!(home.name_is_taken("one").unwrap(), None);
        let woken = place.path().join("woken");
        std::fs::rename(&woken, place.path().join("elsewhere")).unwrap();
        assert_eq!(home.name_is_taken("one").unwrap(), Some(id(1)));
        std::fs::rename(place.path().join("elsewhere"), woken).unwrap();
        sessions_list::write_difference(
            &root,
            super::NAME,
            super::of(sessions.names_stamp().unwrap(), index + 1),
            &sessions_list::Difference::default(),
        )
        .unwrap();
        assert_eq!(home.name_is_taken("one").unwrap(), Some(id(1)));
    }
}
