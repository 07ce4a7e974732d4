//! Landings that are interrupted, fail or are repeated, and landings in a repository with another layout.

use crate::repo::{Repo, write};
use ostler_sys::process::Pidfd;
use ostler_testkit::patience;

fn worked(repo: &Repo, name: &str, script: &str) {
    repo.ostler(&["run", "-w", "--name", name, "--", "sh", "-c", script]).exits(0);
}

/// More work of the same session.
fn works_on(repo: &Repo, name: &str, file: &str, text: &str) {
    write(&repo.tree(name).join(file), text);
}

#[test]
fn a_landing_that_is_interrupted_leaves_neither_its_check_nor_its_tree() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo fixed > fixed.txt");
    let before = repo.state();
    let began = repo.harness.root().join("began");
    let check = format!("echo > {}; exec sleep 600", began.display());
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        let landing = repo.start_in(&repo.folder, &["land", "fix", "--check", &check]);
        patience::until("the check has begun", &[], || began.exists().then_some(()));
        std::fs::remove_file(&began).unwrap();
        Pidfd::open(landing.process()).unwrap().unwrap().signal(signal).unwrap();
        let left = landing.finish().exits(6);
        assert!(left.complaint().contains("nothing has changed"), "{left:?}");
        // It is removed at once, not by the next landing.
        assert_eq!(repo.state(), before);
        let trees: Vec<_> = repo.tree("").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(trees, ["fix"]);
        assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 2);
        assert!(repo.harness.ls().iter().all(|shown| shown.ended), "the check still runs");
    }
    repo.ostler(&["land", "fix", "--check", "true"]).exits(0);
}

#[test]
fn after_a_failed_check_the_last_session_is_the_persons_own() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo fixed > fixed.txt");
    let failed = repo.ostler(&["land", "@last", "--check", "echo seen; exit 3"]).exits(1);
    let id = failed.complaint().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(repo.ostler(&["show", "--json", "@last"]).exits(0).json()["name"], "fix");
    assert!(repo.ostler(&["logs", &id]).exits(0).stdout.contains("seen"));
    assert!(repo.ostler(&["ls", "--all"]).exits(0).stdout.contains(&id));
    repo.ostler(&["land", "@last", "--check", "true"]).exits(0);
}

#[test]
fn a_session_that_has_landed_lands_again_with_what_it_has_done_since() {
    for how in [&[][..], &["--rebase"], &["--merge"]] {
        let repo = Repo::new();
        worked(&repo, "fix", "echo two > a.txt; git commit -qam inner; echo new > new.txt");
        repo.ostler(&["land", "fix"]).exits(0);
        assert!(repo.ostler(&[&["land", "fix"], how].concat()).exits(0).stdout.contains("nothing to land"));
        // The session changes the same lines once more, which both sides have changed since it began.
        works_on(&repo, "fix", "a.txt", "three\n");
        repo.write("mine.txt", "mine\n");
        repo.commit("mine");
        repo.ostler(&[&["land", "fix", "-m", "again", "--check", "grep -q three a.txt"], how].concat()).exits(0);
        let files =
            ["a.txt", "new.txt", "mine.txt"].map(|name| std::fs::read_to_string(repo.folder.join(name)).unwrap());
        assert_eq!(files, ["three\n", "new\n", "mine\n"], "{how:?}");
        assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "again", "{how:?}");
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        works_on(&repo, "fix", "a.txt", "four\n");
        repo.ostler(&["land", "fix"]).exits(0);
        assert_eq!(repo.git(&["show", "main:a.txt"]), "four");
        // A change by the person in the same lines is a conflict, as always.
        repo.write("a.txt", "theirs\n");
        repo.commit("theirs");
        works_on(&repo, "fix", "a.txt", "five\n");
        let before = repo.state();
        repo.ostler(&["land", "fix"]).exits(1);
        assert_eq!(repo.state(), before);
        // Another branch has none of the work yet.
        repo.git(&["branch", "release", "main~0"]);
        repo.git(&["update-ref", "refs/heads/release", &repo.git(&["rev-list", "--max-parents=0", "main"])]);
        repo.ostler(&["land", "fix", "--into", "release"]).exits(0);
        assert_eq!(repo.git(&["show", "release:a.txt"]), "five");
        assert_eq!(repo.git(&["show", "release:new.txt"]), "new");
        repo.git(&["fsck", "--no-dangling"]);
    }
}

#[test]
fn work_lands_where_the_git_directory_is_apart_from_the_tree() {
    let repo = Repo::empty("apart");
    repo.git(&["init", "--quiet", "--separate-git-dir", repo.harness.root().join("elsewhere.repo").to_str().unwrap()]);
    repo.write("a.txt", "one\n");
    repo.commit("first");
    worked(&repo, "fix", "echo fixed > a.txt");
    repo.ostler(&["land", "fix", "--check", "grep -q fixed a.txt"]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "fixed\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.write("a.txt", "unfinished\n");
    works_on(&repo, "fix", "a.txt", "more\n");
    assert!(repo.ostler(&["land", "fix"]).exits(1).complaint().contains("cannot be moved where it is checked out"));
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "unfinished\n");
}

#[test]
fn a_hook_that_fails_is_named_and_nothing_is_left() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo fixed > fixed.txt");
    let hook = repo.folder.join(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    repo.harness.write_program(&hook, "#!/bin/sh\necho no licence >&2\nexit 3\n");
    repo.git(&["config", "core.fileMode", "true"]);
    let refused = repo.ostler(&["run", "-w", "x", "--", "true"]).exits(1);
    let words = refused.complaint();
    assert!(words.contains("the post-checkout hook") && words.contains("no licence"), "{words}");
    assert!(!repo.tree("x").exists());
    assert_eq!(repo.git(&["branch", "--list", "ostler/x"]), "");
    // Hooks are for the person's own commands: landing runs none.
    repo.ostler(&["land", "fix"]).exits(0);
}
