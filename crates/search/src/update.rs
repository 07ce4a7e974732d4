//! Brings the index up to date: finds out what has changed since the last search, and reads only that.
//!
//! * A transcript grows at its end; it is read from where the last update stopped. One that was replaced, has become shorter or has
//!   changed before that place is read again from its beginning. One that is gone leaves the index.
//! * What was read goes into the index in large steps, each of them whole: positions and passages together. A process
//!   that is killed loses the step it was at, and the next update reads that again.

use crate::database::Folder;
use crate::discover::{self, Found, Stamp};
use crate::error::SearchError;
use crate::lines::Lines;
use crate::message::{Message, Role};
use crate::passages::{Builder, Passage, Place};
use crate::{Progress, rows, sessions};
use ostler_agents::{Agent, Variable};
use ostler_store::home::Home;
use ostler_sys::pause::{self, Point};
use rusqlite::{Connection, Statement, params};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much of a file is read at once.
const PIECE: usize = 512 * 1024;
/// What is collected in memory before it goes into the index, in bytes.
const BATCH: usize = 24 * 1024 * 1024;
/// Of a longer transcript only the end is read: a file of this size is not a conversation that a person remembers, and must
/// not hold up the search for those that are.
const LONGEST_FILE: i64 = 256 * 1024 * 1024;
/// From so many bytes on, an update does not wait for the disk at each step.
const MUCH: u64 = 8 * 1024 * 1024;
/// So many lines at the beginning are looked at for the folder of a conversation.
const LINES_FOR_FOLDER: usize = 40;
/// The title of a conversation has so many characters at most.
const TITLE: usize = 120;
/// No path is longer.
const LONGEST_PATH: u64 = 8 * 1024;
/// So many bytes before the place where an update stopped must be the same at the next.
const TAIL: usize = 64;

/// What a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A transcript in a file.
    File,
    /// A conversation in a database.
    Database,
    /// The records of a session, where no transcript is found.
    Session,
}

impl Kind {
    pub fn number(self) -> i64 {
        match self {
            Kind::File => 0,
            Kind::Database => 1,
            Kind::Session => 2,
        }
    }

    pub fn of_number(number: i64) -> Option<Kind> {
        [Kind::File, Kind::Database, Kind::Session].into_iter().find(|kind| kind.number() == number)
    }
}

/// One conversation, and how far it has been read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub id: i64,
    /// The path of a file; of a database the path and the conversation; the id of a session.
    pub key: String,
    pub kind: Kind,
    pub agent: String,
    pub native_id: Option<String>,
    pub cwd: Option<String>,
    pub title: Option<String>,
    pub stamp: Stamp,
    /// Behind the last whole line.
    pub position: i64,
    /// The last row that was read; of a file, how far a line was read that is too long, and what stood before `position`.
    pub mark: Option<String>,
}

const PUT_SOURCE: &str = "
INSERT INTO sources (id, key, kind, agent, native_id, cwd, title, inode, size, changed, position, mark)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (id) DO UPDATE SET native_id = ?5, cwd = ?6, title = ?7, inode = ?8, size = ?9, changed = ?10, position = ?11, mark = ?12";
const PUT_PASSAGE: &str =
    "INSERT INTO passages (id, source, role, places) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING";
const PUT_WORDS: &str = "INSERT INTO words (rowid, text) VALUES (?1, ?2)";

impl Source {
    pub fn new(id: i64, key: String, kind: Kind, agent: &str) -> Source {
        Source {
            id,
            key,
            kind,
            agent: agent.to_owned(),
            native_id: None,
            cwd: None,
            title: None,
            stamp: Stamp::default(),
            position: 0,
            mark: None,
        }
    }

    /// The title is what a person said first.
    pub fn note_title(&mut self, message: &Message) {
        if self.title.is_none() && message.role == Role::User {
            let line = message.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            self.title = Some(ostler_screen::printable(line).chars().take(TITLE).collect());
        }
    }

    fn put(&self, insert: &mut Statement<'_>) -> rusqlite::Result<()> {
        insert
            .execute(params![
                self.id,
                self.key,
                self.kind.number(),
                self.agent,
                self.native_id,
                self.cwd,
                self.title,
                self.stamp.inode,
                self.stamp.size,
                self.stamp.changed,
                self.position,
                self.mark
            ])
            .map(drop)
    }
}

/// What an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Updated {
    /// Whether conversations or sessions have come or gone.
    pub membership: bool,
}

/// An update at work.
pub(crate) struct Update<'a> {
    pub connection: &'a mut Connection,
    folder: &'a Folder,
    passages: Vec<Passage>,
    collected: usize,
    changed: Vec<Source>,
    next_source: i64,
    done: Progress,
    tell: &'a mut dyn FnMut(Progress),
    much: bool,
    pub updated: Updated,
}

/// Brings the index up to date. The caller has the lock.
pub(crate) fn update(
    connection: &mut Connection,
    folder: &Folder,
    home: &Home,
    variable: Variable<'_>,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), SearchError> {
    let next_source = connection.query_row("SELECT coalesce(max(id), 0) + 1 FROM sources", [], |row| row.get(0))?;
    let mut update = Update {
        connection,
        folder,
        passages: Vec::new(),
        collected: 0,
        changed: Vec::new(),
        next_source,
        done: Progress::default(),
        tell,
        much: false,
        updated: Updated::default(),
    };
    update.files(variable)?;
    rows::update(&mut update, variable)?;
    sessions::update(&mut update, home)?;
    update.flush()?;
    if update.much {
        update.folder.end_much(update.connection)?;
    }
    Ok(())
}

impl Update<'_> {
    pub fn new_source(&mut self, key: String, kind: Kind, agent: &str) -> Source {
        self.next_source += 1;
        self.updated.membership = true;
        Source::new(self.next_source - 1, key, kind, agent)
    }

    /// So many bytes are to be read, more than was known before.
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

    /// Reads what has changed in the transcripts that are files.
    fn files(&mut self, variable: Variable<'_>) -> Result<(), SearchError> {
        let mut known = self.known(Kind::File)?;
        let mut changed: Vec<(Found, Option<i64>)> = Vec::new();
        for found in discover::files(variable) {
            match known.remove(&found.path) {
                Some((_, stamp)) if stamp == found.stamp => {}
                Some((id, _)) => changed.push((found, Some(id))),
                None => changed.push((found, None)),
            }
        }
        for (id, _) in known.into_values() {
            self.forget(id)?;
        }
        // The newest first: they are what another search, meanwhile, most likely looks for.
        changed.sort_by_key(|(found, _)| std::cmp::Reverse(found.stamp.changed));
        let mut bytes = 0;
        for (found, id) in &changed {
            let position = match id {
                Some(id) => self.source(*id)?.map_or(0, |source| source.position),
                None => 0,
            };
            bytes += u64::try_from(found.stamp.size - position).unwrap_or(0);
        }
        self.expect(bytes)?;
        for (found, id) in changed {
            self.file(&found, id)?;
        }
        Ok(())
    }

    /// Sources of a kind by their keys, with their numbers and stamps.
    pub fn known(&self, kind: Kind) -> Result<HashMap<String, (i64, Stamp)>, SearchError> {
        let mut rows = self.connection.prepare("SELECT key, id, inode, size, changed FROM sources WHERE kind = ?1")?;
        let known = rows.query_map([kind.number()], |row| {
            let stamp = Stamp { inode: row.get(2)?, size: row.get(3)?, changed: row.get(4)? };
            Ok((row.get(0)?, (row.get(1)?, stamp)))
        })?;
        Ok(known.collect::<rusqlite::Result<HashMap<_, _>>>()?)
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

    /// One transcript. What cannot be read now is tried again by the next update that finds it changed.
    fn file(&mut self, found: &Found, id: Option<i64>) -> Result<(), SearchError> {
        let Some(file) = discover::open(&found.path) else { return Ok(()) };
        let known = match id {
            Some(id) => self.source(id)?,
            None => None,
        };
        let mut source = match known {
            Some(source) if goes_on(&file, &source, found.stamp) => source,
            Some(source) => {
                self.forget(source.id)?;
                let fresh = self.new_source(source.key, Kind::File, &source.agent);
                Source { native_id: source.native_id, cwd: source.cwd, ..fresh }
            }
            None => {
                let Some(native_id) = discover::conversation(found.agent, &found.path, &file) else { return Ok(()) };
                let cwd = found.agent.file_with_cwd(Path::new(&found.path)).and_then(|file| only_line(&file));
                let fresh = self.new_source(found.path.clone(), Kind::File, found.agent.name());
                Source { native_id: Some(native_id), cwd, ..fresh }
            }
        };
        if source.position == 0 && found.stamp.size > LONGEST_FILE {
            source.position = found.stamp.size - LONGEST_FILE;
        }
        source.stamp = found.stamp;
        self.read(found.agent, &file, &mut source)?;
        self.changed.push(source);
        Ok(())
    }

    /// Reads a transcript from where it was read last to its present end.
    fn read(&mut self, agent: &dyn Agent, file: &File, source: &mut Source) -> Result<(), SearchError> {
        let Some(mut recording) = agent.recording() else { return Ok(()) };
        // In which order lines belong does not matter here.
        recording.begin_in_the_middle();
        let mut builder = Builder::new(source.stamp.changed_ms());
        let mut lines = begin(source);
        let end = u64::try_from(source.stamp.size).unwrap_or(0);
        let mut items = Vec::new();
        let mut folders = Folders::new(agent, source);
        let mut buffer = vec![0; PIECE];
        while lines.reached() < end {
            let room = usize::try_from(end - lines.reached()).unwrap_or(PIECE).min(PIECE);
            let count = match file.read_at(&mut buffer[..room], lines.reached()) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Part of a damaged disk, perhaps; what was read stays.
                Err(_) => break,
            };
            let passages = &mut self.passages;
            let before = passages.len();
            lines.feed(&buffer[..count], |line, start| {
                // Rubbish is not worth a closer look.
                if line.first() != Some(&b'{') {
                    return;
                }
                folders.look(line);
                recording.line(line, &mut items);
                let place = Place::Line { start, length: line.len() as u64 };
                for message in items.drain(..).filter_map(Message::of_recorded) {
                    source.note_title(&message);
                    builder.add(source.id, message, &place, passages);
                }
            });
            self.collected += passages[before..].iter().map(|passage| passage.words.len()).sum::<usize>();
            self.read_bytes(count as u64);
            if self.collected > BATCH {
                builder.close(source.id, &mut self.passages);
                source.cwd = folders.best();
                stop_at(file, source, &lines);
                self.changed.push(source.clone());
                self.flush()?;
            }
        }
        let before = self.passages.len();
        builder.close(source.id, &mut self.passages);
        self.collected += self.passages[before..].iter().map(|passage| passage.words.len()).sum::<usize>();
        source.cwd = folders.best();
        stop_at(file, source, &lines);
        if self.collected > BATCH {
            self.changed.push(source.clone());
            self.flush()?;
        }
        Ok(())
    }

    /// A message that did not come from a file of lines.
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

    /// All that is known of a source now has been added.
    pub fn close(&mut self, source: Source, mut builder: Builder) -> Result<(), SearchError> {
        builder.close(source.id, &mut self.passages);
        self.changed.push(source);
        if self.collected > BATCH { self.flush() } else { Ok(()) }
    }

    /// A source leaves the index.
    pub fn forget(&mut self, id: i64) -> Result<(), SearchError> {
        self.updated.membership = true;
        let transaction = self.connection.transaction()?;
        transaction.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE source = ?1)", [id])?;
        transaction.execute("DELETE FROM passages WHERE source = ?1", [id])?;
        transaction.execute("DELETE FROM sources WHERE id = ?1", [id])?;
        Ok(transaction.commit()?)
    }

    /// Puts what was collected into the index, as one step.
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
        pause::at(Point::IndexFilled);
        transaction.commit()?;
        pause::at(Point::IndexWritten);
        self.collected = 0;
        Ok(())
    }
}

/// The ids of passages follow their times, so that the newest are found first and a question about the last week looks at no
/// older ones.
pub(crate) fn first_id(ms: i64) -> i64 {
    // The year 9999 at most, and not before 1970: a transcript may say anything.
    ms.clamp(0, 253_402_300_799_000) * 1024
}

/// Puts a passage into its table, and says which number it got.
fn put(insert: &mut Statement<'_>, passage: &Passage, last: i64) -> Result<i64, SearchError> {
    let places = serde_json::to_vec(&passage.places).unwrap_or_default();
    let mut id = first_id(passage.newest_ms).max(last.saturating_add(1));
    let mut step = 1;
    // Another passage of the same millisecond has its number.
    while insert.execute(params![id, passage.source, passage.role.number(), places])? == 0 {
        id += step;
        step *= 2;
    }
    Ok(id)
}

/// Whether a transcript that has changed has only grown since it was read.
fn goes_on(file: &File, source: &Source, now: Stamp) -> bool {
    let grown = now.inode == source.stamp.inode && now.size > source.stamp.size && now.size >= source.position;
    let tail = source.mark.as_deref().and_then(|mark| mark.split(' ').next()).unwrap_or_default();
    grown && tail == tail_before(file, source.position)
}

/// What stands before a position, as a number.
fn tail_before(file: &File, position: i64) -> String {
    let end = u64::try_from(position).unwrap_or(0);
    let start = end.saturating_sub(TAIL as u64);
    let mut tail = vec![0; usize::try_from(end - start).unwrap_or(0)];
    match file.read_exact_at(&mut tail, start) {
        Ok(()) => format!(
            "{:x}",
            tail.iter()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        ),
        Err(_) => String::new(),
    }
}

/// Where reading goes on: behind the last whole line, or within one that is too long.
fn begin(source: &Source) -> Lines {
    let position = u64::try_from(source.position).unwrap_or(0);
    let long = source.mark.as_deref().and_then(|mark| mark.split_once(' ')?.1.parse::<u64>().ok());
    match long {
        Some(reached) if reached > position => Lines::within(position, reached),
        Some(_) | None => Lines::from(position),
    }
}

/// Notes how far a file has been read.
fn stop_at(file: &File, source: &mut Source, lines: &Lines) {
    source.position = i64::try_from(lines.end()).unwrap_or(i64::MAX);
    let tail = tail_before(file, source.position);
    source.mark = Some(match lines.is_within() {
        true => format!("{tail} {}", lines.reached()),
        false => tail,
    });
}

/// The folder of a conversation: the first that it tells of and in which it was begun, else the first that it tells of.
struct Folders<'a> {
    agent: &'a dyn Agent,
    path: String,
    first: Option<String>,
    settled: bool,
    left: usize,
}

impl<'a> Folders<'a> {
    fn new(agent: &'a dyn Agent, source: &Source) -> Folders<'a> {
        let settled = source.cwd.is_some();
        Folders { agent, path: source.key.clone(), first: source.cwd.clone(), settled, left: LINES_FOR_FOLDER }
    }

    fn look(&mut self, line: &[u8]) {
        if self.settled || self.left == 0 {
            return;
        }
        self.left -= 1;
        let Some(cwd) = self.agent.cwd_in(line) else { return };
        if self.agent.was_begun_in(Path::new(&self.path), &cwd) {
            self.first = Some(cwd);
            self.settled = true;
        } else {
            self.first.get_or_insert(cwd);
        }
    }

    fn best(&self) -> Option<String> {
        self.first.clone()
    }
}

fn only_line(file: &Path) -> Option<String> {
    let mut line = String::new();
    discover::open(file.to_str()?)?.take(LONGEST_PATH).read_to_string(&mut line).ok()?;
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
}
