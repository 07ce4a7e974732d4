//! The file of the index: a SQLite database that only its owner can read, with one writer at a time.
//!
//! Everything in it can be made again, so a damaged database, or one of another version, is deleted. A kernel lock
//! decides which process writes; it is released as soon as that process is gone. Readers need no lock: SQLite's
//! write-ahead log shows them the last complete state.

use crate::error::{SearchError, is_damage};
use ostler_sys::lock::{self, Held};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the tables and of their contents. It is also increased when a decoder finds more in a transcript than
/// before.
const VERSION: i64 = 4;

const TABLES: &str = "
CREATE TABLE sources (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  kind INTEGER NOT NULL,
  agent TEXT NOT NULL,
  native_id TEXT,
  cwd TEXT,
  title TEXT,
  inode INTEGER NOT NULL,
  size INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  position INTEGER NOT NULL,
  mark TEXT
);
CREATE INDEX sources_conversation ON sources (agent, native_id);
CREATE TABLE passages (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, role INTEGER NOT NULL, places BLOB NOT NULL);
CREATE INDEX passages_source ON passages (source);
CREATE TABLE sessions (id TEXT PRIMARY KEY, stamp TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE conversations (agent TEXT, native_id TEXT, session TEXT, PRIMARY KEY (agent, native_id, session)) WITHOUT ROWID;
CREATE INDEX conversations_session ON conversations (session);
CREATE INDEX sources_sessions ON sources (key) WHERE kind = 2;
CREATE TABLE folders (path TEXT PRIMARY KEY, sum INTEGER) WITHOUT ROWID;
CREATE TABLE databases (path TEXT PRIMARY KEY, stamp TEXT) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
";

/// Stored in the file at the end of its first update: before that, the index is incomplete.
const WHOLE: i64 = 1;

/// How long to wait while another process has the database locked, between its transactions.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long this search waits for the update of another search before it goes on without it.
const WAIT: Duration = Duration::from_millis(200);

const INDEX: &str = "index.sqlite";
const LOG: &str = "index.sqlite-wal";
/// The files of the database.
const FILES: [&str; 3] = [INDEX, LOG, "index.sqlite-shm"];
/// A log up to this many bytes is read and checked within a millisecond.
const LONG_LOG: u64 = 1 << 20;
const LOCK: &str = "lock";
/// Contains the id of the boot in which much is written without waiting for the disk. In a later boot the index cannot
/// be trusted.
const WRITING: &str = "writing";

/// The folder of the index.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens it, and creates it where needed, readable only by its owner.
    pub fn open(home: &Path) -> Result<Folder, SearchError> {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let path = home.join("search");
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(SearchError::io(&path))?;
        // A folder that was made by hand, or copied, may be readable by others.
        let mode = std::fs::metadata(&path).map_err(SearchError::io(&path))?.permissions().mode();
        if mode & 0o077 != 0 {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).map_err(SearchError::io(&path))?;
        }
        Ok(Folder { path })
    }

    pub fn index(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    /// Takes the lock for writing; `None` while another process holds it.
    pub fn lock(&self, wait: Wait) -> Result<Option<Held>, SearchError> {
        let path = self.path.join(LOCK);
        let file = private(&path).map_err(SearchError::io(&path))?;
        let limit = match wait {
            Wait::Short => WAIT,
            Wait::Long => PATIENCE,
        };
        lock::exclusive_within(file, limit).map_err(SearchError::io(&path))
    }

    /// Takes the lock for writing, however long another process holds it.
    pub fn lock_when_free(&self) -> Result<Held, SearchError> {
        let path = self.path.join(LOCK);
        private(&path).and_then(lock::exclusive).map_err(SearchError::io(&path))
    }

    /// The index as it is, or `None` when there is none that this version can read.
    pub fn existing(&self) -> Result<Option<Connection>, SearchError> {
        // Something else than a file at this path is not an index.
        if !std::fs::symlink_metadata(self.index()).is_ok_and(|about| about.is_file()) {
            return Ok(None);
        }
        for name in FILES {
            allow_owner(&self.path.join(name)).map_err(|error| SearchError::Damaged { error: error.to_string() })?;
        }
        let connection = open(&self.index())?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        Ok((version == VERSION).then_some(connection))
    }

    /// The index, for the process that holds the lock; a new, empty one when there is none that can be used.
    pub fn for_update(&self, _: &Held) -> Result<Connection, SearchError> {
        if self.is_unfinished() {
            self.delete().map_err(SearchError::io(&self.path))?;
        }
        match self.existing() {
            Ok(Some(connection)) => return Ok(connection),
            Ok(None) => {}
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
        self.delete().map_err(SearchError::io(&self.path))?;
        drop(private(&self.index()).map_err(SearchError::io(&self.index()))?);
        let connection = open(&self.index())?;
        connection.execute_batch(&format!(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
        Ok(connection)
    }

    /// Deletes the index; the lock stays.
    pub fn delete(&self) -> io::Result<()> {
        for name in FILES.into_iter().chain(["index.sqlite-journal", WRITING]) {
            match std::fs::remove_file(self.path.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                    std::fs::remove_dir_all(self.path.join(name))?
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Prepares for writing much without waiting for the disk. If the machine loses power meanwhile, the index is made
    /// again.
    pub fn begin_much(&self, connection: &Connection) -> Result<(), SearchError> {
        let path = self.path.join(WRITING);
        let mut file = File::from(private(&path).map_err(SearchError::io(&path))?);
        file.write_all(ostler_sys::process::boot_id().as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(SearchError::io(&path))?;
        connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 8000;")?;
        Ok(())
    }

    /// Called when all of it is written: syncs it, so that from here on it survives a power failure.
    pub fn end_much(&self, connection: &Connection) -> Result<(), SearchError> {
        connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(TRUNCATE);")?;
        let path = self.path.join(WRITING);
        File::open(self.index()).and_then(|file| file.sync_all()).map_err(SearchError::io(&path))?;
        std::fs::remove_file(&path).map_err(SearchError::io(&path))
    }

    /// Moves the log into the file when it has grown. A search that is the only one reads the whole log when it begins.
    pub fn shorten_log(&self, connection: &Connection) -> Result<(), SearchError> {
        if std::fs::metadata(self.path.join(LOG)).is_ok_and(|about| about.len() > LONG_LOG) {
            // Not while another search reads the log: the next update tries again.
            connection.busy_timeout(Duration::ZERO)?;
            let moved = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
            connection.busy_timeout(PATIENCE)?;
            moved?;
        }
        Ok(())
    }

    /// Whether an update that did not wait for the disk was cut off by a power failure or a reboot. If its process was
    /// only killed, the kernel still writes everything.
    fn is_unfinished(&self) -> bool {
        std::fs::read_to_string(self.path.join(WRITING)).is_ok_and(|boot| boot != ostler_sys::process::boot_id())
    }
}

/// How long the lock is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Short,
    Long,
}

/// Makes a file readable and writable for its owner again. Fails when the file does not belong to this user.
fn allow_owner(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_file() && about.permissions().mode() & 0o600 != 0o600 => {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A file that only its owner can read.
fn private(path: &Path) -> io::Result<OwnedFd> {
    allow_owner(path)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(CWD, path, flags, mode)?;
    rustix::fs::fchmod(&file, mode)?;
    Ok(file)
}

/// Whether the index is complete: everything that there was to read has been read into it once.
pub(crate) fn is_whole(connection: &Connection) -> Result<bool, SearchError> {
    let noted: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    Ok(noted == WHOLE)
}

/// Records that the index is complete. This writes only the first time.
pub(crate) fn note_whole(connection: &Connection) -> Result<(), SearchError> {
    if !is_whole(connection)? {
        connection.execute_batch(&format!("PRAGMA application_id = {WHOLE}"))?;
    }
    Ok(())
}

fn open(path: &Path) -> Result<Connection, SearchError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;")?;
    // The log is moved into the file when it has grown (`shorten_log`), not whenever a search ends.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> SearchError {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => SearchError::Full { error: text },
            Some(_) | None if is_damage(&error) => SearchError::Damaged { error: text },
            Some(_) | None => SearchError::Index { error: text },
        }
    }
}
