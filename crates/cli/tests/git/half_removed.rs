//! Trees that git cannot read, and removals that stop in the middle.

use crate::repo::{Repo, write};
use std::process::Command;

fn made(repo: &Repo, name: &str, script: &str) {
    repo.ostler(&["run", "-w", name, "--", "sh", "-c", script]).exits(0);
}

/// A file system that is mounted in a folder of a tree, so that the folder cannot be removed. Needs root.
struct Busy(std::path::PathBuf);

impl Busy {
    fn mount(folder: std::path::PathBuf) -> Busy {
        std::fs::create_dir_all(&folder).unwrap();
        assert!(Command::new("mount").args(["-t", "tmpfs", "ostler-test"]).arg(&folder).status().unwrap().success());
        Busy(folder)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_tree_that_git_cannot_read_is_shown_and_kept_and_the_others_are_shown_too() {
    let repo = Repo::new();
    repo.write(".gitattributes", "*.bin filter=broken\n");
    repo.write("x.bin", "unmoved\n");
    repo.commit("filtered");
    made(&repo, "good", "echo new > new.txt");
    made(&repo, "bad", "echo changed > x.bin");
    repo.git(&["config", "filter.broken.clean", "grep -v changed"]);
    repo.git(&["config", "filter.broken.required", "true"]);
    let listed = repo.ostler(&["worktree", "ls"]).exits(0).stdout;
    let line = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("good").contains("1 uncommitted change"), "{listed}");
    assert!(line("bad").contains("cannot be read"), "{listed}");
    let json = repo.ostler(&["worktree", "ls", "--json"]).exits(0).json();
    assert!(json.as_array().unwrap().iter().any(|tree| tree["unreadable"].is_string()), "{json}");
    assert!(repo.ostler(&["worktree", "gc"]).exits(0).stdout.contains("bad: kept, it cannot be read"));
    assert!(repo.ostler(&["worktree", "rm", "bad"]).exits(7).complaint().contains("cannot be read"));
    repo.ostler(&["worktree", "rm", "--force", "bad"]).exits(1);
    assert_eq!(std::fs::read_to_string(repo.tree("bad").join("x.bin")).unwrap(), "changed\n");
    repo.git(&["config", "--unset", "filter.broken.clean"]);
    repo.git(&["config", "--unset", "filter.broken.required"]);
    repo.ostler(&["worktree", "rm", "--force", "bad"]).exits(0);
    assert_eq!(repo.git(&["show", "refs/ostler/saved/bad:x.bin"]), "changed");
}

#[test]
fn a_removal_that_cannot_delete_everything_says_so_and_can_be_repeated() {
    for (words, script) in [
        (&["worktree", "rm", "x"][..], "true"),
        (&["worktree", "rm", "--force", "x"], "echo work > work.txt; echo more >> a.txt"),
    ] {
        let repo = Repo::new();
        made(&repo, "x", script);
        let busy = Busy::mount(repo.tree("x").join("build"));
        let failed = repo.ostler(words).exits(1);
        assert!(failed.complaint().contains("ostler worktree rm x"), "{failed:?}");
        assert!(repo.tree("x").exists());
        let listed = repo.ostler(&["worktree", "ls"]).exits(0).stdout;
        assert!(listed.contains("being removed"), "{listed}");
        repo.ostler(&["worktree", "rm", "x"]).exits(1);
        assert!(repo.ostler(&["worktree", "gc"]).exits(0).stdout.contains("x: kept"));
        drop(busy);
        // A file that was written there since is not deleted.
        write(&repo.tree("x").join("since.txt"), "since\n");
        assert!(repo.ostler(&["worktree", "rm", "x"]).exits(7).complaint().contains("x"));
        assert!(repo.tree("x").join("since.txt").exists());
        std::fs::remove_file(repo.tree("x").join("since.txt")).unwrap();
        repo.ostler(&["worktree", "rm", "x"]).exits(0);
        repo.has_no_traces();
        if script != "true" {
            assert_eq!(repo.git(&["show", "refs/ostler/saved/x:work.txt"]), "work");
        }
        // The name is free again.
        made(&repo, "x", "true");
        assert_eq!(std::fs::read_to_string(repo.tree("x").join("a.txt")).unwrap(), "one\n");
        let listed = repo.ostler(&["worktree", "ls"]).exits(0).stdout;
        let line = listed.lines().find(|line| line.starts_with("x ")).unwrap_or_default();
        assert!(line.ends_with("nothing that is not elsewhere"), "{listed}");
    }
}

/// Git and ostler are killed while they make the tree `x`. These shell commands make what git has made until then.
fn killed_while_making(repo: &mut Repo, commands: &str) {
    let path = repo.harness.variable("PATH").unwrap();
    let found = repo.harness.command("sh").args(["-c", "command -v git"]).output().unwrap().stdout;
    let real = String::from_utf8(found).unwrap();
    let shim = format!(
        "#!/bin/sh\nreal={}\ncase \" $* \" in *\" worktree add \"*) {commands} && kill -9 $PPID && kill -9 $$;; esac\n\
         exec $real \"$@\"\n",
        real.trim()
    );
    let shims = repo.harness.root().join("shims");
    std::fs::create_dir_all(&shims).unwrap();
    repo.harness.write_program(&shims.join("git"), &shim);
    repo.harness.set("PATH", format!("{}:{}", shims.display(), path.to_str().unwrap()));
    assert_eq!(repo.ostler(&["run", "-w", "x", "--", "true"]).code, None, "it was killed");
    repo.harness.set("PATH", &path);
}

/// Git has made the branch.
const BRANCH: &str = "$real branch ostler/x main";
/// Git has a record of the tree, and has not written yet what is checked out there.
const NO_HEAD: &str = "$real worktree add -q --lock --reason initializing -b ostler/x .worktrees/x && \
                       git=$($real rev-parse --absolute-git-dir) && \
                       echo 0000000000000000000000000000000000000000 > $git/worktrees/x/HEAD";

#[test]
fn after_a_launch_that_was_killed_between_branch_and_tree_nothing_of_it_is_left() {
    for left in [BRANCH, NO_HEAD] {
        let mut repo = Repo::new();
        let before = repo.state();
        // Each command first removes what is left, so for the last one there is no such tree.
        let commands =
            [(&["run", "-w", "x", "--", "true"][..], 0), (&["worktree", "gc"], 0), (&["worktree", "rm", "x"], 3)];
        for (next, code) in commands {
            killed_while_making(&mut repo, left);
            assert!(repo.git(&["branch", "--list", "ostler/*"]).ends_with("ostler/x"));
            repo.ostler(next).exits(code);
            if next[0] == "run" {
                assert!(repo.tree("x").join("a.txt").exists());
                repo.ostler(&["worktree", "gc"]).exits(0);
            }
            repo.has_no_traces();
            repo.git(&["fsck", "--no-dangling"]);
            assert_eq!(repo.state(), before, "{next:?}");
        }
        // A person's branch with this name is neither removed nor used.
        repo.git(&["branch", "ostler/x"]);
        repo.ostler(&["worktree", "gc"]).exits(0);
        assert!(repo.ostler(&["run", "-w", "x", "--", "true"]).exits(2).complaint().contains("exists already"));
        assert_eq!(repo.git(&["branch", "--list", "ostler/*"]).trim(), "ostler/x");
    }
}
