//! Which repository a folder belongs to, and where its main working tree is.

use crate::git::Git;
use crate::{GitError, Result};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Worktrees of sessions are in this folder of the repository.
pub const FOLDER: &str = ".worktrees";

/// References that people have: commits that these reach are not lost.
const ELSEWHERE: [&str; 3] = ["--branches", "--remotes", "--tags"];

/// A repository, seen from a folder.
#[derive(Clone, Debug)]
pub struct Repository {
    pub git: Git,
    /// The folder that was asked about.
    pub folder: PathBuf,
    /// The main working tree; of a bare repository, the folder of the repository itself.
    pub root: PathBuf,
    /// Where objects, branches and settings are, which all of its trees share.
    pub common: PathBuf,
    /// Where the folder is in its working tree: empty, or a path with a slash at its end.
    pub prefix: PathBuf,
}

impl Repository {
    /// A copy for what is done under a lock: the lock stays held until the last git process that was started here has
    /// exited, even if this process was killed meanwhile.
    pub fn under(&self, lock: OwnedFd) -> Repository {
        Repository { git: self.git.under(lock), ..self.clone() }
    }

    /// The repository that this folder is in.
    pub fn of(git: Git, folder: &Path) -> Result<Repository> {
        let none = || GitError::NotARepository { folder: folder.to_owned() };
        let common = git.path(folder, ["rev-parse", "--path-format=absolute", "--git-common-dir"])?.ok_or_else(none)?;
        let own = git.path(folder, ["rev-parse", "--absolute-git-dir"])?.ok_or_else(none)?;
        let in_tree = git.line(folder, ["rev-parse", "--is-inside-work-tree"])?.is_some_and(|says| says == "true");
        let top = if in_tree { git.path(folder, ["rev-parse", "--show-toplevel"])? } else { None };
        let prefix = if in_tree { git.path(folder, ["rev-parse", "--show-prefix"])? } else { None };
        let linked = std::fs::canonicalize(&own).ok() != std::fs::canonicalize(&common).ok();
        let root = match top {
            Some(top) if !linked => top,
            Some(_) | None => main_tree(&git, &common)?,
        };
        // A path with a line break breaks lists with one path per line, and what people paste.
        if root.as_os_str().as_encoded_bytes().contains(&b'\n') {
            return Err(GitError::OddPath { path: root });
        }
        Ok(Repository { git, folder: folder.to_owned(), root, common, prefix: prefix.unwrap_or_default() })
    }

    /// The commit that this names, seen from the folder.
    pub fn commit(&self, name: &str) -> Result<Option<String>> {
        let name = format!("{name}^{{commit}}");
        self.git.line(&self.folder, ["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
    }

    /// The branch that is checked out in the folder.
    pub fn branch(&self) -> Result<Option<String>> {
        self.git.line(&self.folder, ["symbolic-ref", "--quiet", "--short", "HEAD"])
    }

    /// Whether there is such a branch.
    pub fn has_branch(&self, branch: &str) -> Result<bool> {
        let name = format!("refs/heads/{branch}");
        Ok(self.git.ask(&self.root, ["show-ref", "--verify", "--quiet", &name])?.is_some())
    }

    /// How many commits of these heads are on no branch other than this one, on no tag and no remote branch, and were
    /// not saved. Work that has landed as other commits counts as elsewhere only as long as those commits are: a branch
    /// can be reset to an earlier commit.
    pub(crate) fn only_in(&self, heads: &[&str], branch: &str) -> Result<usize> {
        if heads.is_empty() {
            return Ok(0);
        }
        let landed = self.landed_and_there(branch)?;
        let not = format!("--exclude={branch}");
        let elsewhere = [&["--not", &not], &ELSEWHERE[..], &["--glob=refs/ostler/saved"]].concat();
        let landed: Vec<&str> = landed.iter().map(String::as_str).collect();
        let words = [&["rev-list", "--count"], heads, &elsewhere, &landed].concat();
        let counted = self.git.run(&self.root, words)?;
        String::from_utf8_lossy(&counted).trim().parse().map_err(|_| GitError::Failed {
            what: "rev-list".to_owned(),
            words: "it did not print a number".to_owned(),
        })
    }

    /// Commits that have landed, and whose result is still on a branch other than this one, a tag or a remote branch.
    fn landed_and_there(&self, branch: &str) -> Result<Vec<String>> {
        let format = "--format=%(refname:lstrip=2) %(objectname)";
        let listed =
            self.git.run(&self.root, ["for-each-ref", format, "refs/ostler/landed", "refs/ostler/landed-as"])?;
        let listed = String::from_utf8_lossy(&listed);
        let of = |kind: &str| -> HashMap<&str, &str> {
            let lines = listed.lines().filter_map(|line| line.strip_prefix(kind)?.split_once(' '));
            lines.collect()
        };
        let (landed, results) = (of("landed/"), of("landed-as/"));
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let not = format!("--exclude={branch}");
        let asked: Vec<&str> = results.values().copied().collect();
        let gone = self.git.run(&self.root, [&["rev-list"], &asked[..], &["--not", &not], &ELSEWHERE].concat())?;
        let gone = String::from_utf8_lossy(&gone);
        let gone: HashSet<&str> = gone.lines().collect();
        let there = landed.into_iter().filter(|(name, _)| results.get(name).is_some_and(|now| !gone.contains(now)));
        Ok(there.map(|(_, commit)| commit.to_owned()).collect())
    }

    /// Keeps the folder of the worktrees out of `git status`, for this repository only, unless it is ignored already.
    pub(crate) fn ignore_folder(&self) -> Result<()> {
        let probe = format!("{FOLDER}/any");
        let in_tree = self.git.line(&self.root, ["rev-parse", "--is-inside-work-tree"])?.is_some_and(|is| is == "true");
        if !in_tree || self.git.ask(&self.root, ["check-ignore", "--quiet", "--", &probe])?.is_some() {
            return Ok(());
        }
        let file = self.common.join("info/exclude");
        let add = || {
            std::fs::create_dir_all(self.common.join("info"))?;
            let before = match std::fs::read(&file) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error),
            };
            let line = if before.is_empty() || before.ends_with(b"\n") { "" } else { "\n" };
            let line = format!("{line}/{FOLDER}/\n");
            // One write at the end of the file, so that lines which others add at the same time are kept.
            std::io::Write::write_all(
                &mut std::fs::OpenOptions::new().append(true).create(true).open(&file)?,
                line.as_bytes(),
            )
        };
        add().map_err(GitError::io(&file))
    }
}

/// The main working tree of a repository, seen from another of its trees or from no tree.
fn main_tree(git: &Git, common: &Path) -> Result<PathBuf> {
    let settings = common.join("config");
    let setting = |name: &str| {
        let arguments = [OsStr::new("config"), OsStr::new("--file"), settings.as_os_str(), OsStr::new(name)];
        git.path(common, arguments)
    };
    // For a submodule, and for a repository that is in another place than its tree.
    if let Some(tree) = setting("core.worktree")? {
        return std::fs::canonicalize(common.join(&tree)).map_err(GitError::io(tree));
    }
    let named = common.file_name().is_some_and(|name| name == ".git");
    Ok(match common.parent() {
        Some(parent) if named => parent.to_owned(),
        Some(_) | None => common.to_owned(),
    })
}
