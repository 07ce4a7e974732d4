//! Brings the index up to date: finds out what has changed since the last search, and reads only that.
//!
//! * A transcript grows at its end; it is read from where the last update stopped. A transcript that was replaced, has
//!   become shorter or has changed before that place is read again from its beginning. A transcript that is gone is
//!   removed from the index.
//! * What was read is written to the index in large steps, each in one transaction with positions and passages
//!   together. A process that is killed loses its current step, and the next update reads that part again.

use crate::database::{self, Folder};
use crate::discover::Stamp;
use crate::error::SearchError;
use crate::message::Message;
use crate::passages::{Builder, Passage, Place};
use crate::source::{Kind, PUT_SOURCE, Source};
use crate::unread::Collected;
use crate::{Progress, rows, sessions};
use ostler_agents::Variable;
use ostler_store::home::Home;
use ostler_sys::pause_points::{self, Point};
use rusqlite::{Connection, Statement, params};

/// How much is collected in memory before it is written to the index, in bytes.
pub(crate) const STEP: usize = 24 * 1024 * 1024;
/// From this many bytes on, an update does not wait for the disk at each step.
const MUCH: u64 = 8 * 1024 * 1024;

const PUT_PASSAGE: &str =
    "INSERT INTO passages (id, source, role, places) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING";
const PUT_WORDS: &str = "INSERT INTO words (rowid, text) VALUES (?1, ?2)";

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Updated {
    /// Whether conversations or sessions were added or removed.
    pub membership: bool,
}

/// An update at work.
pub(crate) struct Update<'a> {
    pub connection: &'a mut Connection,
    folder: &'a Folder,
    pub passages: Vec<Passage>,
    /// How many bytes of words these passages have.
    pub collected: usize,
    /// The sources whose rows change with the next step.
    pub changed: Vec<Source>,
    next_source: i64,
    done: Progress,
    pub unread: &'a mut Collected,
    tell: &'a mut dyn FnMut(Progress),
    much: bool,
    /// How much is collected before it is written to the index.
    pub step: usize,
    pub updated: Updated,
}

/// Brings the index up to date. The caller has the lock.
pub(crate) fn update(
    connection: &mut Connection,
    folder: &Folder,
    home: &Home,
    variable: Variable<'_>,
    unread: &mut Collected,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), SearchError> {
    in_steps(STEP, connection, folder, home, variable, unread, tell)
}

pub(crate) fn in_steps(
    step: usize,
    connection: &mut Connection,
    folder: &Folder,
    home: &Home,
    variable: Variable<'_>,
    unread: &mut Collected,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), SearchError> {
    let next_source = connection.query_row("SELECT coalesce(max(id), 0) + 1 FROM sources", [], |row| row.get(0))?;
    let is_first = next_source == 1;
    let mut update = Update {
        connection,
        folder,
        passages: Vec::new(),
        collected: 0,
        changed: Vec::new(),
        next_source,
        done: Progress::default(),
        unread,
        tell,
        much: false,
        step,
        updated: Updated::default(),
    };
    update.files(variable)?;
    rows::update(&mut update, variable)?;
    sessions::update(&mut update, home)?;
    update.flush()?;
    if update.much {
        if is_first {
            // Merges the lists of words into one. Otherwise an update for a single message has to merge long lists now
            // and then.
            update.connection.execute("INSERT INTO words (words) VALUES ('optimize')", [])?;
        }
        update.folder.end_much(update.connection)?;
    }
    database::note_whole(update.connection)?;
    folder.shorten_log(update.connection)
}

impl Update<'_> {
    pub fn new_source(&mut self, key: String, kind: Kind, agent: &str) -> Source {
        self.next_source += 1;
        self.updated.membership = true;
        Source::new(self.next_source - 1, key, kind, agent)
    }

    /// Adds bytes that are to be read to the total.
    pub fn expect(&mut self, bytes: u64) -> Result<(), SearchError> {
        self.done.all += bytes;
        if self.done.all > MUCH && !self.much {
            self.much = true;
            self.folder.begin_much(self.connection)?;
        }
        Ok(())
    }

    pub fn read_bytes(&mut self, bytes: u64) {
        self.done.read += bytes;
        (self.tell)(self.done);
    }

    pub fn source(&self, id: i64) -> Result<Option<Source>, SearchError> {
        let mut rows = self.connection.prepare(
            "SELECT id, key, kind, agent, native_id, cwd, title, inode, size, changed, position, mark FROM sources WHERE id = ?1",
        )?;
        let mut rows = rows.query([id])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(Source {
            id: row.get(0)?,
            key: row.get(1)?,
            kind: Kind::of_number(row.get(2)?).unwrap_or(Kind::File),
            agent: row.get(3)?,
            native_id: row.get(4)?,
            cwd: row.get(5)?,
            title: row.get(6)?,
            stamp: Stamp { inode: row.get(7)?, size: row.get(8)?, changed: row.get(9)? },
            position: row.get(10)?,
            mark: row.get(11)?,
        }))
    }

    /// Adds a message that did not come from a file of lines.
    pub fn add(
        &mut self,
        source: &mut Source,
        builder: &mut Builder,
        message: Message,
        place: &Place<'_>,
    ) -> Result<(), SearchError> {
        source.note_title(&message);
        let before = self.passages.len();
        builder.add(source.id, message, place, &mut self.passages);
        self.collected += self.passages[before..].iter().map(|passage| passage.words.len()).sum::<usize>();
        Ok(())
    }

    /// Called when all messages of a source were added.
    pub fn close(&mut self, source: Source, mut builder: Builder) -> Result<(), SearchError> {
        builder.close(source.id, &mut self.passages);
        self.changed.push(source);
        if self.collected > self.step { self.flush() } else { Ok(()) }
    }

    /// Removes a source from the index.
    pub fn forget(&mut self, id: i64) -> Result<(), SearchError> {
        self.updated.membership = true;
        let transaction = self.connection.transaction()?;
        transaction.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE source = ?1)", [id])?;
        transaction.execute("DELETE FROM passages WHERE source = ?1", [id])?;
        transaction.execute("DELETE FROM sources WHERE id = ?1", [id])?;
        Ok(transaction.commit()?)
    }

    /// Writes what was collected to the index, as one step.
    pub fn flush(&mut self) -> Result<(), SearchError> {
        if self.passages.is_empty() && self.changed.is_empty() {
            return Ok(());
        }
        self.passages.sort_by_key(|passage| passage.newest_ms);
        let transaction = self.connection.transaction()?;
        let mut put_source = transaction.prepare(PUT_SOURCE)?;
        for source in self.changed.drain(..) {
            source.put(&mut put_source)?;
        }
        drop(put_source);
        let (mut put_passage, mut put_words) = (transaction.prepare(PUT_PASSAGE)?, transaction.prepare(PUT_WORDS)?);
        let mut last = i64::MIN;
        for passage in self.passages.drain(..) {
            last = put(&mut put_passage, &passage, last)?;
            put_words.execute(params![last, passage.words])?;
        }
        drop((put_passage, put_words));
        pause_points::at(Point::IndexFilled);
        transaction.commit()?;
        pause_points::at(Point::IndexWritten);
        self.collected = 0;
        Ok(())
    }
}

/// The ids of passages follow their times, so that the newest are found first, and a query about the last week does not
/// look at older ones.
pub(crate) fn first_id(ms: i64) -> i64 {
    // The year 9999 at most, and not before 1970: a transcript may contain any time.
    ms.clamp(0, 253_402_300_799_000) * 1024
}

/// Puts a passage into its table, and returns its id.
fn put(insert: &mut Statement<'_>, passage: &Passage, last: i64) -> Result<i64, SearchError> {
    let places = serde_json::to_vec(&passage.places).unwrap_or_default();
    let mut id = first_id(passage.newest_ms).max(last.saturating_add(1));
    let mut step = 1;
    // Another passage of the same millisecond has this id already.
    while insert.execute(params![id, passage.source, passage.role.number(), places])? == 0 {
        id += step;
        step *= 2;
    }
    Ok(id)
}
