//! The conversation on disk, with the same weak guarantees as in Claude Code.
//!
//! A line is printed first and written to the file some 100 ms later: lines are collected until none came for that long
//! (or the batch is big), then they are appended with one write, never synced. So SIGKILL at the end of a turn always
//! loses its reply, and a keeper of this agent must handle that. Claude Code takes 29 to 102 ms; the demo agent takes
//! the longest of these times on purpose.
//!
//! Promises: a line is never written twice; a torn last line of an earlier process does not damage ours; a full disk
//! delays lines and loses none while the process lives.

use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::leave::Trouble;

/// A batch of this size is written at once, so that a stream of lines without a pause still reaches the disk.
const BIG_BATCH: usize = 1 << 20;
/// How long to wait before trying a failed write again.
const SECOND_TRY: Duration = Duration::from_secs(1);
/// A longer folder name is cut: the file system allows 255 bytes.
const LONGEST_NAME: usize = 200;

/// Where the demo agent with the home folder `home` keeps the conversation `session` that it has in `cwd`.
pub fn path(home: &Path, cwd: &Path, session: Uuid) -> PathBuf {
    let cwd = cwd.to_string_lossy();
    let mut folder: String =
        cwd.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '-' }).collect();
    if folder.len() > LONGEST_NAME {
        folder.truncate(LONGEST_NAME);
        folder.push_str(&format!("-{:016x}", crate::checksum(cwd.as_bytes())));
    }
    home.join("projects").join(folder).join(format!("{session}.jsonl"))
}

/// The file of a conversation that was begun in this folder, or else in any other folder.
fn anywhere(place: &Place<'_>, session: Uuid) -> PathBuf {
    let here = path(place.home, place.cwd, session);
    if here.exists() {
        return here;
    }
    let folders = std::fs::read_dir(place.home.join("projects")).into_iter().flatten().flatten();
    let mut files = folders.map(|folder| folder.path().join(format!("{session}.jsonl")));
    files.find(|file| file.exists()).unwrap_or(here)
}

pub struct Place<'a> {
    pub home: &'a Path,
    pub cwd: &'a Path,
    pub session: Uuid,
}

pub struct Transcript {
    path: PathBuf,
    session: Uuid,
    cwd: String,
    /// The uuids of all lines, written or accepted.
    known: HashSet<String>,
    newest: Option<String>,
    turns: usize,
    late: Duration,
    batch: Vec<u8>,
    due: Option<Instant>,
}

impl Transcript {
    pub fn create(place: &Place<'_>, late: Duration) -> Result<Transcript, Trouble> {
        let transcript = Transcript::empty(place, late);
        match transcript.path.try_exists() {
            Ok(false) => Ok(transcript),
            Ok(true) => Err(Trouble::ConversationExists(place.session)),
            Err(source) => Err(Trouble::Transcript { path: transcript.path, source }),
        }
    }

    pub fn resume(place: &Place<'_>, late: Duration) -> Result<Transcript, Trouble> {
        let mut transcript = Transcript::empty(place, late);
        match std::fs::read(&transcript.path) {
            Ok(bytes) => {
                transcript.remember(&bytes);
                Ok(transcript)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Trouble::UnknownConversation(place.session)),
            Err(source) => Err(Trouble::Transcript { path: transcript.path, source }),
        }
    }

    /// Begins with everything that another conversation has on disk. The other conversation is not changed.
    pub fn fork(place: &Place<'_>, origin: Uuid, late: Duration) -> Result<Transcript, Trouble> {
        let mut transcript = Transcript::create(place, late)?;
        let from = anywhere(place, origin);
        let bytes = match std::fs::read(&from) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Trouble::UnknownConversation(origin)),
            Err(source) => return Err(Trouble::Transcript { path: from, source }),
        };
        transcript.batch.extend_from_slice(&bytes);
        transcript.remember(&bytes);
        transcript.due = Some(Instant::now() + late);
        Ok(transcript)
    }

    fn empty(place: &Place<'_>, late: Duration) -> Transcript {
        Transcript {
            path: path(place.home, place.cwd, place.session),
            session: place.session,
            cwd: place.cwd.display().to_string(),
            known: HashSet::new(),
            newest: None,
            turns: 0,
            late,
            batch: Vec::new(),
            due: None,
        }
    }

    /// Takes in what earlier processes wrote. A line that cannot be parsed is skipped, wherever it is.
    fn remember(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            let Some(uuid) = line["uuid"].as_str() else { continue };
            self.known.insert(uuid.to_owned());
            self.newest = Some(uuid.to_owned());
            if line["type"] == "user" && line["message"]["content"].is_string() {
                self.turns += 1;
            }
        }
        if bytes.last().is_some_and(|last| *last != b'\n') {
            self.batch.push(b'\n');
        }
    }

    /// How many prompts the conversation has so far.
    pub fn turns(&self) -> usize {
        self.turns
    }

    /// Whether a prompt with this uuid is new. Records the uuid.
    pub fn accept(&mut self, uuid: &str) -> bool {
        self.known.insert(uuid.to_owned())
    }

    pub fn add_prompt(&mut self, uuid: &str, text: &str) {
        self.turns += 1;
        self.add(uuid, "user", json!({"role": "user", "content": text}));
    }

    /// Adds a line to the batch.
    pub fn add(&mut self, uuid: &str, kind: &str, message: Value) {
        if self.batch.len() >= BIG_BATCH {
            // After a failure the batch is kept, and the next try is due in a moment.
            let _ = self.write();
        }
        let line = json!({
            "parentUuid": self.newest,
            "isSidechain": false,
            "type": kind,
            "message": message,
            "uuid": uuid,
            "sessionId": self.session.to_string(),
            "cwd": self.cwd,
            "timestamp": format!("{:.3}", Timestamp::now()),
        });
        self.batch.extend_from_slice(line.to_string().as_bytes());
        self.batch.push(b'\n');
        self.known.insert(uuid.to_owned());
        self.newest = Some(uuid.to_owned());
        self.due = Some(Instant::now() + self.late);
    }

    /// When [`Transcript::write`] should be called next.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Appends the batch to the file.
    pub fn write(&mut self) -> Result<(), Trouble> {
        // The line break that ends a torn line is not written alone.
        if self.due.is_none() {
            return Ok(());
        }
        self.append().map_err(|source| {
            self.due = Some(Instant::now() + SECOND_TRY);
            Trouble::Transcript { path: self.path.clone(), source }
        })?;
        self.due = None;
        Ok(())
    }

    fn append(&mut self) -> io::Result<()> {
        let mut file = open(&self.path)?;
        while !self.batch.is_empty() {
            match file.write(&self.batch) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                // Bytes that were written are removed from the batch, so that the next try continues after them.
                Ok(written) => drop(self.batch.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]
mod tests {
    use super::*;

    const LATE: Duration = Duration::from_millis(100);

    fn place(home: &Path) -> Place<'_> {
        Place { home, cwd: Path::new("/w"), session: Uuid::from_u128(7) }
    }

    fn read(home: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path(home, Path::new("/w"), Uuid::from_u128(7))).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[test]
    fn the_folder_is_the_working_directory_with_a_dash_for_all_but_letters_and_digits() {
        let folder = |cwd: &str| {
            let path = path(Path::new("/h"), Path::new(cwd), Uuid::nil());
            path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(folder("/home/ada/my_app.v2"), "-home-ada-my-app-v2");
        assert_eq!(folder("/é/🐎"), "----");
        assert!(folder(&"/deep".repeat(100)).len() < 255);
        assert_ne!(folder(&"/deep".repeat(100)), folder(&"/deep".repeat(101)));
    }

    #[test]
    fn nothing_is_on_disk_before_the_batch_is_written() {
        let home = tempfile::tempdir().unwrap();
        let mut transcript = Transcript::create(&place(home.path()), LATE).unwrap();
        transcript.add_prompt("p1", "hello");
        assert!(!home.path().join("projects").exists());
        assert!(transcript.due().is_some());
        transcript.write().unwrap();
        assert_eq!(transcript.due(), None);
        assert_eq!(read(home.path()).len(), 1);
    }

    #[test]
    fn a_resumed_conversation_hangs_on_the_last_line_and_knows_the_old_uuids() {
        let home = tempfile::tempdir().unwrap();
        let mut first = Transcript::create(&place(home.path()), LATE).unwrap();
        first.add_prompt("p1", "hello");
        first.add("a1", "assistant", json!({"content": []}));
        first.write().unwrap();

        assert!(matches!(Transcript::create(&place(home.path()), LATE), Err(Trouble::ConversationExists(_))));
        let mut second = Transcript::resume(&place(home.path()), LATE).unwrap();
        assert_eq!(second.turns(), 1);
        assert!(!second.accept("p1"));
        assert!(second.accept("p2"));
        second.add_prompt("p2", "again");
        second.write().unwrap();
        assert_eq!(read(home.path())[2]["parentUuid"], "a1");
    }

    #[test]
    fn a_torn_last_line_spoils_no_further_line() {
        let home = tempfile::tempdir().unwrap();
        let place = place(home.path());
        let mut first = Transcript::create(&place, LATE).unwrap();
        first.add_prompt("p1", "hello");
        first.write().unwrap();
        let file = path(place.home, place.cwd, place.session);
        OpenOptions::new().append(true).open(&file).unwrap().write_all(br#"{"uuid":"to"#).unwrap();

        let mut second = Transcript::resume(&place, LATE).unwrap();
        second.write().unwrap();
        assert!(std::fs::read(&file).unwrap().ends_with(b"to"), "resuming alone changes nothing");
        second.add_prompt("p2", "again");
        second.write().unwrap();
        let uuids: Vec<String> = read(home.path()).iter().map(|line| line["uuid"].to_string()).collect();
        assert_eq!(uuids, [r#""p1""#, r#""p2""#]);
    }

    #[test]
    fn an_unknown_conversation_cannot_be_resumed() {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(Transcript::resume(&place(home.path()), LATE), Err(Trouble::UnknownConversation(_))));
    }

    #[test]
    fn a_write_that_fails_is_tried_again_with_nothing_lost() {
        let home = tempfile::tempdir().unwrap();
        let mut transcript = Transcript::create(&place(home.path()), LATE).unwrap();
        // A file in the place of the folder.
        std::fs::write(home.path().join("projects"), "").unwrap();
        transcript.add_prompt("p1", "hello");
        assert!(transcript.write().is_err());
        assert!(transcript.due().is_some());
        std::fs::remove_file(home.path().join("projects")).unwrap();
        transcript.write().unwrap();
        assert_eq!(read(home.path()).len(), 1);
    }
}
