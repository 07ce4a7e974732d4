//! A conversation from the agent's own transcript, for `logs` of an agent that draws: over the files of all its runs,
//! or the rows of its database. No copy is kept; the transcript is read where the agent stores it.

use crate::conversation::Item;
use crate::{database, fold};
use jiff::Timestamp;
use memchr::memrchr;
use ostler_agents::Agent;
use ostler_agents::lines::{Line, Lines};
use ostler_agents::recorded::{Recorded, Recording, What};
use ostler_agents::stored::Queries;
use ostler_core::event::Event;
use ostler_core::fact::Fact;
use ostler_core::record::Mode;
use ostler_store::folder::Folder;
use ostler_store::{StoreError, journal};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How much of a file is read at once.
const PIECE: usize = 256 * 1024;

/// Where an agent that draws stores the conversation of a session.
pub struct Source {
    agent: &'static dyn Agent,
    kept: Kept,
}

enum Kept {
    /// In these files, in the order in which the agent began them: an agent may begin another conversation in the
    /// middle of a run.
    Files(Vec<PathBuf>),
    Rows {
        queries: &'static Queries,
        database: PathBuf,
        conversations: Vec<String>,
    },
}

impl Source {
    /// What is known of it now. `None`: the agent does not draw, or keeps no transcript that can be read, or nothing
    /// was said in it yet: agents make the file before the first message. `known`: what an earlier look has found.
    pub fn find(folder: &Folder, known: Option<&Source>) -> Result<Option<Source>, StoreError> {
        let newest = folder.newest_run()?;
        let session = folder.session()?;
        let Some(agent) = agent_that_draws(folder)? else {
            return Ok(None);
        };
        let (mut files, mut conversations) = (Vec::new(), Vec::new());
        let mut database = None;
        let told = journal::read(folder.dir(), 0)?.entries;
        for number in 1..=newest {
            let record = folder.run(number)?.record()?;
            push_new(&mut files, record.transcript.map(PathBuf::from));
            push_new(&mut conversations, record.native_id);
            database = record.database.map(PathBuf::from).or(database);
            for entry in told.iter().filter(|entry| entry.run == number) {
                match &entry.event {
                    Event::Transcript { path } => push_new(&mut files, Some(PathBuf::from(path))),
                    Event::Native { id } => push_new(&mut conversations, Some(id.clone())),
                    _ => {}
                }
            }
        }
        // What its keeper has not noted yet.
        let run = folder.run(newest)?;
        let state = fold::fold(folder, &run, &run.record()?, &session)?.state;
        push_new(&mut files, state.transcript.map(PathBuf::from));
        push_new(&mut conversations, state.native_id);
        let kept = match (database, agent.queries()) {
            (Some(database), Some(queries)) if !conversations.is_empty() && database.exists() => {
                Kept::Rows { queries, database, conversations }
            }
            (Some(_), _) => return Ok(None),
            (None, _) => Kept::Files(files),
        };
        let source = Source { agent, kept };
        let was_known = known.is_some_and(|known| known.is_same(&source));
        Ok(if was_known || source.has_begun()? { Some(source) } else { None })
    }

    /// Whether anything was said in it. Reads the beginning only.
    fn has_begun(&self) -> Result<bool, StoreError> {
        let Some(mut recording) = self.agent.recording() else {
            return Ok(false);
        };
        match &self.kept {
            Kept::Files(files) => {
                for path in files {
                    let Some(file) = open(path)? else { continue };
                    let mut items = Vec::new();
                    let read = read_file(&file, path, &mut 0, &mut Lines::from(0), |line| {
                        recording.line(line, &mut items);
                        if items.is_empty() { Ok(()) } else { Err(Stop::Found) }
                    });
                    match read {
                        Ok(()) => {}
                        Err(Stop::Found) => return Ok(true),
                        Err(Stop::Failed(error)) => return Err(error),
                    }
                }
                Ok(false)
            }
            Kept::Rows { queries, database, conversations } => {
                for conversation in conversations {
                    if database::row_before_end(queries, database, conversation, 0)?.0.is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The files to watch for more: the agent writes them without notifying us.
    #[must_use]
    pub fn written_files(&self) -> Vec<PathBuf> {
        match &self.kept {
            Kept::Files(files) => files.clone(),
            Kept::Rows { database, .. } => {
                let mut log = database.clone().into_os_string();
                log.push("-wal");
                vec![database.clone(), PathBuf::from(log)]
            }
        }
    }

    /// Whether a later look has found the same places.
    #[must_use]
    pub fn is_same(&self, other: &Source) -> bool {
        match (&self.kept, &other.kept) {
            (Kept::Files(one), Kept::Files(two)) => one == two,
            (Kept::Rows { conversations: one, .. }, Kept::Rows { conversations: two, .. }) => one == two,
            (Kept::Files(_), Kept::Rows { .. }) | (Kept::Rows { .. }, Kept::Files(_)) => false,
        }
    }
}

/// Whether the agent of this session draws and keeps transcripts that can be read, whether there is one yet or not.
pub fn is_kept(folder: &Folder) -> Result<bool, StoreError> {
    Ok(agent_that_draws(folder)?.is_some())
}

fn agent_that_draws(folder: &Folder) -> Result<Option<&'static dyn Agent>, StoreError> {
    let (session, record) = (folder.session()?, folder.run(folder.newest_run()?)?.record()?);
    let draws = record.plan.mode() == Mode::Terminal;
    let agent = ostler_agents::find_for(&session.agent, &record.plan);
    Ok(agent.filter(|agent| draws && agent.recording().is_some()))
}

/// Why a file is not read to its end.
enum Stop {
    Found,
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Failed(error)
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, one: Option<T>) {
    if let Some(one) = one
        && !list.contains(&one)
    {
        list.push(one);
    }
}

/// Reads the conversation in order, and then as it grows.
pub struct Reader {
    source: Source,
    recording: Box<dyn Recording>,
    /// Which file or conversation is being read.
    place: usize,
    lines: Lines,
    /// How far the file has been read.
    position: u64,
    /// The last row that was read.
    row: String,
    told: u64,
}

impl Reader {
    /// From the beginning.
    #[must_use]
    pub fn new(source: Source) -> Option<Reader> {
        let recording = source.agent.recording()?;
        Some(Reader { source, recording, place: 0, lines: Lines::from(0), position: 0, row: String::new(), told: 0 })
    }

    /// Begins again, so that about this much is read (bytes of files, or a row for each KiB), and returns whether that
    /// is all.
    pub fn rewind(&mut self, size: u64) -> Result<bool, StoreError> {
        self.recording =
            self.source.agent.recording().ok_or_else(|| StoreError::Missing { file: "transcript".to_owned() })?;
        (self.place, self.position, self.row, self.told) = (0, 0, String::new(), 0);
        self.lines = Lines::from(0);
        match &self.source.kept {
            Kept::Files(files) => {
                let mut left = size;
                for (place, path) in files.iter().enumerate().rev() {
                    let Some(file) = open(path)? else { continue };
                    let length = file.metadata().map_err(StoreError::io(path.to_string_lossy()))?.len();
                    if length > left {
                        let start = line_from(&file, length - left).map_err(StoreError::io(path.to_string_lossy()))?;
                        (self.place, self.position, self.lines) = (place, start, Lines::from(start));
                        self.recording.begin_in_the_middle();
                        return Ok(false);
                    }
                    left -= length;
                }
                Ok(true)
            }
            Kept::Rows { queries, database, conversations } => {
                let mut left = size / 1024;
                for (place, conversation) in conversations.iter().enumerate().rev() {
                    let (before, found) = database::row_before_end(queries, database, conversation, left)?;
                    if let Some(before) = before {
                        (self.place, self.row) = (place, before);
                        self.recording.begin_in_the_middle();
                        return Ok(false);
                    }
                    left = left.saturating_sub(found);
                }
                Ok(true)
            }
        }
    }

    /// A later look has found this source: the reader continues where it is.
    pub fn replace_source(&mut self, source: Source) {
        self.source = source;
    }

    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What has come since the last call. `ended`: nothing more will come, so incomplete messages are read as well.
    pub fn read_on<E: From<StoreError>>(
        &mut self,
        ended: bool,
        mut each: impl FnMut(Item, Option<Timestamp>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut told = self.told;
        let mut give = |items: &mut Vec<Recorded>| -> Result<(), E> {
            for Recorded { at, what } in items.drain(..) {
                let item = match what {
                    What::Told { text } => {
                        told += 1;
                        Item::Told { n: told, text }
                    }
                    What::Agent(fact) => Item::Agent(fact),
                };
                each(item, at)?;
            }
            Ok(())
        };
        let read = match &self.source.kept {
            Kept::Files(files) => {
                let mut items = Vec::new();
                loop {
                    let Some(path) = files.get(self.place) else { break Ok(()) };
                    if let Some(file) = open(path)? {
                        read_file(&file, path, &mut self.position, &mut self.lines, |line| {
                            self.recording.line(line, &mut items);
                            give(&mut items)
                        })?;
                    }
                    let last = self.place + 1 >= files.len();
                    if ended || !last {
                        self.recording.finish(&mut items);
                        give(&mut items)?;
                    }
                    if last {
                        break Ok(());
                    }
                    self.place += 1;
                    (self.position, self.lines) = (0, Lines::from(0));
                    if let Some(fresh) = self.source.agent.recording() {
                        self.recording = fresh;
                    }
                }
            }
            Kept::Rows { queries, database, conversations } => {
                let mut items = Vec::new();
                loop {
                    let Some(conversation) = conversations.get(self.place) else { break Ok(()) };
                    let last = self.place + 1 >= conversations.len();
                    let recording = &mut self.recording;
                    database::rows_after(
                        queries,
                        database,
                        conversation,
                        &mut self.row,
                        |row, is_newest_message| -> Result<bool, E> {
                            // Only the newest message may still be incomplete: one that was interrupted stays as it is,
                            // and later ones follow.
                            if last && !ended && is_newest_message && !recording.is_whole(row) {
                                return Ok(false);
                            }
                            recording.row(row, &mut items);
                            give(&mut items)?;
                            Ok(true)
                        },
                    )?;
                    if last {
                        break Ok(());
                    }
                    self.place += 1;
                    self.row.clear();
                }
            }
        };
        self.told = told;
        read
    }
}

fn open(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path.to_string_lossy())(error)),
    }
}

/// Whole lines from `position` to the present end. A file that has become shorter was written again, and is read from
/// its beginning.
fn read_file<E: From<StoreError>>(
    file: &File,
    path: &Path,
    position: &mut u64,
    lines: &mut Lines,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |error| StoreError::Io { file: path.to_string_lossy().into_owned(), error };
    let end = file.metadata().map_err(failed)?.len();
    if end < *position {
        (*position, *lines) = (0, Lines::from(0));
    }
    let mut buffer = vec![0; PIECE];
    let mut result = Ok(());
    while *position < end && result.is_ok() {
        match file.read_at(&mut buffer, *position) {
            Ok(0) => break,
            Ok(count) => {
                *position += count as u64;
                lines.feed(&buffer[..count], |line, _| match line {
                    Line::Whole(line) if result.is_ok() => result = each(line),
                    Line::Whole(_) | Line::TooLong { .. } => {}
                });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error).into()),
        }
    }
    result
}

/// Where the first line begins that begins after this position; the end, if there is none.
fn line_from(file: &File, position: u64) -> io::Result<u64> {
    let mut at = position;
    let mut buffer = vec![0; PIECE];
    loop {
        let count = file.read_at(&mut buffer, at)?;
        if count == 0 {
            return Ok(at);
        }
        if let Some(newline) = memchr::memchr(b'\n', &buffer[..count]) {
            return Ok(at + newline as u64 + 1);
        }
        at += count as u64;
    }
}

/// The last message in a part of a transcript, by either side: in the lines that end in `range`, read from their end.
pub fn last_message(agent: &dyn Agent, transcript: &File, range: Range<u64>) -> io::Result<Option<What>> {
    let mut end = range.end.min(transcript.metadata()?.len());
    let least = end.saturating_sub(LOOKED_AT);
    let mut piece = vec![0; PIECE];
    // What has been read of the line whose beginning is not found yet, and whether its end is in the range and was
    // read.
    let mut line: Vec<u8> = Vec::new();
    let mut is_whole = false;
    while end > least {
        let start = end.saturating_sub(PIECE as u64);
        let piece = &mut piece[..usize::try_from(end - start).map_err(io::Error::other)?];
        transcript.read_exact_at(piece, start)?;
        let mut rest = &piece[..];
        while let Some(newline) = memrchr(b'\n', rest) {
            line.splice(..0, rest[newline + 1..].iter().copied());
            if is_whole && let Some(found) = message_in(agent, &line) {
                return Ok(Some(found));
            }
            if start + (newline as u64) < range.start {
                return Ok(None);
            }
            line.clear();
            is_whole = true;
            rest = &rest[..newline];
        }
        line.splice(..0, rest.iter().copied());
        end = start;
    }
    Ok(if end == 0 && is_whole { message_in(agent, &line) } else { None })
}

fn message_in(agent: &dyn Agent, line: &[u8]) -> Option<What> {
    let mut items = Vec::new();
    let mut recording = agent.recording()?;
    recording.begin_in_the_middle();
    recording.line(line, &mut items);
    items.into_iter().rev().map(|item| item.what).find(|what| match what {
        What::Told { .. } | What::Agent(Fact::Said { .. }) => true,
        What::Agent(_) => false,
    })
}

/// How much of a transcript's end is searched for its last message.
const LOOKED_AT: u64 = 8 << 20;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::Write;

    fn said(text: &str) -> String {
        format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n")
    }

    #[test]
    fn the_last_message_of_a_part_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript");
        let filler = format!("{{\"type\":\"progress\",\"x\":\"{}\"}}\n", "y".repeat(PIECE));
        let text = [said("one"), filler.clone(), said("two"), filler, said("three")].concat();
        std::fs::write(&path, &text).unwrap();
        let file = File::open(&path).unwrap();
        let claude = ostler_agents::find("claude").unwrap();
        let found =
            |range: Range<usize>| match last_message(claude, &file, range.start as u64..range.end as u64).unwrap() {
                Some(What::Agent(Fact::Said { text })) => Some(text),
                Some(What::Agent(_) | What::Told { .. }) => None,
                None => None,
            };
        let (all, first) = (text.len(), said("one").len());
        assert_eq!(found(0..all).as_deref(), Some("three"));
        assert_eq!(found(0..all - 1).as_deref(), Some("two"), "a line without its end is none");
        assert_eq!(found(0..first).as_deref(), Some("one"));
        assert_eq!(found(0..first - 1), None);
        assert_eq!(found(first..first + PIECE), None, "nothing new in this part");
        assert_eq!(found(first - 1..first).as_deref(), Some("one"), "a line counts with its end");
        assert_eq!(found(all - 5..all).as_deref(), Some("three"));
    }

    #[test]
    fn what_grows_is_read_once_and_only_in_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("one"), folder.path().join("two")];
        let prompt = "{\"type\":\"user\",\"parentUuid\":null,\"message\":{\"content\":\"go on\"}}\n";
        std::fs::write(&paths[0], prompt.to_owned() + &said("first")).unwrap();
        let agent = ostler_agents::find("claude").unwrap();
        let mut reader = Reader::new(Source { agent, kept: Kept::Files(paths.to_vec()) }).unwrap();
        let mut texts = || {
            let mut texts = Vec::new();
            let read: Result<(), StoreError> = reader.read_on(false, |item, _| {
                if let Item::Agent(Fact::Said { text }) = item {
                    texts.push(text);
                }
                Ok(())
            });
            read.unwrap();
            texts
        };
        assert_eq!(texts(), ["first"]);
        let (half, rest) = (said("second"), said("third"));
        let mut file = File::options().create(true).append(true).open(&paths[1]).unwrap();
        file.write_all(prompt.as_bytes()).unwrap();
        file.write_all(&half.as_bytes()[..20]).unwrap();
        assert_eq!(texts(), Vec::<String>::new());
        file.write_all(&half.as_bytes()[20..]).unwrap();
        file.write_all(rest.as_bytes()).unwrap();
        assert_eq!(texts(), ["second", "third"]);
        let all = reader.rewind(1 << 30).unwrap();
        assert!(all);
        assert!(!reader.rewind(rest.len() as u64 + 1).unwrap());
        let mut count = 0;
        reader
            .read_on(true, |_, _| -> Result<(), StoreError> {
                count += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(count, 1);
    }
}
