//! What must hold after a fault.

use super::operation::Operation;
use super::world::World;
use std::collections::HashSet;

/// The state before the fault.
#[derive(Debug)]
pub struct Ledger {
    main: String,
    other: String,
    /// What `git status` printed about the person's own files.
    status: String,
    /// The entries of the person's index.
    index: String,
}

impl World {
    pub fn ledger(&self) -> Ledger {
        Ledger {
            main: self.git(&["rev-parse", "main"]),
            other: self.git(&["rev-parse", "other"]),
            status: self.git(&["status", "--porcelain", "--untracked-files=all"]),
            index: self.git(&["diff", "--cached", "--name-status"]),
        }
    }

    /// Panics when a promise does not hold.
    pub fn judge(&self, before: &Ledger, operation: Operation, what: &str) {
        let whole = self.git_in(&self.folder, &["fsck", "--no-dangling", "--full"]);
        assert_eq!(whole.code, Some(0), "{what}: the repository is broken: {whole:?}");
        // The person's own state: HEAD, index, files.
        assert!(!self.folder.join(".git/index.lock").exists(), "{what}: the index is locked");
        assert_eq!(self.git(&["symbolic-ref", "HEAD"]), "refs/heads/main", "{what}");
        let now = self.ledger();
        assert_eq!(now.other, before.other, "{what}: another branch has moved");
        let (main, old) = (&now.main, &before.main);
        if main != old {
            assert!(operation.lands(), "{what}: main has moved");
            assert_eq!(self.git_in(&self.folder, &["merge-base", "--is-ancestor", old, main]).code, Some(0), "{what}");
        }
        assert_eq!(now.status, before.status, "{what}: the person's files or index");
        assert_eq!(now.index, before.index, "{what}: the person's index");
        self.judge_work(what);
        self.judge_stores(what);
    }

    /// Every piece of work is in a tree, or reachable by a reference or from a commit that is checked out somewhere.
    fn judge_work(&self, what: &str) {
        let listed = self.git(&["worktree", "list", "--porcelain"]);
        let heads: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("HEAD ")).collect();
        let heads: Vec<&str> = heads.into_iter().filter(|head| head.bytes().any(|byte| byte != b'0')).collect();
        let objects = self.git(&[&["rev-list", "--objects", "--all"], &heads[..]].concat());
        let reachable: HashSet<&str> = objects.lines().filter_map(|line| line.split(' ').next()).collect();
        let stored = self.in_stores();
        let mut in_trees = HashSet::new();
        for tree in std::fs::read_dir(self.folder.join(".worktrees")).into_iter().flatten().flatten() {
            for file in std::fs::read_dir(tree.path()).into_iter().flatten().flatten() {
                in_trees.extend(std::fs::read_to_string(file.path()).ok());
            }
        }
        for text in self.work.borrow().iter() {
            let blob = self.blob(text);
            let found = in_trees.contains(text) || reachable.contains(blob.as_str()) || stored.contains(&blob);
            assert!(found, "{what}: this work is lost: {text:?}");
        }
    }

    /// The object name of a file with this text.
    fn blob(&self, text: &str) -> String {
        let mut command = self.harness.command("git");
        command.current_dir(&self.folder).args(["hash-object", "--stdin"]);
        let output = ostler_testkit::Started::new(command, Some(text.as_bytes().to_vec())).finish().exits(0);
        output.stdout.trim_end().to_owned()
    }
}
