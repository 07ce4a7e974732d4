//! A tree in words, and whether it has changed.

use crate::git::{Git, fields};
use crate::index_copy::{ADD_ALL, IndexCopy, own_folder};
use crate::{GitError, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What git says about the tree that a folder is in: the branch, its newest commit, and what is not committed. `None`:
/// the folder is in no repository.
pub fn in_words(git: &Git, folder: &Path) -> Result<Option<String>> {
    let Some(status) = git.ask(folder, ["status", "--short", "--branch", "--untracked-files=normal"])? else {
        return Ok(None);
    };
    let newest = git.line(folder, ["log", "-1", "--no-color", "--format=%h %s"])?.unwrap_or_default();
    let newest = if newest.is_empty() { "no commit yet".to_owned() } else { format!("newest commit: {newest}") };
    Ok(Some(format!("{newest}\n{}", String::from_utf8_lossy(&status).trim_end())))
}

/// The state of a tree: what is checked out, what is staged, and how its files differ from that. Ignored files are not
/// part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The top of the tree.
    pub top: PathBuf,
    /// The commit that is checked out.
    pub commit: String,
    /// The branch that is checked out.
    pub branch: String,
    /// A hash of what the index lists.
    pub staged: String,
    /// What differs from the commit, new files too: the path, its mode and the hash of its contents.
    pub files: BTreeMap<String, String>,
}

impl Fingerprint {
    /// The fingerprint of the tree that a folder is in. Objects are written to a temporary folder, not to the
    /// repository.
    pub fn of(git: &Git, folder: &Path) -> Result<Fingerprint> {
        let none = || GitError::NotARepository { folder: folder.to_owned() };
        let top = git.path(folder, ["rev-parse", "--show-toplevel"])?.ok_or_else(none)?;
        let commit = git.line(&top, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        let commit = commit.ok_or_else(|| GitError::NoCommit { root: top.clone() })?;
        let branch = git.line(&top, ["symbolic-ref", "--quiet", "HEAD"])?.unwrap_or_default();
        let aside = Aside::new(git, &top)?;
        let index = IndexCopy::of(&aside.git, &top)?;
        let listed = index.git.run(&top, ["ls-files", "--stage", "-z"])?;
        let hash = index.git.feed(&top, ["hash-object", "--stdin"], &listed)?;
        let staged = crate::git::done(&["hash-object".into()], hash)?;
        index.git.run(&top, ADD_ALL.into_iter().chain(["--", "."]))?;
        let raw = ["diff-index", "--cached", "--raw", "--no-abbrev", "--no-renames", "-z", &commit, "--"];
        let files = entries(&index.git.run(&top, raw)?);
        Ok(Fingerprint { top, commit, branch, staged: String::from_utf8_lossy(&staged).trim().to_owned(), files })
    }

    /// What is different now, in words; empty when nothing is.
    pub fn changed_since(&self, git: &Git) -> Result<Vec<String>> {
        let now = Fingerprint::of(git, &self.top)?;
        let paths: BTreeSet<&String> = self.files.keys().chain(now.files.keys()).collect();
        let differs = |path: &&&String| self.files.get(**path) != now.files.get(**path);
        let mut words: Vec<String> = paths.iter().filter(differs).map(|path| (*path).clone()).collect();
        if now.branch != self.branch || now.commit != self.commit {
            words.push(format!("HEAD (now {} {})", now.branch, now.commit).replace("refs/heads/", ""));
        }
        if words.is_empty() && now.staged != self.staged {
            words.push("the index".to_owned());
        }
        Ok(words)
    }
}

/// `:old-mode new-mode old-hash new-hash status` and a path, each with a zero byte at its end.
fn entries(raw: &[u8]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut parts = fields(raw);
    while let (Some(about), Some(path)) = (parts.next(), parts.next()) {
        let about = String::from_utf8_lossy(about);
        let words: Vec<&str> = about.split(' ').collect();
        let now = [1, 3].map(|place| words.get(place).copied().unwrap_or_default()).join(" ");
        files.insert(String::from_utf8_lossy(path).into_owned(), now);
    }
    files
}

/// A folder for objects that are not needed afterwards. It is deleted when this value is dropped.
struct Aside {
    git: Git,
    folder: PathBuf,
}

impl Aside {
    fn new(git: &Git, top: &Path) -> Result<Aside> {
        let objects = git.path(top, ["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
        let objects = objects.ok_or_else(|| GitError::NotATree { path: top.to_owned() })?;
        let folder = own_folder(git, top)?.join(format!("ostler.objects.{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(GitError::io(&folder))?;
        let git = git.with("GIT_OBJECT_DIRECTORY", &folder).with("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        Ok(Aside { git, folder })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // A folder that cannot be deleted does no harm: it is never read.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn repository() -> (tempfile::TempDir, Git) {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::new(&std::env::vars_os().collect::<Vec<_>>());
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["config", "user.name", "Test"],
            &["config", "user.email", "test@localhost"],
            &["commit", "-q", "--allow-empty", "-m", "first"],
        ] {
            git.run(folder.path(), words).unwrap();
        }
        (folder, git)
    }

    #[test]
    fn an_untouched_tree_has_no_changes_and_every_change_is_named() {
        let (folder, git) = repository();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        put("old", "1");
        git.run(folder.path(), ["add", "old"]).unwrap();
        git.run(folder.path(), ["commit", "-q", "-m", "second"]).unwrap();
        put("draft", "unfinished");
        let before = Fingerprint::of(&git, folder.path()).unwrap();
        let changed = || before.changed_since(&git).unwrap();
        assert_eq!(changed(), Vec::<String>::new());
        put("draft", "finished");
        put("new", "1");
        assert_eq!(changed(), ["draft", "new"]);
        put("draft", "unfinished");
        std::fs::remove_file(folder.path().join("new")).unwrap();
        assert_eq!(changed(), Vec::<String>::new());
        git.run(folder.path(), ["add", "draft"]).unwrap();
        assert_eq!(changed(), ["the index"]);
        git.run(folder.path(), ["reset", "-q"]).unwrap();
        git.run(folder.path(), ["commit", "-q", "--allow-empty", "-m", "third"]).unwrap();
        assert!(changed().iter().any(|word| word.starts_with("HEAD (now main ")), "{:?}", changed());
        // No file of ours is left in the repository.
        let loose = git.line(folder.path(), ["count-objects"]).unwrap().unwrap();
        let reachable = git.line(folder.path(), ["rev-list", "--objects", "--all", "--count"]).unwrap();
        assert!(loose.contains("objects"), "{loose} {reachable:?}");
        let left: Vec<_> = std::fs::read_dir(folder.path().join(".git"))
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with("ostler"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
