//! Which working tree a folder is in, and where git keeps what belongs to it.

use crate::git::Git;
use crate::{GitError, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A working tree of a person.
#[derive(Clone, Debug)]
pub struct WorkingTree {
    pub(super) git: Git,
    /// Its top folder.
    pub top: PathBuf,
    /// Where git keeps what belongs to this tree alone.
    pub(super) own: PathBuf,
    pub(super) index: PathBuf,
    pub(super) objects: PathBuf,
    /// Lists of what is ignored, besides the `.gitignore` files.
    pub(super) excludes: Vec<PathBuf>,
    /// `sha1` or `sha256`.
    pub(super) format: String,
}

impl WorkingTree {
    /// The tree that a folder is in. `None`: the folder is in no tree.
    pub fn of(git: &Git, folder: &Path) -> Result<Option<WorkingTree>> {
        let asked = [
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--absolute-git-dir",
            "--git-path",
            "index",
            "--git-path",
            "objects",
            "--git-path",
            "info/exclude",
            "--show-object-format",
        ];
        let Some(answer) = git.ask(folder, asked)? else { return Ok(None) };
        let lines: Vec<&[u8]> = answer.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        let [top, own, index, objects, exclude, format] = lines[..] else {
            return Err(GitError::OddPath { path: folder.to_owned() });
        };
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        let everywhere = git.path(folder, ["config", "--path", "--get", "core.excludesFile"])?;
        Ok(Some(WorkingTree {
            top: path(top),
            own: path(own),
            index: path(index),
            objects: path(objects),
            excludes: [Some(path(exclude)), everywhere.or_else(|| git.default_excludes())]
                .into_iter()
                .flatten()
                .collect(),
            format: String::from_utf8_lossy(format).into_owned(),
            git: git.with("GIT_NO_REPLACE_OBJECTS", "1"),
        }))
    }

    /// The operation of git that is unfinished here.
    #[must_use]
    pub fn in_progress(&self) -> Option<&'static str> {
        crate::loss::in_progress(&self.own)
    }
}
