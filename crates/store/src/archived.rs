//! `archived.json`: when a session was archived, by whom, and what its transcript was then.
//!
//! No process of ours writes to an archived session. The transcript is the agent's own file, and any program may write
//! to it. So its state is noted, and a later reader sees whether it was changed.

use crate::StoreError;
use crate::folder::{Folder, read, to_json};
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_core::limits::size;
use ostler_sys::clock;
use ostler_sys::dir::Sync;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const NAME: &str = "archived.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    pub at: Timestamp,
    pub by: String,
    #[serde(default)]
    transcript: Option<Transcript>,
}

/// The agent's file, as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Transcript {
    path: String,
    /// `None`: it was not there.
    file: Option<Stamp>,
}

/// What changes when a file is written or replaced by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    inode: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Option<Stamp>> {
        match std::fs::metadata(path) {
            Ok(stat) => Ok(Some(Stamp {
                size: stat.len(),
                inode: stat.ino(),
                modified_s: stat.mtime(),
                modified_ns: stat.mtime_nsec(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Notes that the session, which ended at `ended`, is archived now. The caller holds `keeper.lock`.
pub fn note(folder: &Folder, by: &str, ended: Timestamp, transcript: Option<&str>) -> Result<(), StoreError> {
    // A database is shared by all conversations of an agent: a change of it says nothing about this one.
    let transcript = transcript.filter(|path| !path.ends_with(".db"));
    let transcript = match transcript {
        Some(path) => {
            Some(Transcript { path: path.to_owned(), file: Stamp::of(Path::new(path)).map_err(StoreError::io(path))? })
        }
        None => None,
    };
    // With a wrong clock, now may be before the end of the session. It must not be deleted too soon because of that.
    let archived = Archived { at: clock::now().max(ended), by: by.to_owned(), transcript };
    write(folder, &archived)
}

/// Notes that the transcript is right as it is now: we have written it ourselves. The caller holds `keeper.lock`.
pub fn note_transcript(folder: &Folder) -> Result<(), StoreError> {
    let Some(mut archived) = noted(folder)? else {
        return Ok(());
    };
    if let Some(transcript) = &mut archived.transcript {
        transcript.file = Stamp::of(Path::new(&transcript.path)).map_err(StoreError::io(transcript.path.as_str()))?;
    }
    write(folder, &archived)
}

fn write(folder: &Folder, archived: &Archived) -> Result<(), StoreError> {
    folder.dir().replace(NAME, &to_json(archived), Sync::Yes).map_err(StoreError::io(NAME))
}

/// What was noted; `None` for a session that was archived before there was such a note.
pub fn noted(folder: &Folder) -> Result<Option<Archived>, StoreError> {
    read(folder.dir(), NAME)
}

impl Archived {
    /// What a person should know about the transcript of an archived session.
    pub fn alarm(&self, id: SessionId) -> Result<Option<String>, StoreError> {
        let Some(Transcript { path, file: before }) = &self.transcript else {
            return Ok(None);
        };
        let now = Stamp::of(Path::new(path)).map_err(StoreError::io(path.as_str()))?;
        let what = match (before, now) {
            (before, now) if *before == now => return Ok(None),
            (Some(before), None) => format!("its transcript of {} is gone", size(before.size)),
            (None, Some(_)) => "a transcript of it was written".to_owned(),
            (Some(before), Some(now)) if before.size == now.size => "its transcript was changed".to_owned(),
            (Some(before), Some(now)) => {
                format!("its transcript was changed ({} then, {} now)", size(before.size), size(now.size))
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(format!("{what} since it was archived; see its copies: ostler checkpoints {id}")))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_sys::dir::Dir;

    #[test]
    fn a_changed_or_removed_transcript_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let (folder, transcript) = (Folder::new(Dir::open(home.path()).unwrap()), home.path().join("t.jsonl"));
        let id = SessionId::parse("0aqx73sx").unwrap();
        assert_eq!(noted(&folder).unwrap(), None);
        std::fs::write(&transcript, "one\n").unwrap();
        note(&folder, "me", Timestamp::UNIX_EPOCH, transcript.to_str()).unwrap();
        let alarm = || noted(&folder).unwrap().unwrap().alarm(id).unwrap();
        assert_eq!(alarm(), None);
        std::fs::write(&transcript, "one\ntwo\n").unwrap();
        assert!(alarm().unwrap().starts_with("its transcript was changed (4 B then, 8 B now)"));
        std::fs::remove_file(&transcript).unwrap();
        assert!(alarm().unwrap().starts_with("its transcript of 4 B is gone"));
        // Another file of the same length in its place.
        std::fs::write(&transcript, "two\n").unwrap();
        assert!(alarm().unwrap().starts_with("its transcript was changed since"));
    }

    #[test]
    fn a_database_of_all_conversations_says_nothing_about_one() {
        let home = tempfile::tempdir().unwrap();
        let (folder, database) = (Folder::new(Dir::open(home.path()).unwrap()), home.path().join("all.db"));
        note(&folder, "me", Timestamp::UNIX_EPOCH, database.to_str()).unwrap();
        std::fs::write(&database, "x").unwrap();
        let id = SessionId::parse("0aqx73sx").unwrap();
        assert_eq!(noted(&folder).unwrap().unwrap().alarm(id).unwrap(), None);
    }
}
