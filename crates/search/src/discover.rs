//! Which transcripts there are: where each agent stores its conversations, according to the environment that the engine
//! was given.
//!
//! Links are not followed below the folder of an agent, and only a regular file is a transcript: neither a loop of
//! links nor a pipe can block a search. What cannot be read is skipped and counted ([`Collected`]).
//!
//! A transcript that grows does not change its folder, so every file is looked at each time. This takes most of the
//! time of a search that finds nothing changed, so nothing else is done then: what was seen in a folder is reduced to
//! one number ([`Folder::sum`]), and the names are kept only for a folder whose number differs from the last update.

use crate::unread::Collected;
use ostler_agents::stored::{ConversationFile, Stores};
use ostler_agents::{Agent, Variable};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What shows whether a file has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

    /// A number that is different for every other name or stamp, except with a probability of one in 2^64.
    fn number_with(&self, name: &str) -> i64 {
        // Another version of this program may calculate another number; then every file is compared once.
        let mut hasher = DefaultHasher::new();
        (name, self).hash(&mut hasher);
        hasher.finish().cast_signed()
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

impl Found {
    /// Whether it is one JSON object, as an older version of the agent wrote it, and not lines.
    pub fn is_older(&self) -> bool {
        !self.path.ends_with(LINES)
    }
}

const LINES: &str = ".jsonl";
const OLDER: &str = ".json";

/// A folder with transcripts.
pub(crate) struct Folder {
    pub path: String,
    /// The sum over names and stamps of all its transcripts, independent of their order.
    pub sum: i64,
    /// The transcripts, in no order, if the sum differs from the known one.
    pub changed: Option<Vec<Found>>,
}

/// Every folder where agents keep transcripts, in no order. `known` are the sums that the folders had.
pub(crate) fn folders(variable: Variable<'_>, known: &HashMap<String, Option<i64>>) -> (Vec<Folder>, Collected) {
    let (mut leaves, mut unread) = (Vec::new(), Collected::default());
    for agent in ostler_agents::all() {
        if let Some(Stores::Files { folder, deep, inner }) = agent.stores(variable)
            && let path = folder.to_string_lossy().into_owned()
            && let Some(opened) = unread.note(&path, rustix::fs::open(&folder, FOLDER, Mode::empty()))
        {
            walk(&Leaf { agent, path, inner }, &opened, deep, &mut leaves, &mut unread);
        }
    }
    let next = AtomicUsize::new(0);
    let look = || {
        let (mut folders, mut unread, mut seen) = (Vec::new(), Collected::default(), Seen::default());
        while let Some(leaf) = leaves.get(next.fetch_add(1, Ordering::Relaxed)) {
            folders.extend(leaf.look(known, &mut seen, &mut unread));
        }
        (folders, unread)
    };
    let mut folders = std::thread::scope(|scope| {
        let others = std::thread::available_parallelism().map_or(0, |cores| cores.get().min(THREADS) - 1);
        // If no thread can be started, this thread does all the work.
        let others: Vec<_> =
            (0..others).filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, look).ok()).collect();
        let (mut folders, more) = look();
        unread.merge(more);
        for other in others {
            match other.join() {
                Ok((more, missing)) => {
                    folders.extend(more);
                    unread.merge(missing);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        folders
    });
    for files in folders.iter_mut().filter_map(|folder| folder.changed.as_mut()) {
        // If the agent has converted an older file, the new file is beside it.
        if files.iter().any(Found::is_older) {
            let paths: HashSet<String> = files.iter().map(|one| one.path.clone()).collect();
            files.retain(|one| !(one.is_older() && paths.contains(&format!("{}l", one.path))));
        }
    }
    (folders, unread)
}

/// The maximum number of threads that look at files.
const THREADS: usize = 4;

/// Every database in which an agent stores conversations.
pub(crate) fn databases(variable: Variable<'_>) -> Vec<(&'static dyn Agent, PathBuf)> {
    let database = |agent: &'static dyn Agent| match agent.stores(variable) {
        Some(Stores::Database(path)) if agent.queries().is_some() => Some((agent, path)),
        Some(Stores::Database(_) | Stores::Files { .. }) | None => None,
    };
    ostler_agents::all().filter_map(database).collect()
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A folder that contains transcripts, itself or in its subfolder `inner`.
struct Leaf {
    agent: &'static dyn Agent,
    path: String,
    inner: Option<&'static str>,
}

/// Finds the folders at depth `deep` below this one. They are not kept open: there may be more of them than files can
/// be open.
fn walk(place: &Leaf, folder: &OwnedFd, deep: usize, leaves: &mut Vec<Leaf>, unread: &mut Collected) {
    let &Leaf { agent, ref path, inner } = place;
    if deep == 0 {
        leaves.push(Leaf { agent, path: path.clone(), inner });
        return;
    }
    each_entry(folder, |name, kind| {
        if !matches!(kind, FileType::Directory | FileType::Unknown) {
            return;
        }
        let Ok(text) = name.to_str() else { return };
        let place = Leaf { agent, path: format!("{path}/{text}"), inner };
        match deep {
            1 => leaves.push(place),
            _ => {
                let opened = rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
                if let Some(below) = unread.note(&place.path, opened) {
                    walk(&place, &below, deep - 1, leaves, unread);
                }
            }
        }
    });
}

/// What was seen in one folder; its memory is used again for the next folder.
#[derive(Default)]
struct Seen {
    names: String,
    /// Where its name ends, for each file.
    files: Vec<(usize, Stamp)>,
    sum: i64,
}

impl Seen {
    fn clear(&mut self) {
        self.names.clear();
        self.files.clear();
        self.sum = 0;
    }

    fn add(&mut self, name: &str, stamp: Stamp) {
        self.names.push_str(name);
        self.files.push((self.names.len(), stamp));
        self.sum = self.sum.wrapping_add(stamp.number_with(name));
    }

    fn found(&self, agent: &'static dyn Agent, folder: &str) -> Vec<Found> {
        let mut start = 0;
        let found = self.files.iter().map(|&(end, stamp)| {
            let name = &self.names[std::mem::replace(&mut start, end)..end];
            Found { agent, path: format!("{folder}/{name}"), stamp }
        });
        found.collect()
    }
}

impl Leaf {
    fn look(&self, known: &HashMap<String, Option<i64>>, seen: &mut Seen, unread: &mut Collected) -> Option<Folder> {
        let (agent, flags) = (self.agent, FOLDER | OFlags::NOFOLLOW);
        let folder = unread.note(&self.path, rustix::fs::open(&self.path, flags, Mode::empty()))?;
        let (folder, path) = match self.inner {
            Some(inner) => {
                let path = format!("{}/{inner}", self.path);
                let folder = unread.note(&path, rustix::fs::openat(&folder, inner, flags, Mode::empty()))?;
                (folder, path)
            }
            None => (folder, self.path.clone()),
        };
        seen.clear();
        each_entry(&folder, |name, kind| {
            let bytes = name.to_bytes();
            let is_transcript =
                bytes.ends_with(LINES.as_bytes()) || agent.has_older_form() && bytes.ends_with(OLDER.as_bytes());
            if is_transcript
                && matches!(kind, FileType::RegularFile | FileType::Unknown)
                && let Ok(text) = name.to_str()
                && let Ok(stat) = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            {
                seen.add(text, Stamp::of(&stat));
            }
        });
        let changed = (known.get(&path).copied().flatten() != Some(seen.sum)).then(|| seen.found(agent, &path));
        Some(Folder { sum: seen.sum, changed, path })
    }
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

/// Opens a transcript. `None` when it is not a regular file.
pub(crate) fn open(path: &str) -> Result<Option<File>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    Ok(file.metadata().is_ok_and(|about| about.is_file()).then_some(file))
}

/// Whether a file can be a conversation, by its name.
pub(crate) fn may_be_conversation(found: &Found) -> bool {
    match found.agent.conversation_file(Path::new(&found.path)) {
        Some(ConversationFile::Named(_) | ConversationFile::TellsInFirstLine) => true,
        Some(ConversationFile::Many) | None => false,
    }
}

/// Which conversation a file is; `None` for any other file of the agent's.
pub(crate) fn conversation(agent: &dyn Agent, path: &str, file: &File) -> Option<String> {
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
    id.filter(|id| is_word(id))
}

/// Whether an id is safe as a word of a command that a person copies.
pub(crate) fn is_word(id: &str) -> bool {
    id.len() <= 128
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "._-:".contains(c))
}
