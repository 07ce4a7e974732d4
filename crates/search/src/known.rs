//! What the index knows about the folders and databases with conversations, so that a search that finds nothing changed
//! reads a few rows and not one row for each conversation.
//!
//! Each folder of transcripts and each database has a row with its state when all of it had been read. An update clears
//! this state before it changes anything of that place, and writes it again when the rest is written. If an update is
//! killed in between, or could not read everything, the next update looks at that place file by file. A conversation is
//! in the index only while its place has a row, so that the conversations of a deleted place are found, too.

use crate::discover::Stamp;
use crate::error::SearchError;
use crate::source::Kind;
use crate::update::Update;
use rusqlite::{Params, params};
use std::collections::HashMap;

/// Sources by their keys, with their numbers and stamps.
pub(crate) type Known = HashMap<String, (i64, Stamp)>;

const BETWEEN: &str = "SELECT key, id, inode, size, changed FROM sources WHERE kind = ?1 AND key > ?2 AND key < ?3";
/// The same condition as in the index `sources_sessions`.
const SESSIONS: &str = "SELECT key, id, inode, size, changed FROM sources WHERE kind = 2";

impl Update<'_> {
    /// The sums of all folders with transcripts. A folder that has to be looked at again has no sum.
    pub fn folders(&self) -> Result<HashMap<String, Option<i64>>, SearchError> {
        let mut rows = self.connection.prepare("SELECT path, sum FROM folders")?;
        let folders = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(folders.collect::<rusqlite::Result<HashMap<_, _>>>()?)
    }

    /// Called before the entries of these folders change.
    pub fn begin_folders<'a>(&mut self, paths: impl Iterator<Item = &'a String>) -> Result<(), SearchError> {
        let transaction = self.connection.transaction()?;
        let mut put = transaction
            .prepare("INSERT INTO folders (path, sum) VALUES (?1, NULL) ON CONFLICT (path) DO UPDATE SET sum = NULL")?;
        for path in paths {
            put.execute([path])?;
        }
        drop(put);
        Ok(transaction.commit()?)
    }

    /// Called when all of these folders is in the index, and nothing of the `gone` ones.
    pub fn end_folders<'a>(
        &mut self,
        sums: &HashMap<String, i64>,
        gone: impl Iterator<Item = &'a String>,
    ) -> Result<(), SearchError> {
        let transaction = self.connection.transaction()?;
        for (path, sum) in sums {
            transaction.execute("UPDATE folders SET sum = ?2 WHERE path = ?1", params![path, sum])?;
        }
        for path in gone {
            transaction.execute("DELETE FROM folders WHERE path = ?1", [path])?;
        }
        Ok(transaction.commit()?)
    }

    /// The stamps of all databases. A database that has to be looked at again has no stamp.
    pub fn databases(&self) -> Result<HashMap<String, Option<String>>, SearchError> {
        let mut rows = self.connection.prepare("SELECT path, stamp FROM databases")?;
        let databases = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(databases.collect::<rusqlite::Result<HashMap<_, _>>>()?)
    }

    /// Called before the entries of this database change.
    pub fn begin_database(&self, path: &str) -> Result<(), SearchError> {
        let put = "INSERT INTO databases (path, stamp) VALUES (?1, NULL) ON CONFLICT (path) DO UPDATE SET stamp = NULL";
        Ok(self.connection.execute(put, [path]).map(drop)?)
    }

    /// Called when all of this database is in the index.
    pub fn end_database(&self, path: &str, stamp: &str) -> Result<(), SearchError> {
        Ok(self.connection.execute("UPDATE databases SET stamp = ?2 WHERE path = ?1", [path, stamp]).map(drop)?)
    }

    /// Called when nothing of this database is in the index any more.
    pub fn forget_database(&self, path: &str) -> Result<(), SearchError> {
        Ok(self.connection.execute("DELETE FROM databases WHERE path = ?1", [path]).map(drop)?)
    }

    /// The transcripts in a folder.
    pub fn known_in(&self, folder: &str) -> Result<Known, SearchError> {
        let mut known =
            self.known(BETWEEN, params![Kind::File.number(), format!("{folder}/"), format!("{folder}0")])?;
        // Transcripts in subfolders are not its own.
        known.retain(|key, _| !key[folder.len() + 1..].contains('/'));
        Ok(known)
    }

    /// The conversations in a database.
    pub fn known_of_database(&self, path: &str) -> Result<Known, SearchError> {
        self.known(BETWEEN, params![Kind::Database.number(), format!("{path}\n"), format!("{path}\u{b}")])
    }

    /// The sessions whose own records are in the index.
    pub fn known_sessions(&self) -> Result<Known, SearchError> {
        self.known(SESSIONS, [])
    }

    fn known(&self, question: &str, values: impl Params) -> Result<Known, SearchError> {
        let mut rows = self.connection.prepare(question)?;
        let known = rows.query_map(values, |row| {
            let stamp = Stamp { inode: row.get(2)?, size: row.get(3)?, changed: row.get(4)? };
            Ok((row.get(0)?, (row.get(1)?, stamp)))
        })?;
        Ok(known.collect::<rusqlite::Result<Known>>()?)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use crate::database::Folder;
    use crate::find::Query;
    use crate::{discover, search};
    use ostler_store::home::Home;
    use std::collections::HashMap;
    use std::fs::{self, File, FileTimes};
    use std::io::Write;
    use std::path::{Path, PathBuf};

    const ID: &str = "11111111-408d-4262-88d9-97e7e2d532f0";
    const OTHER: &str = "22222222-408d-4262-88d9-97e7e2d532f0";

    struct Machine {
        folder: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Machine {
            Machine { folder: tempfile::tempdir().unwrap() }
        }

        fn transcript(&self, project: &str, id: &str) -> PathBuf {
            let folder = self.folder.path().join("home/.claude/projects").join(project);
            fs::create_dir_all(&folder).unwrap();
            folder.join(format!("{id}.jsonl"))
        }

        fn variable(&self, name: &str) -> Option<String> {
            (name == "HOME").then(|| self.folder.path().join("home").to_str().unwrap().to_owned())
        }

        fn home(&self) -> Home {
            Home::at(self.folder.path().join("ostler"))
        }

        /// How many messages have the word.
        fn finds(&self, word: &str) -> usize {
            let query = Query { words: vec![word.to_owned()], ..Query::default() };
            search(&self.home(), &|name: &str| self.variable(name), &query, &mut |_| {}).unwrap().hits.len()
        }

        fn sums(&self) -> HashMap<String, Option<i64>> {
            let connection = Folder::open(self.home().root()).unwrap().existing().unwrap().unwrap();
            let mut rows = connection.prepare("SELECT path, sum FROM folders").unwrap();
            let sums = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            sums.collect::<rusqlite::Result<_>>().unwrap()
        }

        /// In how many folders a search has to look more closely.
        fn changed(&self) -> usize {
            let (folders, _) = discover::folders(&|name: &str| self.variable(name), &self.sums());
            folders.iter().filter(|folder| folder.changed.is_some()).count()
        }
    }

    fn line(word: &str) -> String {
        format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{word}\"}}}}\n")
    }

    fn append(path: &Path, word: &str) {
        File::options().append(true).open(path).unwrap().write_all(line(word).as_bytes()).unwrap();
    }

    #[test]
    fn every_change_of_a_transcript_is_seen_after_a_search_that_saw_none() {
        let machine = Machine::new();
        let (one, other) = (machine.transcript("-one", ID), machine.transcript("-other", OTHER));
        fs::write(&one, line("first")).unwrap();
        fs::write(&other, line("beside")).unwrap();
        assert_eq!((machine.finds("first"), machine.finds("beside"), machine.changed()), (1, 1, 0));

        append(&one, "grown");
        assert_eq!(
            (machine.changed(), machine.finds("grown"), machine.finds("first"), machine.changed()),
            (1, 1, 1, 0)
        );

        // The same length as before.
        fs::write(&one, [line("again"), line("grewn")].concat()).unwrap();
        assert_eq!(
            (machine.changed(), machine.finds("grewn"), machine.finds("grown"), machine.changed()),
            (1, 1, 0, 0)
        );

        // The same length and the same time as before, but another file.
        let times = fs::metadata(&one).unwrap().modified().unwrap();
        let beside = one.with_extension("new");
        fs::write(&beside, [line("again"), line("grunt")].concat()).unwrap();
        File::options().write(true).open(&beside).unwrap().set_times(FileTimes::new().set_modified(times)).unwrap();
        fs::rename(&beside, &one).unwrap();
        assert_eq!(
            (machine.changed(), machine.finds("grunt"), machine.finds("grewn"), machine.changed()),
            (1, 1, 0, 0)
        );

        let moved = machine.transcript("-other", ID);
        fs::rename(&one, &moved).unwrap();
        assert_eq!((machine.changed(), machine.finds("grunt"), machine.changed()), (2, 1, 0));

        fs::remove_file(&moved).unwrap();
        assert_eq!(
            (machine.changed(), machine.finds("grunt"), machine.finds("beside"), machine.changed()),
            (1, 0, 1, 0)
        );

        fs::remove_dir_all(other.parent().unwrap()).unwrap();
        assert_eq!((machine.finds("beside"), machine.sums().len()), (0, 1));
    }

    #[test]
    fn two_transcripts_that_change_their_names_are_seen() {
        let machine = Machine::new();
        let (one, other) = (machine.transcript("-one", ID), machine.transcript("-one", OTHER));
        fs::write(&one, line("first")).unwrap();
        fs::write(&other, line("other")).unwrap();
        assert_eq!((machine.finds("first"), machine.changed()), (1, 0));
        let between = one.with_extension("new");
        fs::rename(&one, &between).unwrap();
        fs::rename(&other, &one).unwrap();
        fs::rename(&between, &other).unwrap();
        assert_eq!(
            (machine.changed(), machine.finds("first"), machine.finds("other"), machine.changed()),
            (1, 1, 1, 0)
        );
    }

    #[test]
    fn an_update_that_was_killed_does_not_count_as_complete() {
        let machine = Machine::new();
        let (path, more) = (machine.transcript("-one", ID), machine.transcript("-one", OTHER));
        fs::write(&path, line("first")).unwrap();
        assert_eq!(machine.finds("first"), 1);
        let away = path.with_extension("away");
        fs::rename(&path, &away).unwrap();
        fs::write(&more, line("more")).unwrap();
        // Copies what a process leaves behind that is killed after it has deleted the first transcript and before it
        // has written the other one.
        let (index, left) = (machine.home().root().join("search"), machine.folder.path().join("left"));
        let query = Query { words: vec!["more".to_owned()], ..Query::default() };
        let mut copy = |_| {
            fs::create_dir(&left).unwrap();
            for file in fs::read_dir(&index).unwrap().map(|file| file.unwrap().path()) {
                fs::copy(&file, left.join(file.file_name().unwrap())).unwrap();
            }
        };
        search(&machine.home(), &|name: &str| machine.variable(name), &query, &mut copy).unwrap();
        fs::remove_dir_all(&index).unwrap();
        fs::rename(&left, &index).unwrap();
        // Now the files are as they were before.
        fs::remove_file(&more).unwrap();
        fs::rename(&away, &path).unwrap();
        assert_eq!((machine.finds("first"), machine.finds("more"), machine.changed()), (1, 0, 0));
    }
}
