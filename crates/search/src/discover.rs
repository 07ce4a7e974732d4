//! Which transcripts there are: where each agent keeps its conversations, by the environment that the engine was given.
//!
//! Links are not followed below the folder of an agent, and nothing but a regular file is a transcript: neither a loop of links
//! nor a pipe can hold a search up. What cannot be read is passed over.

use ostler_agents::stored::{ConversationFile, Stores};
use ostler_agents::{Agent, Variable};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What tells whether a file has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub inode: i64,
    pub size: i64,
    /// Nanoseconds since 1970.
    pub changed: i64,
}

impl Stamp {
    pub fn of(stat: &rustix::fs::Stat) -> Stamp {
        let seconds = stat.st_mtime.saturating_mul(1_000_000_000);
        Stamp {
            inode: stat.st_ino.cast_signed(),
            size: stat.st_size,
            changed: seconds.saturating_add(i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
        }
    }

    pub fn of_file(path: &Path) -> Option<Stamp> {
        let stat = rustix::fs::stat(path).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then(|| Stamp::of(&stat))
    }

    pub fn changed_ms(&self) -> i64 {
        self.changed / 1_000_000
    }
}

/// A file that may be a transcript.
pub(crate) struct Found {
    pub agent: &'static dyn Agent,
    pub path: String,
    pub stamp: Stamp,
}

/// Every file where agents keep transcripts.
pub(crate) fn files(variable: Variable<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for agent in ostler_agents::all() {
        if let Some(Stores::Files { folder, deep, inner }) = agent.stores(variable)
            && let Ok(opened) = rustix::fs::open(&folder, FOLDER, Mode::empty())
        {
            walk(agent, &opened, &folder.to_string_lossy(), deep, inner, &mut found);
        }
    }
    found
}

/// Every database in which an agent keeps conversations.
pub(crate) fn databases(variable: Variable<'_>) -> Vec<(&'static dyn Agent, PathBuf)> {
    let database = |agent: &'static dyn Agent| match agent.stores(variable) {
        Some(Stores::Database(path)) if agent.queries().is_some() => Some((agent, path)),
        Some(Stores::Database(_) | Stores::Files { .. }) | None => None,
    };
    ostler_agents::all().filter_map(database).collect()
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn walk(
    agent: &'static dyn Agent,
    folder: &OwnedFd,
    path: &str,
    deep: usize,
    inner: Option<&str>,
    found: &mut Vec<Found>,
) {
    if deep > 0 {
        each_entry(folder, |name, kind| {
            if matches!(kind, FileType::Directory | FileType::Unknown)
                && let Some(below) = below(folder, name)
            {
                walk(agent, &below, &format!("{path}/{}", name.to_string_lossy()), deep - 1, inner, found);
            }
        });
        return;
    }
    if let Some(inner) = inner {
        if let Ok(below) = rustix::fs::openat(folder, inner, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            walk(agent, &below, &format!("{path}/{inner}"), 0, None, found);
        }
        return;
    }
    each_entry(folder, |name, kind| {
        let is_transcript =
            name.to_bytes().ends_with(b".jsonl") && matches!(kind, FileType::RegularFile | FileType::Unknown);
        if is_transcript
            && let Ok(text) = name.to_str()
            && let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        {
            found.push(Found { agent, path: format!("{path}/{text}"), stamp: Stamp::of(&stat) });
        }
    });
}

fn below(folder: &OwnedFd, name: &CStr) -> Option<OwnedFd> {
    name.to_str().ok()?;
    rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).ok()
}

fn each_entry(folder: &OwnedFd, mut each: impl FnMut(&CStr, FileType)) {
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            each(name, entry.file_type());
        }
    }
}

/// How much is read to find the id in the first line.
const FIRST_LINE: u64 = 64 * 1024;

/// Opens a transcript. `None` when it is not a regular file, or is gone.
pub(crate) fn open(path: &str) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|about| about.is_file()).then_some(file)
}

/// Which conversation a file is; `None` for any other file of the agent's.
pub(crate) fn conversation(agent: &dyn Agent, path: &str, file: &File) -> Option<String> {
    // An id becomes a word of a command that a person copies.
    let is_word = |id: &String| {
        id.len() <= 128
            && id.starts_with(|c: char| c.is_ascii_alphanumeric())
            && id.chars().all(|c| c.is_ascii_alphanumeric() || "._-:".contains(c))
    };
    let id = match agent.conversation_file(Path::new(path))? {
        ConversationFile::Named(id) => Some(id),
        ConversationFile::TellsInFirstLine => {
            let mut beginning = Vec::new();
            file.take(FIRST_LINE).read_to_end(&mut beginning).ok()?;
            let end = memchr::memchr(b'\n', &beginning).unwrap_or(beginning.len());
            agent.id_in_first_line(&beginning[..end])
        }
        ConversationFile::Many => None,
    };
    id.filter(is_word)
}
