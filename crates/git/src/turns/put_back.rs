//! Restores the files of a snapshot in a tree.
//!
//! Bytes that are in no snapshot must not be lost. A file may change between the snapshot of the present and the moment
//! in which it is replaced. So nothing is overwritten: a new file is exchanged with the old one, and the old file is
//! deleted only when it is what the snapshot of the present has. Otherwise both are exchanged again and the operation
//! stops there. Ignored files and files that are in no snapshot are not touched. When one of them is in the way,
//! nothing is done.
//!
//! The person's index is not changed. What is staged stays staged.

use super::compare::{Difference, FileKind};
use super::store::TurnStore;
use super::tree::WorkingTree;
use super::unusual::Unusual;
use crate::git::done;
use crate::{GitError, Result};
use ostler_sys::pause_points::{self, Point};
use ostler_sys::rename;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder for files that are about to be exchanged. It is in git's folder of the tree, because that is on the same
/// file system and not part of the tree.
const WAITING: &str = "ostler.rewind";

/// The name of a file there until it is complete.
const HALF: &str = "half";

/// A path that would have to be replaced and is in no snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTheWay(pub String);

/// The changes to the files of a tree.
#[derive(Debug)]
pub struct PutBack<'a> {
    store: &'a TurnStore,
    tree: &'a WorkingTree,
    removed: Vec<Difference>,
    written: Vec<Difference>,
    /// Repositories inside that were at another commit: they are not changed.
    pub repositories: Vec<String>,
    /// What git does not keep of the target snapshot.
    unusual: Unusual,
}

impl TurnStore {
    /// Plans how to turn a tree that is as in `present` into what `target` has. `untouched`: paths that the target has
    /// left out.
    pub fn plan_put_back<'a>(
        &'a self,
        tree: &'a WorkingTree,
        present: &str,
        target: &str,
        untouched: &HashSet<String>,
    ) -> Result<PutBack<'a>> {
        let unusual = self.unusual(target)?;
        let mut plan =
            PutBack { store: self, tree, removed: Vec::new(), written: Vec::new(), repositories: Vec::new(), unusual };
        for difference in self.differences(present, target)? {
            let path = String::from_utf8_lossy(&difference.path).into_owned();
            let is_repository = |side: &Option<(FileKind, String)>| {
                side.as_ref().is_some_and(|(kind, _)| *kind == FileKind::Repository)
            };
            if is_repository(&difference.before) || is_repository(&difference.after) {
                plan.repositories.push(path);
            } else if difference.after.is_some() {
                plan.written.push(difference);
            } else if !untouched.contains(&path) {
                plan.removed.push(difference);
            }
        }
        // Files that are ignored now or were ignored then are not removed: a key, a folder of packages.
        let paths: Vec<&[u8]> = plan.removed.iter().map(|one| &one.path[..]).collect();
        let ignored = self.ignored_now_or_at(tree, target, &paths)?;
        let mut ignored = ignored.into_iter();
        plan.removed.retain(|_| ignored.next() != Some(true));
        Ok(plan)
    }
}

impl PutBack<'_> {
    /// How many files change.
    #[must_use]
    pub fn files(&self) -> usize {
        self.removed.len() + self.written.len()
    }

    /// Paths that would have to be removed and are in no snapshot. If there are any, nothing may be done.
    pub fn in_the_way(&self) -> Result<Vec<InTheWay>> {
        let gone: HashSet<&[u8]> = self.removed.iter().map(|one| &one.path[..]).collect();
        let mut found = Vec::new();
        for one in &self.written {
            let full = self.full(&one.path);
            // A folder in its place is emptied first, if everything in it is known.
            let there = match full.symlink_metadata() {
                Ok(stat) if stat.is_dir() => !self.is_emptied(&full, &gone)?,
                Ok(_) => one.before.is_none() && !gone.contains(&one.path[..]),
                Err(_) => false,
            };
            let above = Path::new(OsStr::from_bytes(&one.path)).ancestors().skip(1).find(|above| {
                let known = gone.contains(above.as_os_str().as_bytes());
                let stat = self.tree.top.join(above).symlink_metadata();
                !known && stat.is_ok_and(|stat| !stat.is_dir())
            });
            if there {
                found.push(InTheWay(String::from_utf8_lossy(&one.path).into_owned()));
            } else if let Some(above) = above {
                found.push(InTheWay(above.to_string_lossy().into_owned()));
            }
        }
        found.dedup();
        Ok(found)
    }

    fn is_emptied(&self, folder: &Path, gone: &HashSet<&[u8]>) -> Result<bool> {
        for entry in std::fs::read_dir(folder).map_err(GitError::io(folder))? {
            let path = entry.map_err(GitError::io(folder))?.path();
            let below = path.strip_prefix(&self.tree.top).unwrap_or(&path).as_os_str().as_bytes().to_vec();
            let is_folder = path.symlink_metadata().is_ok_and(|stat| stat.is_dir());
            if !(gone.contains(&below[..]) || is_folder && self.is_emptied(&path, gone)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the changes.
    pub fn apply(&self) -> Result<()> {
        let waiting = self.waiting_folder()?;
        // The deepest first, so that a folder is empty when it is to be removed.
        for one in self.removed.iter().rev() {
            self.remove(one, &waiting)?;
            pause_points::at(Point::FilePutBack);
        }
        for one in &self.written {
            self.put(one, &waiting)?;
            pause_points::at(Point::FilePutBack);
        }
        let _ = std::fs::remove_dir(&waiting);
        self.make_empty_folders()
    }

    /// Makes folders that existed without a file in them. If something else is in the place of such a folder, it stays.
    pub fn make_empty_folders(&self) -> Result<()> {
        for folder in &self.unusual.empty_folders {
            let full = self.full(folder);
            let above = full.ancestors().skip(1).take_while(|above| *above != self.tree.top);
            let leads_elsewhere = |above: &Path| above.symlink_metadata().is_ok_and(|stat| !stat.is_dir());
            if full.symlink_metadata().is_err() && !above.into_iter().any(leads_elsewhere) {
                std::fs::create_dir_all(&full).map_err(GitError::io(full))?;
            }
        }
        Ok(())
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        self.tree.top.join(OsStr::from_bytes(path))
    }

    /// A folder on the file system of the tree. Files that a killed rewind has left there are deleted if a snapshot has
    /// them.
    fn waiting_folder(&self) -> Result<PathBuf> {
        let device = |path: &Path| path.metadata().map(|stat| std::os::unix::fs::MetadataExt::dev(&stat)).ok();
        let own = &self.tree.own;
        let place = if device(own) == device(&self.tree.top) { own } else { &self.tree.top };
        let name = if place == own { WAITING.to_owned() } else { format!(".{WAITING}") };
        let folder = place.join(name);
        std::fs::create_dir_all(&folder).map_err(GitError::io(&folder))?;
        for entry in std::fs::read_dir(&folder).map_err(GitError::io(&folder))? {
            let path = entry.map_err(GitError::io(&folder))?.path();
            // No file of a person ever had this name: it is an incomplete file of ours.
            let half = path.ends_with(HALF);
            let object = self.object_of(&path)?;
            if !half && self.store.git.ask(&self.store.folder, ["cat-file", "-e", &object])?.is_none() {
                return Err(GitError::Left { path });
            }
            std::fs::remove_file(&path).map_err(GitError::io(&path))?;
        }
        Ok(folder)
    }

    /// The name that git would give to the contents of a file or a link.
    fn object_of(&self, path: &Path) -> Result<String> {
        let bytes = match path.symlink_metadata().map_err(GitError::io(path))?.is_symlink() {
            true => std::fs::read_link(path).map(|target| target.as_os_str().as_bytes().to_vec()),
            false => std::fs::read(path),
        };
        let words = ["hash-object", "--stdin", "--no-filters"];
        let output = self.store.git.feed(&self.store.folder, words, &bytes.map_err(GitError::io(path))?)?;
        Ok(String::from_utf8_lossy(&done(&words.map(Into::into), output)?).trim().to_owned())
    }

    /// Deletes the exchanged old file, if it is what the snapshot of the present has.
    fn drop_old(&self, old: &Path, one: &Difference) -> Result<bool> {
        let expected = one.before.as_ref().map(|(_, object)| object.clone());
        if Some(self.object_of(old)?) != expected {
            return Ok(false);
        }
        std::fs::remove_file(old).map_err(GitError::io(old))?;
        Ok(true)
    }

    fn remove(&self, one: &Difference, waiting: &Path) -> Result<()> {
        let full = self.full(&one.path);
        let old = waiting.join("old");
        match std::fs::rename(&full, &old) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(GitError::io(full)(error)),
        }
        pause_points::at(Point::FileExchanged);
        if !self.drop_old(&old, one)? {
            rename::no_replace(&old, &full).map_err(GitError::io(&full))?;
            return Err(GitError::ChangedMeanwhile { path: full });
        }
        // Folders that are now empty are removed as well, unless they were empty in the snapshot.
        for folder in full.ancestors().skip(1).take_while(|folder| *folder != self.tree.top) {
            let below = folder.strip_prefix(&self.tree.top).unwrap_or(folder).as_os_str().as_bytes();
            if self.unusual.empty_folders.contains(below) || std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn put(&self, one: &Difference, waiting: &Path) -> Result<()> {
        let Some((kind, object)) = &one.after else { return Ok(()) };
        let full = self.full(&one.path);
        let new = waiting.join("new");
        let half = waiting.join(HALF);
        self.make(&half, *kind, object, one)?;
        std::fs::rename(&half, &new).map_err(GitError::io(&new))?;
        let failed = |error| GitError::io(&full)(error);
        if let Some(folder) = full.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
            let real = std::fs::canonicalize(folder).ok();
            let top = std::fs::canonicalize(&self.tree.top).ok();
            let below = folder.strip_prefix(&self.tree.top).unwrap_or(folder);
            // A link above it leads elsewhere.
            if real != top.map(|top| top.join(below).components().collect()) {
                let _ = std::fs::remove_file(&new);
                return Err(GitError::ChangedMeanwhile { path: folder.to_owned() });
            }
        }
        if full.symlink_metadata().is_ok_and(|stat| stat.is_dir()) {
            remove_empty(&full);
        }
        if one.before.is_none() {
            return rename::no_replace(&new, &full).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => GitError::ChangedMeanwhile { path: full.clone() },
                _ => failed(error),
            });
        }
        match rename::exchange(&new, &full) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return rename::no_replace(&new, &full).map_err(failed);
            }
            Err(error) => return Err(failed(error)),
        }
        pause_points::at(Point::FileExchanged);
        if !self.drop_old(&new, one)? {
            rename::exchange(&new, &full).map_err(failed)?;
            let _ = std::fs::remove_file(&new);
            return Err(GitError::ChangedMeanwhile { path: full });
        }
        Ok(())
    }

    /// Makes a new file with the contents of an object. It gets the permissions of the file that it replaces, with the
    /// executable bits changed where needed. Where there is no such file, it gets the permissions that it had in the
    /// snapshot.
    fn make(&self, new: &Path, kind: FileKind, object: &str, one: &Difference) -> Result<()> {
        let bytes = self.store.git.run(&self.store.folder, ["cat-file", "blob", object])?;
        let in_place_of = self.full(&one.path).symlink_metadata().ok().filter(std::fs::Metadata::is_file);
        let mode = match in_place_of {
            Some(stat) => Some(like(stat.permissions().mode() & 0o777, kind)),
            None => self.unusual.mode(&one.path, kind),
        };
        let make = || -> io::Result<()> {
            if kind == FileKind::Link {
                return std::os::unix::fs::symlink(OsStr::from_bytes(&bytes), new);
            }
            let usual = if kind == FileKind::Program { 0o777 } else { 0o666 };
            // Never readable for others before it is known that it may be.
            let first = mode.map_or(usual, |mode| mode & usual);
            let mut file = File::options().write(true).create_new(true).mode(first).open(new)?;
            if let Some(mode) = mode {
                file.set_permissions(std::fs::Permissions::from_mode(mode))?;
            }
            file.write_all(&bytes)?;
            file.sync_data()
        };
        make().map_err(GitError::io(new))
    }
}

/// The permissions of a file, with the executable bits that `kind` needs.
fn like(mode: u32, kind: FileKind) -> u32 {
    match (kind == FileKind::Program, mode & 0o100 != 0) {
        (true, true) | (false, false) => mode,
        (true, false) => mode | (mode & 0o444) >> 2,
        (false, true) => mode & !0o111,
    }
}

/// Removes a folder that has only folders without files in it. A folder with files stays.
fn remove_empty(folder: &Path) {
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty(&entry.path());
    }
    let _ = std::fs::remove_dir(folder);
}
