//! The sessions of ostler: which conversation each of them has, and the records of those whose transcript is not found
//! where their agent stores it (another home, an agent without transcripts, a transcript that is gone).

use crate::error::SearchError;
use crate::message::Message;
use crate::passages::{Builder, Place};
use crate::source::Kind;
use crate::update::Update;
use ostler_core::event::Event;
use ostler_store::folder::Folder;
use ostler_store::home::{Home, SessionsDir};
use ostler_store::{StoreError, journal};
use ostler_view::conversation::{Reader, Start};
use rusqlite::params;
use std::collections::{HashMap, HashSet};

/// For every known session, by its id, the stamp that shows whether it has changed.
type Known = HashMap<String, String>;

pub(crate) fn update(update: &mut Update<'_>, home: &Home) -> Result<(), SearchError> {
    // The sources that are already written decide for which sessions the records are read.
    update.flush()?;
    let mut known = known(update)?;
    let own = update.known_sessions()?;
    let mut changed = HashSet::new();
    for sessions in home.sessions_dirs(true)? {
        for &id in &sessions.ids {
            let name = id.as_str().to_owned();
            let Some(now) = stamp(&sessions, &name, own.contains_key(&name)) else { continue };
            if known.remove(&name).is_some_and(|before| before == now) {
                continue;
            }
            if let Ok(folder) = sessions.place(id).open() {
                note(update, &name, &now, &folder)?;
                changed.insert(name);
            }
        }
    }
    for gone in known.into_keys() {
        update.connection.execute("DELETE FROM sessions WHERE id = ?1", [&gone])?;
        update.connection.execute("DELETE FROM conversations WHERE session = ?1", [&gone])?;
        update.updated.membership = true;
    }
    if !update.updated.membership && changed.is_empty() {
        return Ok(());
    }
    records(update, home, &changed)
}

fn known(update: &Update<'_>) -> Result<Known, SearchError> {
    let mut rows = update.connection.prepare("SELECT id, stamp FROM sessions")?;
    let known = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(known.collect::<rusqlite::Result<Known>>()?)
}

/// A stamp that shows whether a session has changed: its journal, and, where its own records are read, the output of
/// its newest run. An archived session does not change, but it may have been restored, continued and archived again
/// since the last look; it is a folder or one file.
fn stamp(sessions: &SessionsDir, id: &str, own: bool) -> Option<String> {
    if sessions.archived {
        let journal = sessions.dir.stat(&format!("{id}/journal.jsonl")).ok().flatten();
        return Some(format!("archived {:?} {journal:?}", sessions.dir.stat(id).ok()??));
    }
    let journal = sessions.dir.stat(&format!("{id}/journal.jsonl")).ok()?;
    let mut stamp = format!("{journal:?}");
    if own {
        let newest =
            (1..).take_while(|run| sessions.dir.stat(&format!("{id}/runs/{run}/out")).is_ok_and(|out| out.is_some()));
        if let Some(run) = newest.last() {
            stamp.push_str(&format!("{:?}", sessions.dir.stat(&format!("{id}/runs/{run}/out"))));
        }
    }
    Some(stamp)
}

/// Records which conversations a session has had.
fn note(update: &mut Update<'_>, id: &str, stamp: &str, folder: &Folder) -> Result<(), SearchError> {
    // A damaged session has no conversations; it is looked at again when it has changed.
    let conversations = conversations(folder).unwrap_or_default();
    let transaction = update.connection.transaction()?;
    transaction.execute("DELETE FROM conversations WHERE session = ?1", [id])?;
    for (agent, native_id) in conversations {
        transaction
            .execute("INSERT OR IGNORE INTO conversations VALUES (?1, ?2, ?3)", params![agent, native_id, id])?;
    }
    transaction
        .execute("INSERT INTO sessions VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET stamp = ?2", [id, stamp])?;
    Ok(transaction.commit()?)
}

/// Every conversation that a session has had, with the agent that stores it.
fn conversations(folder: &Folder) -> Result<HashSet<(&'static str, String)>, StoreError> {
    let session = folder.session()?;
    let told = journal::read(folder.dir(), 0)?.entries;
    let mut found = HashSet::new();
    for number in 1..=folder.newest_run()? {
        let record = folder.run(number)?.record()?;
        let Some(agent) = ostler_agents::keeps_conversation(&session, &record) else { continue };
        let noted = told.iter().filter(|entry| entry.run == number).filter_map(|entry| match &entry.event {
            Event::Native { id } => Some(id.clone()),
            _ => None,
        });
        found.extend(record.native_id.into_iter().chain(noted).map(|id| (agent.name(), id)));
    }
    Ok(found)
}

/// The sessions without a conversation that is found where its agent stores it.
const WITHOUT_TRANSCRIPT: &str = "
SELECT id FROM sessions WHERE NOT EXISTS (
  SELECT 1 FROM conversations JOIN sources ON sources.agent = conversations.agent AND sources.native_id = conversations.native_id
  WHERE conversations.session = sessions.id AND sources.kind < 2)";

/// Reads the records of the sessions whose transcripts are not found, and removes the records of other sessions from
/// the index.
fn records(update: &mut Update<'_>, home: &Home, changed: &HashSet<String>) -> Result<(), SearchError> {
    let mut known = update.known_sessions()?;
    let wanted: Vec<String> = {
        let mut rows = update.connection.prepare(WITHOUT_TRANSCRIPT)?;
        let ids = rows.query_map([], |row| row.get(0))?;
        ids.collect::<rusqlite::Result<Vec<String>>>()?
    };
    for id in wanted {
        match known.remove(&id) {
            Some(_) if !changed.contains(&id) => continue,
            Some((source, _)) => update.forget(source)?,
            None => {}
        }
        let place = ostler_core::id::SessionId::parse(&id).map(|id| home.place_of(id)).transpose()?.flatten();
        if let Some(Ok(folder)) = place.map(|place| place.open()) {
            record(update, &id, folder)?;
        }
    }
    for (source, _) in known.into_values() {
        update.forget(source)?;
    }
    Ok(())
}

/// Reads the records of one session, as far as they can be read.
fn record(update: &mut Update<'_>, id: &str, folder: Folder) -> Result<(), SearchError> {
    let Ok(session) = folder.session() else { return Ok(()) };
    let mut source = update.new_source(id.to_owned(), Kind::Session, &session.agent);
    source.cwd = Some(session.cwd.clone());
    let mut builder = Builder::new(session.created.as_millisecond());
    let mut reader = Reader::owning(folder, Start { run: 1, position: 0 });
    let read = reader.read_timed(|item, at| match Message::of_item(item, at) {
        Some(message) => update.add(&mut source, &mut builder, message, &Place::Text),
        None => Ok::<(), SearchError>(()),
    });
    match read {
        Ok(()) | Err(SearchError::Store(_)) => {}
        Err(error) => return Err(error),
    }
    update.close(source, builder)
}
