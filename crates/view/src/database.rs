//! Conversations that an agent stores in SQLite: which there are, and whether what was said is in a row.
//!
//! The agent gives the SQL ([`Queries`]). The database is opened for reading only. The agent's own write-ahead log is
//! read with it, so nothing has to be flushed and no file of the agent is changed. SQLite is large: a long-lived helper
//! uses a separate process for this.

use ostler_agents::Agent;
use ostler_agents::recorded::RecordedRow;
use ostler_agents::saved::Row;
use ostler_agents::stored::Queries;
use ostler_store::StoreError;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long to wait while another process has locked the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the rows of this conversation contain all these marks, which are those of messages since then (milliseconds
/// since 1970). A database that does not exist contains nothing.
pub fn holds(agent: &dyn Agent, database: &Path, native_id: &str, since_ms: u64, marks: &[String]) -> io::Result<bool> {
    let mut wanted: Vec<&str> = marks.iter().map(String::as_str).collect();
    let Some(queries) = agent.queries().filter(|_| database.exists()) else {
        return Ok(wanted.is_empty());
    };
    remove_found(agent, queries, database, native_id, since_ms, &mut wanted).map_err(io::Error::other)?;
    Ok(wanted.is_empty())
}

/// A conversation in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub native_id: String,
    pub cwd: String,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
}

/// Every conversation that a person began, the newest first. A database that does not exist contains none.
pub fn conversations(queries: &Queries, database: &Path) -> io::Result<Vec<Stored>> {
    let read = |connection: Connection| {
        let mut rows = connection.prepare(queries.conversations)?;
        let stored =
            rows.query_map([], |row| Ok(Stored { native_id: row.get(0)?, cwd: row.get(1)?, updated_ms: row.get(2)? }))?;
        stored.collect::<rusqlite::Result<Vec<_>>>()
    };
    if !database.exists() {
        return Ok(Vec::new());
    }
    open(database).and_then(read).map_err(io::Error::other)
}

/// Writes a record of the conversation that [`ostler_agents::recorded`] reads, a line per part of a message.
pub fn write_record(queries: &Queries, database: &Path, native_id: &str, to: &mut dyn io::Write) -> io::Result<()> {
    let connection = open(database).map_err(io::Error::other)?;
    let mut rows = connection.prepare(queries.parts).map_err(io::Error::other)?;
    let mut rows = rows.query(params![native_id]).map_err(io::Error::other)?;
    while let Some(row) = rows.next().map_err(io::Error::other)? {
        let bytes = |column| row.get_ref(column).and_then(|value| Ok(value.as_bytes()?)).map_err(io::Error::other);
        let row = RecordedRow { message_data: bytes(0)?, part_data: bytes(1)? };
        // A row that is not JSON is skipped.
        to.write_all(&row.as_line().unwrap_or_default())?;
    }
    Ok(())
}

fn remove_found(
    agent: &dyn Agent,
    queries: &Queries,
    database: &Path,
    native_id: &str,
    since_ms: u64,
    wanted: &mut Vec<&str>,
) -> rusqlite::Result<()> {
    let connection = open(database)?;
    // Only the ids are sorted, newest first; the contents are fetched one by one.
    let mut names = connection.prepare(queries.part_ids)?;
    let mut one = connection.prepare(queries.part)?;
    let mut rows = names.query(params![native_id])?;
    while !wanted.is_empty()
        && let Some(row) = rows.next()?
    {
        let part: String = row.get(0)?;
        let mut found = one.query(params![part])?;
        if let Some(row) = found.next()? {
            let (message_data, part_data) = (row.get_ref(0)?.as_bytes()?, row.get_ref(1)?.as_bytes()?);
            agent.remove_found_in_row(&Row { part: &part, message_data, part_data, since_ms }, wanted);
        }
    }
    Ok(())
}

fn open(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn failed(database: &Path) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
    move |error| StoreError::io(database.to_string_lossy())(io::Error::other(error))
}

/// Calls `each` with every row of a conversation after `after`, until `each` returns false. `after` is then the last
/// row that it took. The flag: whether the row belongs to the newest message.
pub fn rows_after<E: From<StoreError>>(
    queries: &Queries,
    database: &Path,
    native_id: &str,
    after: &mut String,
    mut each: impl FnMut(&RecordedRow<'_>, bool) -> Result<bool, E>,
) -> Result<(), E> {
    named_rows_after(queries, database, native_id, after, |_, row, is_newest| each(row, is_newest))
}

/// The same, with the id of each row.
pub fn named_rows_after<E: From<StoreError>>(
    queries: &Queries,
    database: &Path,
    native_id: &str,
    after: &mut String,
    mut each: impl FnMut(&str, &RecordedRow<'_>, bool) -> Result<bool, E>,
) -> Result<(), E> {
    let failed = failed(database);
    let connection = open(database).map_err(&failed)?;
    // Both queries read one state of the database. Otherwise a message that begins in between is not the newest, counts as
    // complete, and its text is never read.
    let snapshot = connection.unchecked_transaction().map_err(&failed)?;
    let newest: Option<String> =
        snapshot.query_row(queries.newest_message, params![native_id], |row| row.get(0)).optional().map_err(&failed)?;
    let mut some = snapshot.prepare(queries.parts_after).map_err(&failed)?;
    let mut rows = some.query(params![native_id, after.clone()]).map_err(&failed)?;
    while let Some(row) = rows.next().map_err(&failed)? {
        let (id, message): (String, String) = (row.get(0).map_err(&failed)?, row.get(1).map_err(&failed)?);
        let bytes = |column: usize| row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from);
        let (message_data, part_data) = (bytes(2).map_err(&failed)?, bytes(3).map_err(&failed)?);
        if !each(&id, &RecordedRow { message_data, part_data }, newest.as_ref() == Some(&message))? {
            return Ok(());
        }
        *after = id;
    }
    Ok(())
}

/// Calls `each` with those of these rows that are still there.
pub fn rows_named(
    queries: &Queries,
    database: &Path,
    ids: &[String],
    mut each: impl FnMut(&RecordedRow<'_>),
) -> Result<(), StoreError> {
    let failed = failed(database);
    let connection = open(database).map_err(&failed)?;
    let mut one = connection.prepare(queries.part).map_err(&failed)?;
    for id in ids {
        let mut found = one.query(params![id]).map_err(&failed)?;
        if let Some(row) = found.next().map_err(&failed)? {
            let bytes = |column: usize| row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from);
            let (message_data, part_data) = (bytes(0).map_err(&failed)?, bytes(1).map_err(&failed)?);
            each(&RecordedRow { message_data, part_data });
        }
    }
    Ok(())
}

/// The row after which a conversation has this many rows. `None` when it has no more than that; then the number is how
/// many it has.
pub fn row_before_end(
    queries: &Queries,
    database: &Path,
    native_id: &str,
    count: u64,
) -> Result<(Option<String>, u64), StoreError> {
    let failed = failed(database);
    let connection = open(database).map_err(&failed)?;
    let offset = i64::try_from(count).unwrap_or(i64::MAX);
    let before = connection
        .query_row(queries.part_before_end, params![native_id, offset], |row| row.get(0))
        .optional()
        .map_err(&failed)?;
    if before.is_some() {
        return Ok((before, count));
    }
    let all: i64 = connection.query_row(queries.count, params![native_id], |row| row.get(0)).map_err(&failed)?;
    Ok((None, u64::try_from(all).unwrap_or(0)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn agent() -> &'static dyn Agent {
        ostler_agents::find("opencode").unwrap()
    }

    fn marks(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| agent().mark("", text)).collect()
    }

    #[test]
    fn what_another_process_has_not_yet_moved_out_of_its_log_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let writer = Connection::open(&path).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE message (id text PRIMARY KEY, session_id text, data text);
                 CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);
                 INSERT INTO message VALUES ('m1', 's', '{\"role\":\"user\",\"time\":{\"created\":5}}');
                 INSERT INTO part VALUES ('p1', 'm1', 's', '{\"type\":\"text\",\"text\":\"one\"}');",
            )
            .unwrap();
        assert!(folder.path().join("opencode.db-wal").metadata().unwrap().len() > 0);
        assert!(holds(agent(), &path, "s", 0, &marks(&["one"])).unwrap());
        assert!(!holds(agent(), &path, "s", 0, &marks(&["one", "two"])).unwrap());
        assert!(holds(agent(), &path, "s", 5, &marks(&["one"])).unwrap());
        assert!(!holds(agent(), &path, "s", 6, &marks(&["one"])).unwrap(), "an older one of the same words");
        assert!(!holds(agent(), &path, "another", 0, &marks(&["one"])).unwrap());
        drop(writer);
        assert!(holds(agent(), &path, "s", 0, &marks(&["one"])).unwrap());
    }

    #[test]
    fn no_database_holds_nothing_and_one_of_another_make_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!holds(agent(), &folder.path().join("none.db"), "s", 0, &marks(&["one"])).unwrap());
        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        assert!(holds(agent(), &other, "s", 0, &marks(&["one"])).is_err());
        std::fs::write(&other, [b'x'; 5000]).unwrap();
        assert!(holds(agent(), &other, "s", 0, &marks(&["one"])).is_err());
    }
}
