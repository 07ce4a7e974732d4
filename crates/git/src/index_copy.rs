//! A copy of a tree's index, to which everything that is in the tree can be added. The index itself is not changed.

use crate::git::{Git, fields};
use crate::{GitError, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Adds everything that is in a tree, also files outside of the part that a sparse checkout has checked out.
pub(crate) const ADD_ALL: [&str; 3] = ["add", "--all", "--sparse"];

/// The copy is deleted when this value is dropped.
#[derive(Debug)]
pub(crate) struct IndexCopy {
    /// Uses the copy.
    pub git: Git,
    path: PathBuf,
}

impl Drop for IndexCopy {
    fn drop(&mut self) {
        // A copy that cannot be deleted does no harm: it is never read.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl IndexCopy {
    pub fn of(git: &Git, folder: &Path) -> Result<IndexCopy> {
        let own = own_folder(git, folder)?;
        let path = own.join(format!("ostler.index.{}", std::process::id()));
        // The hook that runs after a change of the index does not run for the copy.
        let copy = IndexCopy { git: git.without_hooks(&[]).with("GIT_INDEX_FILE", &path), path };
        copy_with_date(&own.join("index"), &copy.path).map_err(GitError::io(own.join("index")))?;
        copy.show_hidden(folder)?;
        Ok(copy)
    }

    /// Makes git look at files that it was told not to look at (`--skip-worktree`, `--assume-unchanged`). Files that a
    /// sparse checkout leaves out do not exist in the folder.
    fn show_hidden(&self, folder: &Path) -> Result<()> {
        let listed = self.git.run(folder, ["ls-files", "-v", "-z"])?;
        let hidden = |field: &&[u8]| field.first().is_some_and(|tag| *tag == b'S' || tag.is_ascii_lowercase());
        let mut names = Vec::new();
        for name in fields(&listed).filter(hidden).filter_map(|field| field.get(2..)) {
            if folder.join(OsStr::from_bytes(name)).symlink_metadata().is_ok() {
                names.extend_from_slice(name);
                names.push(0);
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        for flag in ["--no-skip-worktree", "--no-assume-unchanged"] {
            let arguments = ["update-index", flag, "-z", "--stdin"];
            crate::git::done(&arguments.map(Into::into), self.git.feed(folder, arguments, &names)?)?;
        }
        Ok(())
    }
}

/// Copies with the date of the original. Git considers a file unchanged when its size and date are as the index says,
/// unless the index is not newer than that date. A copy with a later date would hide a change of the same moment.
fn copy_with_date(from: &Path, to: &Path) -> io::Result<()> {
    let date = std::fs::metadata(from)?.modified()?;
    std::fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(date)
}

/// Where git keeps what belongs to this tree alone. Refuses a folder that is not the top of a tree: git would use the
/// tree above.
pub(crate) fn own_folder(git: &Git, folder: &Path) -> Result<PathBuf> {
    let broken = || GitError::NotATree { path: folder.to_owned() };
    let top = git.path(folder, ["rev-parse", "--show-toplevel"])?.ok_or_else(broken)?;
    if std::fs::canonicalize(&top).ok() != std::fs::canonicalize(folder).ok() {
        return Err(broken());
    }
    git.path(folder, ["rev-parse", "--absolute-git-dir"])?.ok_or_else(broken)
}

/// Repositories inside a tree that are not part of it, and so are not saved with it.
pub(crate) fn repositories_inside(git: &Git, folder: &Path, ignored: bool) -> Result<Vec<PathBuf>> {
    let how = if ignored { "--ignored=traditional" } else { "--ignored=no" };
    let status = git.run(folder, ["status", "--porcelain=v1", "-z", "--untracked-files=all", how, "--no-renames"])?;
    let folders = fields(&status).filter_map(|field| field.get(3..)).filter(|name| name.ends_with(b"/"));
    let paths = folders.map(|name| folder.join(OsStr::from_bytes(name)));
    Ok(paths.filter(|path| path.join(".git").exists()).collect())
}

/// Files in the folders of submodules that are not checked out. Git considers such a folder to be the submodule and
/// does not look into it.
pub(crate) fn files_in_submodules(git: &Git, folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = git.run(folder, ["ls-files", "--stage", "-z"])?;
    let mut found = Vec::new();
    for entry in fields(&listed).filter(|entry| entry.starts_with(b"160000 ")) {
        let Some(name) = entry.splitn(2, |&byte| byte == b'\t').nth(1) else { continue };
        let path = folder.join(OsStr::from_bytes(name));
        let is_folder = path.symlink_metadata().is_ok_and(|stat| stat.is_dir());
        if is_folder && path.join(".git").symlink_metadata().is_err() {
            files_below(&path, &mut found).map_err(GitError::io(path))?;
        }
    }
    Ok(found)
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.symlink_metadata()?.is_dir() {
            true => files_below(&path, found)?,
            false => found.push(path),
        }
    }
    Ok(())
}
