//! Landing: putting work on a branch. The result is built and checked in a temporary tree. The branch moves only when
//! everything succeeded, and only from the commit at which it was.

use crate::git::{Git, complaint, done, fields};
use crate::include;
use crate::index_copy::{files_in_submodules, own_folder, repositories_inside};
use crate::loss::in_progress;
use crate::publishing::{Move, MoveResult};
use crate::repository::{FOLDER, Repository};
use crate::saving::{By, commit_of_files, commit_tree};
use crate::submodules;
use crate::worktree::Listed;
use crate::{GitError, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Keeps the commits of work that has landed, even when its own branch is deleted.
const LANDED: &str = "refs/ostler/landed/";
/// The commit that the work has become on the branch.
const LANDED_AS: &str = "refs/ostler/landed-as/";
/// Names of trees that are made for landing begin with this.
const BUILDING: &str = ".landing-";

/// A person's settings for merging and rebasing are not used here: some move other branches, sign commits that are not
/// kept, or refuse what is to be merged.
const OURS: [(&str, &str); 8] = [
    ("merge.ff", "true"),
    ("merge.verifySignatures", "false"),
    ("commit.gpgSign", "false"),
    ("rebase.updateRefs", "false"),
    ("rebase.autoSquash", "false"),
    ("rebase.rebaseMerges", "false"),
    ("rerere.enabled", "false"),
    ("merge.autoStash", "false"),
];

/// How work becomes commits of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// One commit.
    #[default]
    Squash,
    /// A merge of its commits.
    Merge,
    /// Its commits, one after the other, on top of the branch.
    Rebase,
}

/// What is to land.
#[derive(Clone, Debug)]
pub struct Work {
    /// The name of its tree.
    pub name: String,
    pub commit: String,
    /// The message of the commit that is made for the work.
    pub message: String,
    /// Lines at the end of each message, such as `Ostler-Session: k3v9x2ab`.
    pub trailers: Vec<String>,
    /// Whether its commits are signed, where the person's commits are.
    pub signed: bool,
}

/// The result of putting work on top of a branch.
#[derive(Debug)]
pub enum Built<'a> {
    /// The branch with the work on it.
    Ready(Candidate<'a>),
    /// Both sides have changed these files.
    Conflict(Vec<String>),
    /// The branch has all of the work already.
    Nothing,
}

/// A branch with work on it, in a temporary tree that is removed when this value is dropped.
#[derive(Debug)]
pub struct Candidate<'a> {
    tree: Building<'a>,
    /// The commit at which the branch was.
    pub before: String,
    pub after: String,
    branch: String,
}

/// A temporary tree.
#[derive(Debug)]
pub struct Building<'a> {
    repository: &'a Repository,
    path: PathBuf,
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        // A tree that cannot be removed now is removed by the next landing.
        let mut remove: Vec<&OsStr> = ["worktree", "remove", "--force", "--force"].map(OsStr::new).into();
        remove.push(self.path.as_os_str());
        let _ = self.repository.git.run(&self.repository.root, remove);
    }
}

impl Building<'_> {
    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.path
    }

    fn git(&self) -> Git {
        self.repository.git.without_hooks(&OURS)
    }
}

impl Repository {
    /// Commits everything that is in a tree to its branch. Returns the newest commit.
    pub fn commit_all(&self, tree: &Listed, message: &str, trailers: &[String], signed: bool) -> Result<String> {
        let folder = &tree.path;
        self.can_land(tree)?;
        let head = self.git.line(folder, ["rev-parse", "--verify", "HEAD^{commit}"])?;
        let head = head.ok_or_else(|| GitError::NoCommit { root: folder.clone() })?;
        let message = with_trailers(message, trailers);
        let commit = commit_of_files(&self.git, folder, &message, By::Person { signed })?;
        if commit == head {
            return Ok(head);
        }
        let git = self.quiet_git();
        git.run(folder, ["update-ref", "-m", "ostler: what was not committed", "HEAD", &commit, &head])?;
        // The files are as the commit says; only the index is not updated yet. Files that are not checked out stay so.
        git.run(folder, ["read-tree", "-i", "-m", &commit])?;
        Ok(commit)
    }

    /// Git that runs no hook.
    fn quiet_git(&self) -> Git {
        self.git.without_hooks(&[])
    }

    /// Refuses work with a submodule at a commit that exists nowhere else.
    pub fn check_submodules(&self, tree: &Listed, branch: &str) -> Result<()> {
        submodules::check(self, &tree.path, &format!("refs/heads/{branch}"))
    }

    /// Refuses a tree with an unfinished operation of git, and work that would not be part of the commit.
    fn can_land(&self, tree: &Listed) -> Result<()> {
        let own = own_folder(&self.git, &tree.path)?;
        if let Some(what) = in_progress(&own) {
            return Err(GitError::InProgress { what, path: tree.path.clone() });
        }
        if let Some(path) = repositories_inside(&self.git, &tree.path, false)?.into_iter().next() {
            return Err(GitError::RepositoryInside { path });
        }
        match files_in_submodules(&self.git, &tree.path)?.into_iter().next() {
            Some(path) => Err(GitError::InSubmodule { path }),
            None => Ok(()),
        }
    }

    /// What is in a folder's tree now, as a commit: the commit that is checked out, or one on top of it that is on no
    /// branch.
    pub fn commit_of_now(&self, folder: &Path, message: &str, by: By) -> Result<String> {
        commit_of_files(&self.git, folder, message, by)
    }

    /// A commit of everything in a tree, on no branch: to see what would happen.
    pub fn commit_aside(&self, tree: &Listed, message: &str) -> Result<String> {
        self.can_land(tree)?;
        commit_of_files(&self.git, &tree.path, message, By::Person { signed: false })
    }

    /// Puts work on top of a branch, in a tree of its own.
    pub fn build(&self, work: &Work, branch: &str, how: How) -> Result<Built<'_>> {
        let name = format!("refs/heads/{branch}");
        let before = self.commit(&name)?.ok_or_else(|| GitError::NoBranch { branch: branch.to_owned() })?;
        let landed = self.landed(work, &before)?;
        if landed.as_ref() == Some(&work.commit) || self.is_in(&work.commit, &before)? {
            return Ok(Built::Nothing);
        }
        self.check_identity()?;
        let tree = self.aside(&work.name, &before)?;
        let conflicts = match (how, &landed) {
            (How::Squash, None) => put(&tree, &["merge", "--squash", "--quiet", &work.commit])?,
            (How::Merge, None) => put(&tree, &["merge", "--no-ff", "--no-commit", "--quiet", &work.commit])?,
            // Work that has landed as other commits would conflict with later changes to the same lines, so only what
            // was done since is put on top.
            (How::Squash | How::Merge, Some(landed)) => {
                let since = tree.since(landed, &work.commit)?;
                put(&tree, &["cherry-pick", "--no-commit", &since])?
            }
            (How::Rebase, landed) => {
                tree.git().run(&tree.path, ["checkout", "--quiet", "--detach", &work.commit])?;
                let upstream = landed.as_deref().unwrap_or(&before);
                put(&tree, &["rebase", "--quiet", "--onto", &before, upstream])?
            }
        };
        if !conflicts.is_empty() {
            return Ok(Built::Conflict(conflicts));
        }
        let after = match how {
            How::Squash => tree.commit(work, &[&before])?,
            How::Merge => tree.commit(work, &[&before, &work.commit])?,
            How::Rebase => tree.with_trailers(&before, work)?,
        };
        match after {
            Some(after) if after != before => {
                Ok(Built::Ready(Candidate { tree, before, after, branch: branch.to_owned() }))
            }
            Some(_) | None => Ok(Built::Nothing),
        }
    }

    /// A temporary tree with the files of a commit, for a check. It is removed when the value is dropped.
    pub fn aside(&self, name: &str, commit: &str) -> Result<Building<'_>> {
        let path = self.root.join(FOLDER).join(format!("{BUILDING}{name}-{}", std::process::id()));
        let tree = Building { repository: self, path };
        let mut add: Vec<&OsStr> = ["worktree", "add", "--quiet", "--detach"].map(OsStr::new).into();
        add.extend([tree.path.as_os_str(), OsStr::new(commit)]);
        tree.git().run(&self.root, add)?;
        include::copy(&self.git, &self.root, &tree.path)?;
        Ok(tree)
    }

    /// Trees of landings that were killed. No other process may be landing.
    pub fn buildings(&self) -> Result<Vec<Listed>> {
        Ok(self.all_worktrees()?.into_iter().filter(|one| one.name().starts_with(BUILDING)).collect())
    }

    /// Removes these trees.
    pub fn clear(&self, left: Vec<Listed>) {
        for tree in left {
            drop(Building { repository: self, path: tree.path });
        }
    }

    /// Notes that work has landed, so that its commits are kept when its own branch is deleted, and so that later work
    /// of the session can land on top of it.
    pub fn note_landed(&self, work: &Work, result: &str) -> Result<()> {
        let (landed, landed_as) = (format!("{LANDED}{}", work.name), format!("{LANDED_AS}{}", work.name));
        // This may be the only reference to work of an earlier session with the same name, if the branch was reset
        // meanwhile.
        if let Some(earlier) = self.commit(&landed)?
            && !self.is_in(&earlier, &work.commit)?
            && self.only_in(&[&earlier], "")? > 0
        {
            self.keep_saved(&work.name, &earlier)?;
        }
        let both = format!("update {landed_as} {result}\nupdate {landed} {}\n", work.commit);
        let words = ["update-ref", "--stdin"];
        done(&words.map(Into::into), self.quiet_git().feed(&self.root, words, both.as_bytes())?).map(drop)
    }

    /// Whether a commit is an ancestor of another, or the same.
    fn is_in(&self, old: &str, new: &str) -> Result<bool> {
        Ok(self.git.ask(&self.root, ["merge-base", "--is-ancestor", old, new])?.is_some())
    }

    /// The newest commit of this work that has landed, as other commits, on a branch whose newest commit is `before`.
    fn landed(&self, work: &Work, before: &str) -> Result<Option<String>> {
        let (landed, result) = (format!("{LANDED}{}", work.name), format!("{LANDED_AS}{}", work.name));
        let (Some(landed), Some(result)) = (self.commit(&landed)?, self.commit(&result)?) else { return Ok(None) };
        // A session that has merged the branch since has the result among its own commits.
        let counts =
            self.is_in(&result, before)? && self.is_in(&landed, &work.commit)? && !self.is_in(&result, &work.commit)?;
        Ok(counts.then_some(landed))
    }
}

impl Candidate<'_> {
    /// The folder with the result, for a check.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.tree.path
    }

    /// The commits that are added to the branch, the oldest first; for a squash or a merge, only that one commit.
    pub fn steps(&self) -> Result<Vec<String>> {
        let range = format!("{}..{}", self.before, self.after);
        let words = ["rev-list", "--reverse", "--topo-order", "--first-parent", &range];
        let listed = self.tree.repository.git.run(self.folder(), words)?;
        Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
    }

    /// Checks out one of these commits in the folder.
    pub fn check_out(&self, step: &str) -> Result<()> {
        self.tree.git().run(self.folder(), ["checkout", "--quiet", "--force", "--detach", step]).map(drop)
    }

    /// The first line of the message of one of these commits.
    pub fn subject(&self, step: &str) -> Result<String> {
        Ok(self.tree.git().line(self.folder(), ["log", "-1", "--no-color", "--format=%s", step])?.unwrap_or_default())
    }

    /// How many files are different from before, and how many commits are new.
    pub fn size(&self) -> Result<(usize, usize)> {
        let git = &self.tree.repository.git;
        let names = git.run(self.folder(), ["diff", "--name-only", "-z", &self.before, &self.after, "--"])?;
        let range = format!("{}..{}", self.before, self.after);
        let commits = git.line(self.folder(), ["rev-list", "--count", &range])?;
        Ok((fields(&names).count(), commits.and_then(|count| count.parse().ok()).unwrap_or(0)))
    }

    /// Why the branch cannot be moved where it is checked out, in git's words. `None`: it can be moved, or it is not
    /// checked out.
    pub fn in_the_way(&self) -> Result<Option<String>> {
        if let Some(words) = self.in_the_middle()? {
            return Ok(Some(words));
        }
        let Some(tree) = self.checked_out()? else { return Ok(None) };
        let git = &self.tree.repository.git;
        let check = ["read-tree", "--dry-run", "-u", "-m", &self.before, &self.after];
        let output = git.feed(&tree, check, b"")?;
        Ok((!output.status.success()).then(|| complaint(&output)))
    }

    /// Why the branch is in use: an operation on it is unfinished, or it is checked out twice, so that only one of the
    /// two trees would move.
    fn in_the_middle(&self) -> Result<Option<String>> {
        let Repository { git, .. } = self.tree.repository;
        let mut checked_out = 0;
        for tree in self.tree.repository.all_worktrees()?.into_iter().filter(|tree| tree.path.is_dir()) {
            let Ok(own) = own_folder(git, &tree.path) else { continue };
            let here = tree.branch.as_ref() == Some(&self.branch);
            checked_out += usize::from(here);
            // During a rebase HEAD is not on a branch.
            let name = format!("refs/heads/{}", self.branch);
            let rebased = ["rebase-merge/head-name", "rebase-apply/head-name"]
                .iter()
                .any(|file| std::fs::read_to_string(own.join(file)).is_ok_and(|text| text.trim() == name));
            if let Some(what) = in_progress(&own).filter(|_| here || rebased) {
                return Ok(Some(format!("{what} is in progress in {}", tree.path.display())));
            }
        }
        Ok((checked_out > 1).then(|| "it is checked out in two worktrees".to_owned()))
    }

    /// Moves the branch, only from the commit at which it was. `Ok(false)`: the branch has moved meanwhile.
    pub fn publish(&self) -> Result<bool> {
        let Repository { root, .. } = self.tree.repository;
        let git = &self.tree.repository.quiet_git();
        let name = format!("refs/heads/{}", self.branch);
        let Some(tree) = self.checked_out()? else {
            let moved = ["update-ref", "-m", "ostler: landed", &name, &self.after, &self.before];
            if git.ask(root, moved)?.is_some() {
                return Ok(true);
            }
            let now = git.line(root, ["rev-parse", "--verify", "--quiet", &name])?;
            return if now.as_ref() == Some(&self.before) { git.run(root, moved).map(|_| true) } else { Ok(false) };
        };
        let now = git.line(&tree, ["rev-parse", "--verify", "--quiet", "HEAD"])?;
        if now.as_ref() != Some(&self.before) {
            return Ok(false);
        }
        // Files, index and branch move together, or none of them does.
        let repository = self.tree.repository;
        let begun = Move { tree: &tree, branch: &self.branch, before: &self.before, after: &self.after };
        repository.note_move(&begun)?;
        let forward = ["merge", "--ff-only", "--no-overwrite-ignore", "--quiet", &self.after];
        match self.tree.git().apart().run(&tree, forward) {
            Ok(_) => repository.forget_move().map(|()| true),
            Err(error) => match repository.settle_move()? {
                MoveResult::Finished => Ok(true),
                MoveResult::TakenBack | MoveResult::Nothing => Err(error),
            },
        }
    }

    /// Where the branch is checked out.
    fn checked_out(&self) -> Result<Option<PathBuf>> {
        let all = self.tree.repository.all_worktrees()?;
        Ok(all.into_iter().find(|one| one.branch.as_ref() == Some(&self.branch)).map(|one| one.path))
    }
}

impl Building<'_> {
    /// What was done after the commit `landed`, as one commit on top of it.
    fn since(&self, landed: &str, newest: &str) -> Result<String> {
        let tree = format!("{newest}^{{tree}}");
        commit_tree(&self.git(), &self.path, &tree, &[landed], "What was done since it landed", By::Anyone)
    }

    /// What is in the index as a commit; `None` when the first parent has the same tree.
    fn commit(&self, work: &Work, parents: &[&str]) -> Result<Option<String>> {
        let git = self.git();
        let tree = git.line(&self.path, ["write-tree"])?.unwrap_or_default();
        let same = git.line(&self.path, ["rev-parse", &format!("{}^{{tree}}", parents[0])])?;
        if same.as_ref() == Some(&tree) {
            return Ok(None);
        }
        let message = with_trailers(&work.message, &work.trailers);
        let by = By::Person { signed: work.signed };
        let commit = commit_tree(&self.repository.quiet_git(), &self.path, &tree, parents, &message, by)?;
        // The check has to see the files that the branch will have.
        git.run(&self.path, ["reset", "--quiet", "--hard", &commit])?;
        Ok(Some(commit))
    }

    /// The commits since `before`, each with the trailers at the end of its message.
    fn with_trailers(&self, before: &str, work: &Work) -> Result<Option<String>> {
        let git = self.git();
        let listed = git.run(&self.path, ["rev-list", "--reverse", &format!("{before}..HEAD")])?;
        let mut newest = before.to_owned();
        for commit in String::from_utf8_lossy(&listed).lines() {
            let told = |what: &str| git.line(&self.path, ["show", "--no-patch", &format!("--format={what}"), commit]);
            let message = told("%B")?.unwrap_or_default();
            let missing: Vec<String> = work.trailers.iter().filter(|line| !message.contains(*line)).cloned().collect();
            let message = with_trailers(message.trim_end(), &missing);
            let author = [("GIT_AUTHOR_NAME", "%an"), ("GIT_AUTHOR_EMAIL", "%ae"), ("GIT_AUTHOR_DATE", "%aI")];
            let mut as_author = self.repository.quiet_git();
            for (name, what) in author {
                as_author = as_author.with(name, told(what)?.unwrap_or_default());
            }
            let tree = format!("{commit}^{{tree}}");
            let by = By::Person { signed: work.signed };
            newest = commit_tree(&as_author, &self.path, &tree, &[&newest], &message, by)?;
        }
        git.run(&self.path, ["reset", "--quiet", "--hard", &newest])?;
        Ok(Some(newest))
    }
}

/// Runs the command, and returns the files that both sides have changed.
fn put(tree: &Building<'_>, arguments: &[&str]) -> Result<Vec<String>> {
    let git = tree.git();
    let output = git.feed(&tree.path, arguments, b"")?;
    if output.status.success() {
        return Ok(Vec::new());
    }
    let unmerged = git.run(&tree.path, ["diff", "--name-only", "-z", "--diff-filter=U"])?;
    let conflicts: Vec<String> = fields(&unmerged).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    if conflicts.is_empty() {
        let what = arguments.first().copied().unwrap_or_default().to_owned();
        return Err(GitError::Failed { what, words: complaint(&output) });
    }
    Ok(conflicts)
}

fn with_trailers(message: &str, trailers: &[String]) -> String {
    if trailers.is_empty() { message.to_owned() } else { format!("{message}\n\n{}", trailers.join("\n")) }
}
