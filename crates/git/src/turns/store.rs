//! Our own store: a bare repository for each session, separate from the person's repository and from the session's
//! folder.
//!
//! It has everything that its snapshots need. What the first one takes from the person's repository is linked, not
//! referred to: `git gc` there removes names, and the bytes stay as long as our links exist. Every process that changes
//! the store holds its lock. A process that is killed leaves files that the next one removes.

use super::known::Known;
use super::tree::WorkingTree;
use super::{Taken, thinning};
use crate::git::Git;
use crate::{GitError, Result};
use ostler_sys::lock::{self, Held};
use ostler_sys::pause_points::{self, Point};
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOCK: &str = "ostler.lock";
const KNOWN: &str = "ostler.known";
/// What fast-import writes into a `.keep` file.
const FAST_IMPORT: &[u8] = b"fast-import";
/// The references to its snapshots.
pub(super) const REFS: &str = "refs/turns";

/// The store of a session. When it was opened for changes, its lock is held as long as this value exists.
#[derive(Debug)]
pub struct TurnStore {
    /// Uses none of the person's settings.
    pub(super) git: Git,
    /// With the person's settings, for what is shown.
    theirs: Git,
    pub(super) folder: PathBuf,
    _lock: Option<Held>,
}

impl TurnStore {
    /// Opens the store in this folder to read it; `None` when there is none. A snapshot may be taken meanwhile.
    #[must_use]
    pub fn open(git: &Git, folder: &Path) -> Option<TurnStore> {
        folder.join("HEAD").is_file().then(|| TurnStore::with_lock(git, folder, None))
    }

    /// Opens the store in this folder for changes, under its lock, and makes it first if there is none. `None`: another
    /// process has held the lock for longer than `patience`, or has just deleted the store.
    pub fn open_or_make(git: &Git, folder: &Path, tree: &WorkingTree, patience: Duration) -> Result<Option<TurnStore>> {
        let failed = |error| GitError::io(folder)(error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let Some(store) = TurnStore::hold(git, folder, patience)? else { return Ok(None) };
        if !folder.join("HEAD").is_file() {
            let format = format!("--object-format={}", tree.format);
            let words = ["init", "--quiet", "--bare", "--template=", "--initial-branch=none", &format];
            store.git.run(folder, words.into_iter().chain([folder.to_string_lossy().as_ref()]))?;
        }
        store.tidy()?;
        Ok(Some(store))
    }

    fn hold(git: &Git, folder: &Path, patience: Duration) -> Result<Option<TurnStore>> {
        let failed = |error| GitError::io(folder.join(LOCK))(error);
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(folder.join(LOCK));
        let file = open().map_err(failed)?;
        let same = file.try_clone().map_err(failed)?;
        let held = lock::exclusive_within(file.into(), patience).map_err(failed)?;
        // A lock file that was deleted while we waited for it has no name any more.
        let exists = same.metadata().map_err(failed)?.nlink() > 0;
        Ok(held.filter(|_| exists).map(|held| TurnStore::with_lock(git, folder, Some(held))))
    }

    fn with_lock(git: &Git, folder: &Path, lock: Option<Held>) -> TurnStore {
        let alone = git.with("GIT_CONFIG_GLOBAL", "/dev/null").with("GIT_CONFIG_NOSYSTEM", "1");
        let alone = alone.with("GIT_NO_REPLACE_OBJECTS", "1").with("GIT_DIR", folder);
        let theirs = git.with("GIT_NO_REPLACE_OBJECTS", "1").with("GIT_DIR", folder);
        TurnStore { git: alone, theirs, folder: folder.to_owned(), _lock: lock }
    }

    /// Waits until no process changes the store in this folder.
    pub fn wait_until_free(folder: &Path, patience: Duration) -> Result<()> {
        let failed = |error| GitError::io(folder.join(LOCK))(error);
        match File::options().read(true).write(true).open(folder.join(LOCK)) {
            Ok(file) => lock::exclusive_within(file.into(), patience).map(drop).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Removes what a killed process has left. The lock is held, so no other process works here.
    fn tidy(&self) -> Result<()> {
        let is_left = |name: &str| {
            name.ends_with(".lock") && name != LOCK
                || name.starts_with("fast_import_crash_")
                || name.starts_with("tmp_")
                || name.starts_with(KNOWN) && name != KNOWN
        };
        for folder in ["", REFS, "objects", "objects/pack"] {
            let folder = self.folder.join(folder);
            let Ok(names) = std::fs::read_dir(&folder) else { continue };
            for entry in names.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_left)) {
                let path = entry.path();
                let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                removed.map_err(GitError::io(path))?;
            }
        }
        self.tidy_keeps()
    }

    /// Removes the `.keep` files of a fast-import that was killed, or that found the disk full. Beside such a file,
    /// fast-import refuses to write the same pack again, and the pack would never be removed. The `.keep` files of
    /// linked packs are empty and have a pack.
    fn tidy_keeps(&self) -> Result<()> {
        let Ok(names) = std::fs::read_dir(self.folder.join("objects/pack")) else { return Ok(()) };
        for path in
            names.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "keep"))
        {
            let is_left = !path.with_extension("pack").exists()
                || std::fs::read(&path).is_ok_and(|text| text.starts_with(FAST_IMPORT));
            if is_left {
                std::fs::remove_file(&path).map_err(GitError::io(path))?;
            }
        }
        Ok(())
    }

    /// What the last snapshot saw.
    pub(super) fn known(&self, _of: &WorkingTree) -> Option<Known> {
        Known::from_bytes(&std::fs::read(self.folder.join(KNOWN)).ok()?)
    }

    /// Notes what a snapshot saw, so that the next one reads only what has changed since.
    pub fn remember(&self, taken: &Taken) -> Result<()> {
        let path = self.folder.join(KNOWN);
        let temporary = self.folder.join(format!("{KNOWN}.new"));
        let write = || {
            std::fs::write(&temporary, taken.known.to_bytes())?;
            pause_points::at(Point::KnownWritten);
            std::fs::rename(&temporary, &path)
        };
        write().map_err(GitError::io(&path))
    }

    /// Keeps only the snapshots of these names, and what they need.
    pub fn keep(&self, names: &[String]) -> Result<()> {
        thinning::keep(self, names)
    }

    /// Whether the store has a snapshot's commit and its tree.
    pub fn find(&self, commit: &str) -> Result<bool> {
        Ok(self.git.ask(&self.folder, ["cat-file", "-e", &format!("{commit}^{{tree}}")])?.is_some())
    }

    /// Deletes the store in this folder.
    pub fn delete(folder: &Path) -> Result<()> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(folder)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Shows the difference between two snapshots to the person, with the person's settings. Returns the exit code of
    /// git.
    pub fn show_difference(&self, from: &str, to: &str, summary: bool) -> Result<i32> {
        let how = if summary { "--stat" } else { "--patch" };
        // Colours, pager and the like are the person's choice. Programs that are set to show a file are not run.
        self.theirs.show(&self.folder, ["diff", "--no-ext-diff", how, from, to, "--"])
    }

    /// The difference between two snapshots as text.
    pub fn difference(&self, from: &str, to: &str) -> Result<Vec<u8>> {
        self.git.run(&self.folder, ["diff", "--no-ext-diff", "--no-color", from, to, "--"])
    }

    /// All files of a snapshot, in a folder that is empty.
    pub fn check_out(&self, commit: &str, folder: &Path) -> Result<()> {
        let mut index = folder.as_os_str().to_owned();
        index.push(".index");
        let index = PathBuf::from(index);
        let git = self.git.with("GIT_INDEX_FILE", &index).with("GIT_WORK_TREE", folder);
        let out = || {
            git.run(&self.folder, ["read-tree", commit])?;
            git.run(folder, ["-c", "core.attributesFile=/dev/null", "checkout-index", "--all", "--quiet"])
        };
        let done = out().map(drop);
        let _ = std::fs::remove_file(index);
        done
    }
}
