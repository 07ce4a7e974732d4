//! Conversations that an agent stores in a database. The agent defines the SQL to read it; a row is a part of a
//! message.

use crate::discover::{self, Stamp};
use crate::error::SearchError;
use crate::message::Message;
use crate::passages::{Builder, Place};
use crate::source::Kind;
use crate::update::Update;
use ostler_agents::{Agent, Variable};
use ostler_view::database::{self, Stored};
use std::path::Path;

/// The key of a conversation in a database.
pub(crate) fn key(database: &Path, native_id: &str) -> String {
    format!("{}\n{native_id}", database.display())
}

/// The database of such a key.
pub(crate) fn database_of(key: &str) -> Option<&Path> {
    key.split_once('\n').map(|(database, _)| Path::new(database))
}

/// Reads what has changed in the databases of all agents.
pub(crate) fn update(update: &mut Update<'_>, variable: Variable<'_>) -> Result<(), SearchError> {
    let mut gone = update.databases()?;
    for (agent, path) in discover::databases(variable) {
        let Some(now) = stamp(&path) else { continue };
        let name = path.to_string_lossy().into_owned();
        if gone.remove(&name).flatten().as_ref() == Some(&now) {
            continue;
        }
        let Some(queries) = agent.queries() else { continue };
        let conversations = database::conversations(queries, &path);
        // Damaged, of another version, or in use just now: what the index has of it is kept.
        let Ok(conversations) = conversations.map_err(|error| update.unread.add(&path, &error)) else { continue };
        update.begin_database(&name)?;
        let mut known = update.known_of_database(&name)?;
        for stored in conversations {
            let found = known.remove(&key(&path, &stored.native_id));
            let is_same = found.is_some_and(|(_, stamp)| stamp.changed == changed(&stored) && stamp.size == 0);
            if !is_same {
                conversation(update, agent, &path, &stored, found.map(|(id, _)| id))?;
            }
        }
        for (id, _) in known.into_values() {
            update.forget(id)?;
        }
        update.flush()?;
        update.end_database(&name, &now)?;
    }
    // Another home, perhaps, or a disk that is not mounted now.
    for path in gone.into_keys() {
        update.begin_database(&path)?;
        for (id, _) in update.known_of_database(&path)?.into_values() {
            update.forget(id)?;
        }
        update.forget_database(&path)?;
    }
    Ok(())
}

/// A stamp that changes when anything is written to the file, or to the log beside it.
fn stamp(path: &Path) -> Option<String> {
    let file = Stamp::of_file(path)?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Some(format!("{file:?} {:?}", Stamp::of_file(Path::new(&log))))
}

/// When it was updated, in nanoseconds since 1970.
fn changed(stored: &Stored) -> i64 {
    stored.updated_ms.saturating_mul(1_000_000)
}

/// Reads the rows of one conversation that are new. A row that is still growing is left for the next update; then
/// `size` is not 0.
fn conversation(
    update: &mut Update<'_>,
    agent: &'static dyn Agent,
    path: &Path,
    stored: &Stored,
    known: Option<i64>,
) -> Result<(), SearchError> {
    let (Some(queries), Some(mut recording)) = (agent.queries(), agent.recording()) else { return Ok(()) };
    recording.begin_in_the_middle();
    let known = match known {
        Some(id) => update.source(id)?,
        None => None,
    };
    let mut source = match known {
        Some(source) => source,
        None => update.new_source(key(path, &stored.native_id), Kind::Database, agent.name()),
    };
    source.native_id = Some(stored.native_id.clone());
    source.cwd = Some(stored.cwd.clone());
    source.stamp = Stamp { inode: 0, size: 0, changed: changed(stored) };
    let mut builder = Builder::new(stored.updated_ms);
    let mut row_id = source.mark.clone().unwrap_or_default();
    let mut items = Vec::new();
    let mut unfinished = false;
    let read = database::named_rows_after(queries, path, &stored.native_id, &mut row_id, |id, row, is_newest| {
        if is_newest && !recording.is_whole(row) {
            unfinished = true;
            return Ok(false);
        }
        recording.row(row, &mut items);
        let bytes = (row.message_data.len() + row.part_data.len()) as u64;
        update.expect(bytes)?;
        update.read_bytes(bytes);
        for message in items.drain(..).filter_map(Message::of_recorded) {
            update.add(&mut source, &mut builder, message, &Place::Row(id))?;
        }
        Ok::<bool, SearchError>(true)
    });
    match read {
        Ok(()) => {}
        // The error is in the agent's database, not in the index. What was read counts, and the rest is read next time.
        Err(SearchError::Store(_)) => unfinished = true,
        Err(error) => return Err(error),
    }
    source.stamp.size = i64::from(unfinished);
    source.mark = Some(row_id);
    update.close(source, builder)
}
