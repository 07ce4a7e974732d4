//! A repository of a person, and what that person would notice if ostler changed it.

use ostler_testkit::{Harness, Output, Started};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A harness with a repository in its home.
pub struct Repo {
    pub harness: Harness,
    pub folder: PathBuf,
}

impl Repo {
    /// With one commit, on the branch `main`.
    pub fn new() -> Repo {
        let repo = Repo::empty("repo");
        repo.write("a.txt", "one\n");
        repo.write("below/b.txt", "two\n");
        repo.write(".gitignore", "*.secret\nbuild/\n");
        repo.commit("first");
        repo
    }

    /// Without a commit, in a folder of this name.
    pub fn empty(name: &str) -> Repo {
        let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
        let folder = harness.root().join("home").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let repo = Repo { harness, folder };
        repo.git(&["config", "--global", "user.name", "A Person"]);
        repo.git(&["config", "--global", "user.email", "person@example.com"]);
        repo.git(&["config", "--global", "protocol.file.allow", "always"]);
        repo.git(&["init", "--quiet", "--initial-branch", "main"]);
        repo
    }

    pub fn write(&self, name: &str, text: &str) {
        write(&self.folder.join(name), text);
    }

    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// What git prints in the repository.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.folder, arguments)
    }

    #[track_caller]
    pub fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut command = self.harness.command("git");
        command.current_dir(folder).args(arguments);
        Started::new(command, None).finish().exits(0).stdout.trim_end().to_owned()
    }

    /// ostler, in the repository.
    #[track_caller]
    pub fn ostler(&self, arguments: &[&str]) -> Output {
        self.start_in(&self.folder, arguments).finish()
    }

    #[track_caller]
    pub fn ostler_in(&self, folder: &Path, arguments: &[&str]) -> Output {
        self.start_in(folder, arguments).finish()
    }

    pub fn start_in(&self, folder: &Path, arguments: &[&str]) -> Started {
        let mut command = self.harness.command(self.harness.program());
        command.current_dir(folder).args(arguments);
        Started::new(command, None)
    }

    /// The tree of a session.
    pub fn tree(&self, name: &str) -> PathBuf {
        self.folder.join(".worktrees").join(name)
    }

    /// What the person has: every file, HEAD, the index, the branches and the status, without the trees of sessions.
    pub fn state(&self) -> BTreeMap<String, Vec<u8>> {
        let mut state = BTreeMap::new();
        files(&self.folder, &self.folder, &mut state);
        let ours = ["refs/heads/", "--exclude=refs/heads/ostler/*", "--format=%(refname) %(objectname)"];
        state.insert("branches".to_owned(), self.git(&[&["for-each-ref"], &ours[..]].concat()).into_bytes());
        state.insert("status".to_owned(), self.git(&["status", "--porcelain", "--untracked-files=all"]).into_bytes());
        state
    }

    /// Fails unless no tree and no branch of a session is left.
    #[track_caller]
    pub fn has_no_traces(&self) {
        assert!(!self.folder.join(".worktrees").read_dir().is_ok_and(|mut names| names.next().is_some()));
        assert_eq!(self.git(&["branch", "--list", "ostler/*"]), "");
        assert_eq!(self.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    }
}

pub fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// All files except objects, logs, refs, worktrees, and what ostler adds to `.git`.
fn files(top: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    const PASSED: [&str; 6] =
        [".worktrees", ".git/objects", ".git/logs", ".git/worktrees", ".git/refs", ".git/info/exclude"];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
        if PASSED.contains(&name.as_str()) || name.starts_with(".git/ostler.") {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            files(top, &path, found);
        } else {
            found.insert(name, std::fs::read(&path).unwrap_or_default());
        }
    }
}
