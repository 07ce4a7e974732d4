//! A branch that is checked out moves with its files and its index, which is more than one step. A note in the
//! repository says which move was begun: a move that was killed in the middle is finished, or undone, by the next
//! process that lands something.
//!
//! Git writes the files first, then the index, then the branch. Before it begins it checks that these files have no
//! local changes, so each file has its old contents, its new contents, or the beginning of the new contents.

use crate::git::{done, fields};
use crate::index_copy::own_folder;
use crate::repository::Repository;
use crate::{GitError, Result};
use ostler_sys::process_table;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file with the note.
const NOTE: &str = "ostler.publishing";

/// A move of a branch where it is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move<'a> {
    pub tree: &'a Path,
    pub branch: &'a str,
    pub before: &'a str,
    pub after: &'a str,
}

/// The result of a move that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveResult {
    Finished,
    TakenBack,
    /// The branch was moved to another commit since, or no move was begun.
    Nothing,
}

impl Repository {
    pub(crate) fn note_move(&self, begun: &Move<'_>) -> Result<()> {
        let file = self.common.join(NOTE);
        let hidden = self.common.join(format!("{NOTE}.new"));
        let mut text = format!("{}\0{}\0{}\0", begun.branch, begun.before, begun.after).into_bytes();
        text.extend_from_slice(begun.tree.as_os_str().as_bytes());
        std::fs::write(&hidden, text).and_then(|()| std::fs::rename(&hidden, &file)).map_err(GitError::io(file))
    }

    pub(crate) fn forget_move(&self) -> Result<()> {
        let file = self.common.join(NOTE);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(file)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Finishes a move that was killed in the middle, or undoes it. The caller has to be the only process that lands.
    pub fn recover_move(&self) -> Result<()> {
        self.settle_move().map(drop)
    }

    pub(crate) fn settle_move(&self) -> Result<MoveResult> {
        let file = self.common.join(NOTE);
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(MoveResult::Nothing),
            Err(error) => return Err(GitError::io(file)(error)),
        };
        let parts: Vec<&[u8]> = text.splitn(4, |&byte| byte == 0).collect();
        let &[branch, before, after, tree] = &parts[..] else {
            self.forget_move()?;
            return Ok(MoveResult::Nothing);
        };
        let words = [branch, before, after].map(|part| String::from_utf8_lossy(part).into_owned());
        let tree = PathBuf::from(OsStr::from_bytes(tree));
        let begun = Move { tree: &tree, branch: &words[0], before: &words[1], after: &words[2] };
        let came = self.settle(&begun, &file)?;
        self.forget_move()?;
        Ok(came)
    }

    fn settle(&self, begun: &Move<'_>, note: &Path) -> Result<MoveResult> {
        let name = format!("refs/heads/{}", begun.branch);
        let now = self.git.line(&self.root, ["rev-parse", "--verify", "--quiet", &name])?;
        if now.as_deref() == Some(begun.after) {
            return Ok(MoveResult::Finished);
        }
        if now.as_deref() != Some(begun.before) || !begun.tree.is_dir() {
            return Ok(MoveResult::Nothing);
        }
        remove_dead_lock(&own_folder(&self.git, begun.tree)?, note)?;
        let changes = self.changes(begun)?;
        if changes.iter().all(|change| change.in_index == change.after) && !changes.is_empty() {
            let moved = ["update-ref", "-m", "ostler: landed", &name, begun.after, begun.before];
            if self.git.ask(&self.root, moved)?.is_some() {
                return Ok(MoveResult::Finished);
            }
            // The branch is locked, or it cannot be written. If nothing were undone, the work would be in the next
            // commit that is made here.
            self.git.run(begun.tree, ["read-tree", "-u", "-m", begun.after, begun.before])?;
            return Ok(MoveResult::TakenBack);
        }
        self.take_back(begun.tree, &changes)?;
        Ok(MoveResult::TakenBack)
    }

    /// The files that the move changes.
    fn changes(&self, begun: &Move<'_>) -> Result<Vec<Change>> {
        let told = ["diff-tree", "-r", "-z", "--no-renames", begun.before, begun.after];
        let told = self.git.run(&self.root, told)?;
        let mut parts = fields(&told);
        let mut changes = Vec::new();
        while let (Some(what), Some(path)) = (parts.next(), parts.next()) {
            let words: Vec<&[u8]> = what.split(|&byte| byte == b' ').collect();
            let blob = |at: usize| {
                let name = words.get(at).map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
                Some(name).filter(|name| name.bytes().any(|byte| byte != b'0'))
            };
            let path = PathBuf::from(OsStr::from_bytes(path));
            let entry =
                [OsStr::new("ls-files"), OsStr::new("-s"), OsStr::new("-z"), OsStr::new("--"), path.as_os_str()];
            let entry = self.git.run(begun.tree, entry)?;
            let in_index =
                entry.split(|&byte| byte == b' ').nth(1).map(|name| String::from_utf8_lossy(name).into_owned());
            changes.push(Change { before: blob(2), after: blob(3), in_index, path });
        }
        Ok(changes)
    }

    fn take_back(&self, tree: &Path, changes: &[Change]) -> Result<()> {
        let mut back = Vec::new();
        for change in changes {
            let file = tree.join(&change.path);
            let now = match read(&file) {
                Ok(now) => now,
                Err(error) => return Err(GitError::io(file)(error)),
            };
            let was_written = match (&now, &change.after) {
                (None, _) => change.before.is_some(),
                (Some(now), Some(after)) => self.is_part_of(tree, &change.path, now, after)?,
                (Some(_), None) => false,
            };
            match &change.before {
                _ if !was_written => {}
                Some(_) => {
                    back.extend_from_slice(change.path.as_os_str().as_bytes());
                    back.push(0);
                }
                None => std::fs::remove_file(&file).map_err(GitError::io(file))?,
            }
        }
        if !back.is_empty() {
            let words = ["checkout-index", "--force", "--index", "-z", "--stdin"];
            done(&words.map(Into::into), self.git.feed(tree, words, &back)?)?;
        }
        Ok(())
    }

    /// Whether these bytes are what the new commit has for a file, or the beginning of it.
    fn is_part_of(&self, tree: &Path, path: &Path, now: &[u8], after: &str) -> Result<bool> {
        let as_file = [OsStr::new("hash-object"), OsStr::new("--path"), path.as_os_str(), OsStr::new("--stdin")];
        let output = self.git.feed(tree, as_file, now)?;
        if output.status.success() && String::from_utf8_lossy(&output.stdout).trim() == after {
            return Ok(true);
        }
        Ok(self.git.run(tree, ["cat-file", "blob", after])?.starts_with(now))
    }
}

/// One file of a move: its object before and after the move, and the object in the index.
struct Change {
    path: PathBuf,
    before: Option<String>,
    after: Option<String>,
    in_index: Option<String>,
}

fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let found = match file.symlink_metadata() {
        Ok(stat) if stat.is_symlink() => std::fs::read_link(file).map(|target| target.as_os_str().as_bytes().to_vec()),
        Ok(_) => std::fs::read(file),
        Err(error) => Err(error),
    };
    match found {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the lock on the index that our git has left. A lock that a process has open belongs to a running git, and a
/// lock that is older than the note belongs to the person.
fn remove_dead_lock(own: &Path, note: &Path) -> Result<()> {
    let lock = own.join("index.lock");
    let date = |path: &Path| path.symlink_metadata().and_then(|stat| stat.modified());
    let (Ok(locked), Ok(begun)) = (date(&lock), date(note)) else { return Ok(()) };
    if locked < begun || process_table::is_open(&lock).map_err(GitError::io(&lock))? {
        return Ok(());
    }
    std::fs::remove_file(&lock).map_err(GitError::io(lock))
}
