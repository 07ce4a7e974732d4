//! A tree of its own for a session: `<repository>/.worktrees/NAME`, on a new branch `ostler/NAME`.

use crate::git::fields;
use crate::include;
use crate::repository::{FOLDER, Repository};
use crate::{GitError, Result};
use ostler_core::worktree::Worktree;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Branches of sessions begin with this.
const PREFIX: &str = "ostler/";

/// The reason for which git locks a tree that it is making.
const INITIALIZING: &str = "initializing";

/// Git shows this reason to everybody who tries to remove the tree.
pub(crate) fn reason(name: &str) -> String {
    format!("it belongs to an ostler session; to remove it: ostler worktree rm {name}")
}

/// The branch of a tree with this name.
pub(crate) fn own_branch(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A tree that can be made. Nothing was done yet.
#[derive(Debug)]
pub struct Planned<'a> {
    repository: &'a Repository,
    pub worktree: Worktree,
    path: PathBuf,
}

/// A tree that was made.
#[derive(Debug)]
pub struct Made {
    /// How many ignored files were copied.
    pub copied: usize,
    /// It has submodules, whose folders are empty.
    pub submodules: bool,
}

impl Repository {
    /// Checks whether such a tree can be made, from `base` or from what is checked out in the folder.
    pub fn plan(&self, name: &str, base: Option<&str>) -> Result<Planned<'_>> {
        let bad = || GitError::BadName { name: name.to_owned() };
        let branch = own_branch(name);
        if name.len() > 100
            || name.starts_with(['.', '-'])
            // Git uses another name for its own folder of such a tree, and does not find that folder again.
            || name == "@"
            || name.contains(['/', '\\'])
            || name.contains(char::is_control)
        {
            return Err(bad());
        }
        if self.git.ask(&self.root, ["check-ref-format", "--branch", &branch])?.is_none() {
            return Err(bad());
        }
        let commit = match (base, self.commit(base.unwrap_or("HEAD"))?) {
            (_, Some(commit)) => commit,
            (Some(base), None) => return Err(GitError::UnknownBase { base: base.to_owned() }),
            (None, None) => return Err(GitError::NoCommit { root: self.root.clone() }),
        };
        let from = match base {
            None => self.branch()?,
            Some(base) => self.has_branch(base)?.then(|| base.to_owned()),
        };
        if self.has_branch(&branch)? {
            return Err(GitError::BranchExists { branch });
        }
        if let Some(other) = self.branch_in_the_way(&branch)? {
            return Err(GitError::BranchInTheWay { branch: other, wanted: branch });
        }
        let folder = self.root.join(FOLDER);
        // With a link, git would list other paths of its trees than those that sessions have.
        if folder.is_symlink() {
            return Err(GitError::OddPath { path: folder });
        }
        let path = folder.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(GitError::FolderExists { path });
        }
        let text = |path: &PathBuf| path.to_str().map(str::to_owned).ok_or(GitError::OddPath { path: path.clone() });
        let worktree = Worktree {
            name: name.to_owned(),
            path: text(&path)?,
            branch,
            base: commit,
            from,
            repository: text(&self.root)?,
        };
        Ok(Planned { repository: self, worktree, path })
    }

    /// A branch that git cannot have together with this one, because one name would be a folder of the other.
    fn branch_in_the_way(&self, branch: &str) -> Result<Option<String>> {
        let above = PREFIX.trim_end_matches('/');
        if self.has_branch(above)? {
            return Ok(Some(above.to_owned()));
        }
        let below = format!("refs/heads/{branch}/");
        let listed =
            self.git.line(&self.root, ["for-each-ref", "--count=1", "--format=%(refname:lstrip=2)", &below])?;
        Ok(listed.filter(|name| !name.is_empty()))
    }

    /// The trees of the repository that are in our folder, with their branches.
    pub fn worktrees(&self) -> Result<Vec<Listed>> {
        let ours = std::fs::canonicalize(self.root.join(FOLDER)).unwrap_or_else(|_| self.root.join(FOLDER));
        let mut all = self.all_worktrees()?;
        self.add_removals(&ours, &mut all)?;
        Ok(all.into_iter().filter(|one| one.path.parent() == Some(&ours) && one.is_ours()).collect())
    }

    /// All trees of the repository.
    pub(crate) fn all_worktrees(&self) -> Result<Vec<Listed>> {
        let listed = self.git.run(&self.root, ["worktree", "list", "--porcelain", "-z"])?;
        let mut found: Vec<Listed> = Vec::new();
        for field in fields(&listed) {
            if let Some(path) = field.strip_prefix(b"worktree ") {
                found.push(Listed { path: PathBuf::from(OsStr::from_bytes(path)), ..Listed::default() });
            } else if let Some(last) = found.last_mut() {
                if let Some(branch) = field.strip_prefix(b"branch refs/heads/") {
                    last.branch = Some(String::from_utf8_lossy(branch).into_owned());
                } else if let Some(reason) = field.strip_prefix(b"locked ") {
                    last.locked = Some(String::from_utf8_lossy(reason).into_owned());
                } else if let Some(head) = field.strip_prefix(b"HEAD ") {
                    last.head = Some(String::from_utf8_lossy(head).into_owned());
                } else if field == b"bare" {
                    last.bare = true;
                }
            }
        }
        // The first is the main tree. When the repository is in another place than its tree, git lists the folder of
        // the repository.
        if let Some(main) = found.first_mut().filter(|main| !main.bare) {
            main.path.clone_from(&self.root);
        }
        Ok(found)
    }

    /// Our tree of this name.
    pub fn worktree(&self, name: &str) -> Result<Listed> {
        let found = self.worktrees()?.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| GitError::NoWorktree { name: name.to_owned() })
    }
}

/// A tree as git lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub path: PathBuf,
    /// The branch that is checked out; `None` when HEAD is not on a branch.
    pub branch: Option<String>,
    pub head: Option<String>,
    /// Why it must not be removed.
    pub locked: Option<String>,
    /// It has no files.
    pub bare: bool,
    /// Its removal was begun ([`crate::removal`]): the commit that has everything that was in it.
    pub removing: Option<String>,
}

impl Listed {
    /// Whether it was made for a session, also by a launch that was killed meanwhile. People may have trees in our
    /// folder, too.
    fn is_ours(&self) -> bool {
        match self.locked.as_deref() {
            Some(INITIALIZING) => self.branch.as_ref() == Some(&self.own_branch()),
            Some(reason) => reason == self::reason(&self.name()),
            None => self.removing.is_some(),
        }
    }

    /// Whether the process that made it was killed before it was complete. No session was ever in it, so it has no
    /// work.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.locked.as_deref() == Some(INITIALIZING)
    }

    /// The branch that was made for it. Another branch may be checked out in it now.
    #[must_use]
    pub fn own_branch(&self) -> String {
        own_branch(&self.name())
    }

    /// Its folder's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Planned<'_> {
    /// Makes the tree. When that fails, nothing is left of it.
    pub fn make(&self) -> Result<Made> {
        let Repository { git, root, .. } = self.repository;
        self.repository.ignore_folder()?;
        let Worktree { name, branch, base, .. } = &self.worktree;
        let reason = reason(name);
        let words = ["worktree", "add", "--quiet", "--no-track", "--lock", "--reason", &reason, "-b", branch];
        let mut arguments: Vec<&OsStr> = words.map(OsStr::new).into();
        arguments.extend([self.path.as_os_str(), OsStr::new(base)]);
        self.repository.note_making(name, base)?;
        let made = git.run(root, &arguments).map_err(|error| self.of_hook(error));
        let made = match made.and_then(|_| include::copy(git, root, &self.path)) {
            Ok(copied) => Ok(Made { copied, submodules: self.path.join(".gitmodules").is_file() }),
            Err(error) => {
                self.undo();
                Err(error)
            }
        };
        // From here on git knows whatever exists of the tree.
        self.repository.forget_making(name)?;
        made
    }

    /// `git worktree add` exits with the code of the hook that it runs last, and does not say that it is the hook's.
    fn of_hook(&self, error: GitError) -> GitError {
        let Repository { git, root, .. } = self.repository;
        let hook = git.path(root, ["rev-parse", "--path-format=absolute", "--git-path", "hooks/post-checkout"]);
        let there = self.path.join(".git").exists() && hook.ok().flatten().is_some_and(|hook| hook.is_file());
        match error {
            GitError::Failed { words, .. } if there => GitError::Hook { words },
            error => error,
        }
    }

    /// Removes a tree again that was made a moment ago and in which nothing was done yet. Best effort.
    pub fn undo(&self) {
        let Repository { git, root, .. } = self.repository;
        let Worktree { branch, base, .. } = &self.worktree;
        let mut remove: Vec<&OsStr> = ["worktree", "remove", "--force", "--force"].map(OsStr::new).into();
        remove.push(self.path.as_os_str());
        let _ = git.run(root, remove);
        // Only while the branch is at the commit it was made from.
        let _ = git.run(root, ["update-ref", "-d", &format!("refs/heads/{branch}"), base]);
    }
}

/// A name for a tree, made from a text that a person has written.
#[must_use]
pub fn name_from(text: &str) -> String {
    let plain = |character: char| if character.is_alphanumeric() || "._".contains(character) { character } else { '-' };
    let name: String = text.trim().chars().map(plain).take(40).collect();
    let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-").trim_matches('.').replace("..", ".")
}
