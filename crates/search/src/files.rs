//! Reads transcripts that are files: what has changed since the last update, and only that.

use crate::discover::{self, Found, Stamp};
use crate::error::SearchError;
use crate::lines::Lines;
use crate::message::Message;
use crate::passages::{Builder, Place};
use crate::source::{Kind, Source};
use crate::update::Update;
use ostler_agents::{Agent, Variable};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much of a file is read at once.
const PIECE: usize = 512 * 1024;
/// Of a longer transcript only the end is read: a file of this size is not a conversation that a person remembers, and
/// must not delay the search in the others.
const LONGEST_FILE: i64 = 256 * 1024 * 1024;
/// A transcript that is one object is read as a whole; a longer one is not a conversation.
const LONGEST_OBJECT: u64 = 32 * 1024 * 1024;
/// How many lines at the beginning are searched for the folder of a conversation.
const LINES_FOR_FOLDER: usize = 40;
/// No path is longer.
const LONGEST_PATH: u64 = 8 * 1024;
/// How many bytes before the position where an update stopped must be the same at the next update.
const TAIL: usize = 64;

impl Update<'_> {
    /// Reads what has changed in the transcripts that are files.
    pub fn files(&mut self, variable: Variable<'_>) -> Result<(), SearchError> {
        let mut gone = self.folders()?;
        let (folders, unread) = discover::folders(variable, &gone);
        self.unread.merge(unread);
        let mut sums = HashMap::new();
        let mut found = Vec::new();
        for folder in folders {
            gone.remove(&folder.path);
            if let Some(files) = folder.changed {
                sums.insert(folder.path, folder.sum);
                found.extend(files);
            }
        }
        if sums.is_empty() && gone.is_empty() {
            return Ok(());
        }
        self.begin_folders(sums.keys().chain(gone.keys()))?;
        let mut known = HashMap::new();
        for path in sums.keys().chain(gone.keys()) {
            known.extend(self.known_in(path)?);
        }
        let mut changed: Vec<(Found, Option<i64>)> = Vec::new();
        for found in found {
            match known.remove(&found.path) {
                Some((_, stamp)) if stamp == found.stamp => {}
                Some((id, _)) => changed.push((found, Some(id))),
                None if discover::may_be_conversation(&found) => changed.push((found, None)),
                None => {}
            }
        }
        for (id, _) in known.into_values() {
            self.forget(id)?;
        }
        // The newest first: another search that runs meanwhile most likely looks for these.
        changed.sort_by(|(one, _), (other, _)| {
            other.stamp.changed.cmp(&one.stamp.changed).then_with(|| one.path.cmp(&other.path))
        });
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
            if !self.file(&found, id)?
                && let Some((folder, _)) = found.path.rsplit_once('/')
            {
                sums.remove(folder);
            }
            if self.collected > self.step {
                self.flush()?;
            }
        }
        self.flush()?;
        self.end_folders(&sums, gone.keys())
    }

    /// Reads one transcript. False: it cannot be opened now, and the next update tries again.
    fn file(&mut self, found: &Found, id: Option<i64>) -> Result<bool, SearchError> {
        let Some(file) = self.unread.note(&found.path, discover::open(&found.path)).flatten() else { return Ok(false) };
        let known = match id {
            Some(id) => self.source(id)?,
            None => None,
        };
        if found.is_older() {
            return self.older_file(found, &file, known).map(|()| true);
        }
        let mut source = match known {
            Some(source) if source.native_id.is_some() && goes_on(&file, &source, found.stamp) => source,
            known => {
                if let Some(source) = known {
                    self.forget(source.id)?;
                }
                let native_id = discover::conversation(found.agent, &found.path, &file);
                let cwd = found.agent.file_with_cwd(Path::new(&found.path)).and_then(|file| only_line(&file));
                let fresh = self.new_source(found.path.clone(), Kind::File, found.agent.name());
                Source { native_id, cwd, ..fresh }
            }
        };
        // The id of the conversation may be written to the file later; until the file changes, it is not opened again.
        if source.native_id.is_none() {
            source.stamp = found.stamp;
            self.changed.push(source);
            return Ok(true);
        }
        if source.position == 0 && found.stamp.size > LONGEST_FILE {
            source.position = found.stamp.size - LONGEST_FILE;
        }
        self.read(found.agent, &file, &mut source, found.stamp)?;
        source.stamp = found.stamp;
        self.changed.push(source);
        Ok(true)
    }

    /// A transcript that is one object. It does not grow: a present version of the agent writes another file when it
    /// continues the conversation.
    fn older_file(&mut self, found: &Found, file: &File, known: Option<Source>) -> Result<(), SearchError> {
        if let Some(source) = known {
            self.forget(source.id)?;
        }
        let mut text = Vec::new();
        // A file that cannot be read to its end is not valid JSON, and has no messages.
        let _ = file.take(LONGEST_OBJECT).read_to_end(&mut text);
        let (agent, path) = (found.agent, Path::new(&found.path));
        let mut source = self.new_source(found.path.clone(), Kind::File, agent.name());
        source.stamp = found.stamp;
        source.native_id = agent.older_form(&text).map(|form| form.id).filter(|id| discover::is_word(id));
        source.cwd = agent.file_with_cwd(path).and_then(|file| only_line(&file));
        let mut builder = Builder::new(found.stamp.changed_ms());
        if let (Some(_), Some(mut recording)) = (&source.native_id, agent.recording()) {
            recording.begin_in_the_middle();
            let mut items = Vec::new();
            for place in agent.older_messages(&text) {
                recording.line(&text[place.clone()], &mut items);
                let place = Place::Line { start: place.start as u64, length: place.len() as u64 };
                for message in items.drain(..).filter_map(Message::of_recorded) {
                    self.add(&mut source, &mut builder, message, &place)?;
                }
            }
        }
        self.read_bytes(text.len() as u64);
        self.close(source, builder)
    }

    /// Reads a transcript from the position of the last update to the size that it has in `now`.
    fn read(&mut self, agent: &dyn Agent, file: &File, source: &mut Source, now: Stamp) -> Result<(), SearchError> {
        let Some(mut recording) = agent.recording() else { return Ok(()) };
        // The order of the lines does not matter here.
        recording.begin_in_the_middle();
        let mut builder = Builder::new(now.changed_ms());
        let mut lines = begin(source);
        let end = u64::try_from(now.size).unwrap_or(0);
        let mut items = Vec::new();
        let mut folders = Folders::new(agent, source);
        let mut buffer = vec![0; PIECE];
        while lines.reached() < end {
            let room = usize::try_from(end - lines.reached()).unwrap_or(PIECE).min(PIECE);
            let count = match file.read_at(&mut buffer[..room], lines.reached()) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Perhaps the disk is damaged; what was read is kept.
                Err(_) => break,
            };
            let passages = &mut self.passages;
            let before = passages.len();
            lines.feed(&buffer[..count], |line, start| {
                // A line that is not a JSON object is skipped.
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
            if self.collected > self.step {
                builder.close(source.id, &mut self.passages);
                source.cwd = folders.best();
                stop_at(file, source, &lines);
                // If this process ends here, the next update must see that the file has more than was read.
                source.stamp = Stamp { inode: now.inode, size: source.position, changed: 0 };
                self.changed.push(source.clone());
                self.flush()?;
            }
        }
        let before = self.passages.len();
        builder.close(source.id, &mut self.passages);
        self.collected += self.passages[before..].iter().map(|passage| passage.words.len()).sum::<usize>();
        source.cwd = folders.best();
        stop_at(file, source, &lines);
        Ok(())
    }
}

/// Whether a transcript that has changed has only grown since it was read.
fn goes_on(file: &File, source: &Source, now: Stamp) -> bool {
    let grown = now.inode == source.stamp.inode && now.size > source.stamp.size && now.size >= source.position;
    let tail = source.mark.as_deref().and_then(|mark| mark.split(' ').next()).unwrap_or_default();
    grown && tail == tail_before(file, source.position)
}

/// A hash of the bytes before a position.
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

/// Where reading continues: after the last complete line, or inside a line that is too long.
fn begin(source: &Source) -> Lines {
    let position = u64::try_from(source.position).unwrap_or(0);
    let long = source.mark.as_deref().and_then(|mark| mark.split_once(' ')?.1.parse::<u64>().ok());
    match long {
        Some(reached) if reached > position => Lines::within(position, reached),
        Some(_) | None => Lines::from(position),
    }
}

/// Records how far a file has been read.
fn stop_at(file: &File, source: &mut Source, lines: &Lines) {
    source.position = i64::try_from(lines.end()).unwrap_or(i64::MAX);
    let tail = tail_before(file, source.position);
    source.mark = Some(match lines.is_within() {
        true => format!("{tail} {}", lines.reached()),
        false => tail,
    });
}

/// The folder of a conversation: the first one in the transcript in which it was begun, else the first one in the
/// transcript.
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
    discover::open(file.to_str()?).ok()??.take(LONGEST_PATH).read_to_string(&mut line).ok()?;
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::database::Folder;
    use crate::database::Wait;
    use crate::find::{self, Query};
    use crate::unread::Collected;
    use crate::update::{STEP, in_steps};
    use ostler_store::home::Home;
    use std::fs;

    /// A search whose update works in steps of this size. `look` is called after each piece that was read, to see the
    /// files as they are then.
    fn found(root: &Path, ostler: &str, step: usize, word: &str, look: &mut dyn FnMut()) -> usize {
        let variable = |name: &str| (name == "HOME").then(|| root.join("home").to_str().unwrap().to_owned());
        let home = Home::at(root.join(ostler));
        let folder = Folder::open(home.root()).unwrap();
        let held = folder.lock(Wait::Short).unwrap().unwrap();
        let mut connection = folder.for_update(&held).unwrap();
        let mut unread = Collected::default();
        in_steps(step, &mut connection, &folder, &home, &variable, &mut unread, &mut |_| look()).unwrap();
        let query = Query { words: vec![word.to_owned()], ..Query::default() };
        find::find(&connection, &query, &mut unread).unwrap().0.len()
    }

    #[test]
    fn an_update_that_ends_in_the_middle_of_a_file_is_continued_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let projects = root.join("home/.claude/projects/-work");
        fs::create_dir_all(&projects).unwrap();
        let line = |text: &str| format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}\n");
        let middle: String =
            (0..4 * PIECE / 80).map(|number| line(&format!("word{number} {}", "x".repeat(40)))).collect();
        let text = [line("first"), middle, line("last")].concat();
        assert!(text.len() > 3 * PIECE);
        fs::write(projects.join("11111111-408d-4262-88d9-97e7e2d532f0.jsonl"), text).unwrap();

        // Copies what a killed process would leave behind.
        let mut pieces = 0;
        let mut look = || {
            pieces += 1;
            let left = root.join(format!("killed{pieces}/search"));
            fs::create_dir_all(&left).unwrap();
            for file in fs::read_dir(root.join("ostler/search")).unwrap().map(|file| file.unwrap().path()) {
                fs::copy(&file, left.join(file.file_name().unwrap())).unwrap();
            }
        };
        assert_eq!(found(root, "ostler", 100_000, "last", &mut look), 1);
        assert!(pieces > 3);
        for killed in 1..=pieces {
            for word in ["first", "word9", "last"] {
                let again = found(root, &format!("killed{killed}"), STEP, word, &mut || {});
                assert_eq!(again, 1, "{word}, after {killed} of {pieces} pieces");
            }
        }
    }
}
