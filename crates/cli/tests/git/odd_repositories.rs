//! Every kind of repository works, or is refused with the reason before anything is made.

use crate::person::{Person, SIZE};
use crate::repo::{Repo, write};
use ostler_testkit::Started;
use std::path::Path;

/// Starts a session in a tree, which must print its folder. Then the tree is removed.
#[track_caller]
fn works(repo: &Repo, from: &Path, expected: &Path) {
    let ran = repo.ostler_in(from, &["run", "-w", "x", "--", "sh", "-c", "pwd; cat a.txt"]).exits(0);
    assert_eq!(ran.stdout, format!("{}\none\n", expected.display()));
    repo.ostler_in(from, &["worktree", "ls"]).exits(0);
    repo.ostler_in(from, &["worktree", "rm", "x"]).exits(0);
    assert!(!expected.exists());
}

#[test]
fn repositories_of_every_kind_get_a_tree() {
    let repo = Repo::new();
    let home = repo.harness.root().join("home");
    works(&repo, &repo.folder, &repo.tree("x"));

    // Started in a worktree of the person, and in one of a session: the new tree is below the main tree, not below that
    // worktree.
    repo.git(&["worktree", "add", "--quiet", "../side"]);
    works(&repo, &home.join("side"), &repo.tree("x"));
    repo.ostler(&["run", "-w", "outer", "--", "true"]).exits(0);
    works(&repo, &repo.tree("outer"), &repo.tree("x"));

    // A commit is checked out, not a branch.
    repo.git(&["checkout", "--quiet", "--detach"]);
    works(&repo, &repo.folder, &repo.tree("x"));
    repo.git(&["checkout", "--quiet", "main"]);

    // Bare, alone and with a tree beside it.
    repo.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
    let bare = home.join("bare.git");
    works(&repo, &bare, &bare.join(".worktrees/x"));
    repo.git_in(&bare, &["worktree", "add", "--quiet", "../of-bare", "main"]);
    works(&repo, &home.join("of-bare"), &bare.join(".worktrees/x"));

    // The git directory is elsewhere.
    repo.git(&["clone", "--quiet", "--separate-git-dir", "../apart.git", ".", "../apart"]);
    works(&repo, &home.join("apart"), &home.join("apart/.worktrees/x"));
    repo.git_in(&home.join("apart"), &["worktree", "add", "--quiet", "../of-apart"]);

    // Spaces and letters of other languages.
    let odd = home.join("ein größeres Projekt – 工程");
    repo.git(&["clone", "--quiet", ".", odd.to_str().unwrap()]);
    works(&repo, &odd, &odd.join(".worktrees/x"));

    // Only a part is checked out, also in the new tree.
    let sparse = home.join("sparse");
    repo.git(&["clone", "--quiet", "--sparse", ".", sparse.to_str().unwrap()]);
    works(&repo, &sparse, &sparse.join(".worktrees/x"));

    // A repository inside another one, which ignores it.
    repo.git(&["clone", "--quiet", ".", "build/inner"]);
    let inner = repo.folder.join("build/inner");
    works(&repo, &inner, &inner.join(".worktrees/x"));
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_submodule_can_have_trees_and_is_empty_in_the_trees_of_its_outer_repository() {
    let repo = Repo::new();
    let home = repo.harness.root().join("home");
    let outer = home.join("outer");
    std::fs::create_dir(&outer).unwrap();
    repo.git_in(&outer, &["init", "--quiet", "--initial-branch", "main"]);
    repo.git_in(&outer, &["submodule", "--quiet", "add", repo.folder.to_str().unwrap(), "part"]);
    write(&outer.join("a.txt"), "one\n");
    repo.git_in(&outer, &["add", "--all"]);
    repo.git_in(&outer, &["commit", "--quiet", "--message", "outer"]);

    let part = outer.join("part");
    works(&repo, &part, &part.join(".worktrees/x"));
    let ran = repo.ostler_in(&outer, &["run", "-w", "x", "--", "true"]).exits(0);
    assert!(ran.stderr.contains("submodule update --init"), "{ran:?}");
    repo.ostler_in(&outer, &["worktree", "rm", "x"]).exits(0);

    // What is written into the empty folder of a submodule is work, and git does not report it.
    repo.ostler_in(&outer, &["run", "-w", "y", "--", "sh", "-c", "mkdir -p part/deep; echo work > part/deep/w"])
        .exits(0);
    let written = outer.join(".worktrees/y/part/deep/w");
    let listed = repo.ostler_in(&outer, &["worktree", "ls"]).exits(0).stdout;
    assert!(listed.contains("1 file in a submodule that is not checked out"), "{listed}");
    let kept = repo.ostler_in(&outer, &["worktree", "gc"]).exits(0).stdout;
    assert!(kept.contains("y: kept, it has 1 file in a submodule that is not checked out"), "{kept}");
    for refused in [&["worktree", "rm", "y"][..], &["worktree", "rm", "--force", "y"], &["land", "y"]] {
        let refused = repo.ostler_in(&outer, refused).exits(7);
        assert!(refused.complaint().contains("submodule"), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "work\n");
    }
    std::fs::remove_dir_all(outer.join(".worktrees/y/part/deep")).unwrap();
    repo.ostler_in(&outer, &["worktree", "rm", "y"]).exits(0);
    repo.git_in(&outer, &["fsck", "--no-dangling"]);
}

#[test]
fn in_a_sparse_checkout_only_what_was_done_lands() {
    let repo = Repo::new();
    for part in ["one", "two", "three"] {
        repo.write(&format!("{part}/file.txt"), "text\n");
    }
    repo.commit("parts");
    let sparse = repo.harness.root().join("home/sparse");
    repo.git(&["clone", "--quiet", "--sparse", ".", sparse.to_str().unwrap()]);
    repo.git_in(&sparse, &["sparse-checkout", "set", "one"]);
    // The session also works outside of that part.
    let script = "echo more >> one/file.txt; mkdir -p two; echo new > two/new.txt";
    repo.ostler_in(&sparse, &["run", "-w", "x", "--", "sh", "-c", script]).exits(0);
    let stat = repo.ostler_in(&sparse, &["diff", "x", "--stat"]).exits(0).stdout;
    assert!(stat.contains("one/file.txt") && stat.contains("two/new.txt") && stat.contains("2 files"), "{stat}");
    repo.ostler_in(&sparse, &["land", "x"]).exits(0);
    let tree = sparse.join(".worktrees/x");
    assert_eq!(repo.git_in(&tree, &["status", "--porcelain"]), "");
    assert_eq!(repo.git_in(&sparse, &["status", "--porcelain"]), "");
    // What is not checked out is not deleted, neither by this landing nor by the next.
    write(&tree.join("one/later.txt"), "later\n");
    repo.ostler_in(&sparse, &["land", "x"]).exits(0);
    let expected = ".gitignore a.txt below/b.txt one/file.txt one/later.txt three/file.txt two/file.txt two/new.txt";
    let files = repo.git_in(&sparse, &["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(files.lines().collect::<Vec<_>>().join(" "), expected);
    assert!(!sparse.join("three").exists());
    let gone = repo.ostler_in(&sparse, &["worktree", "gc"]).exits(0).stdout;
    assert_eq!(gone, "x: removed\n");
    // It is saved as well.
    repo.ostler_in(&sparse, &["run", "-w", "y", "--", "sh", "-c", "mkdir -p two; echo saved > two/saved.txt"]).exits(0);
    repo.ostler_in(&sparse, &["worktree", "rm", "--force", "y"]).exits(0);
    assert_eq!(repo.git_in(&sparse, &["show", "refs/ostler/saved/y:two/saved.txt"]), "saved");
    assert_eq!(repo.git_in(&sparse, &["show", "refs/ostler/saved/y:three/file.txt"]), "text");
}

#[test]
fn a_submodule_lands_only_at_a_commit_that_is_also_elsewhere() {
    let repo = Repo::new();
    let home = repo.harness.root().join("home");
    let (shared, outer) = (home.join("shared.git"), home.join("outer"));
    repo.git(&["clone", "--quiet", "--bare", ".", shared.to_str().unwrap()]);
    std::fs::create_dir(&outer).unwrap();
    repo.git_in(&outer, &["init", "--quiet", "--initial-branch", "main"]);
    repo.git_in(&outer, &["submodule", "--quiet", "add", shared.to_str().unwrap(), "a part"]);
    write(&outer.join("a.txt"), "one\n");
    repo.git_in(&outer, &["add", "--all"]);
    repo.git_in(&outer, &["commit", "--quiet", "--message", "outer"]);
    // With another change beside it that could land.
    let script = "git submodule --quiet update --init; echo two > a.txt; cd 'a part'; echo deep > deep.txt; git add .; \
                  git commit -qm deep";
    repo.ostler_in(&outer, &["run", "-w", "x", "--", "sh", "-c", script]).exits(0);
    let part = outer.join(".worktrees/x/a part");
    let (before, deep) = (repo.git_in(&outer, &["rev-parse", "main"]), repo.git_in(&part, &["rev-parse", "HEAD"]));
    for how in [&[][..], &["--merge"], &["--rebase"], &["--dry-run"]] {
        let refused = repo.ostler_in(&outer, &[&["land", "x"], how].concat()).exits(7);
        let words = refused.complaint();
        assert!(words.contains(&deep[..7]) && words.contains("nowhere but in that worktree"), "{words}");
        assert!(words.contains("push origin HEAD:refs/heads/BRANCH"), "{words}");
        assert_eq!(repo.git_in(&outer, &["rev-parse", "main", "ostler/x"]), format!("{before}\n{before}"));
    }
    // The person's own checkout of the submodule has the commit.
    repo.git_in(&outer.join("a part"), &["fetch", "--quiet", part.to_str().unwrap(), "HEAD:refs/heads/deep"]);
    assert!(repo.ostler_in(&outer, &["land", "x", "--dry-run"]).exits(0).stdout.contains("2 files"));
    repo.git_in(&outer.join("a part"), &["branch", "--delete", "--force", "deep"]);
    repo.ostler_in(&outer, &["land", "x", "--dry-run"]).exits(7);
    // The commit is pushed, as the message says.
    repo.git_in(&part, &["push", "--quiet", "origin", "HEAD:refs/heads/deep"]);
    // What is not committed in the submodule would silently not land.
    write(&part.join("new.txt"), "not committed\n");
    let refused = repo.ostler_in(&outer, &["land", "x"]).exits(7);
    assert!(refused.complaint().contains("a part has uncommitted changes, which would not land"), "{refused:?}");
    assert_eq!(repo.git_in(&outer, &["rev-parse", "main", "ostler/x"]), format!("{before}\n{before}"));
    std::fs::remove_file(part.join("new.txt")).unwrap();
    repo.ostler_in(&outer, &["land", "x"]).exits(0);
    assert!(repo.git_in(&outer, &["ls-tree", "main", "a part"]).contains(&deep));
    // A repository that was added to the tree with `git add` is nowhere else, either.
    let script = "git init -q own; cd own; echo x > x; git add .; git commit -qm x; cd ..; git add own 2>&1";
    repo.ostler_in(&outer, &["run", "-w", "y", "--", "sh", "-c", script]).exits(0);
    let refused = repo.ostler_in(&outer, &["land", "y"]).exits(7);
    assert!(refused.complaint().contains("nowhere but in that worktree"), "{refused:?}");
}

#[test]
fn what_cannot_work_is_refused_and_nothing_was_made() {
    let mut repo = Repo::empty("repo");
    // No agent is installed there.
    let programs = repo.harness.root().join("programs");
    std::fs::create_dir(&programs).unwrap();
    for program in ["git", "true"] {
        let found = repo.harness.command("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().stdout;
        std::os::unix::fs::symlink(String::from_utf8(found).unwrap().trim(), programs.join(program)).unwrap();
    }
    repo.harness.set("PATH", programs);
    let refused = |words: &[&str], why: &str| {
        let output = repo.ostler(&[&["run"], words].concat()).exits(2);
        assert!(output.complaint().contains(why), "{output:?}");
        repo.has_no_traces();
        assert_eq!(repo.harness.ls().len(), 0);
    };
    refused(&["-w", "--", "true"], "has no commit yet");
    repo.write("a.txt", "one\n");
    repo.commit("first");
    let before = repo.state();
    for name in ["a/b", "..", ".hidden", "-x", "with space~", "x.lock", "x..y", "@{1}", "@", "new\nline"] {
        refused(&[&format!("--worktree={name}"), "--", "true"], "cannot be the name of a worktree");
    }
    refused(&["-w", "x", "--base", "nowhere", "--", "true"], "is not a commit");
    refused(&["-w", "x", "--base=--help", "--", "true"], "is not a commit");
    refused(&["-w", "x", "claude", "hello"], "not installed");
    refused(&["-w", "x", "--exclusive", "--", "true"], "cannot be used with");
    // Branches beside which there can be no branch `ostler/x`.
    for (branch, advice) in [("ostler", "git branch -m ostler NEW"), ("ostler/x/y", "git branch -m ostler/x/y NEW")] {
        repo.git(&["branch", branch]);
        let refused = repo.ostler(&["run", "-w", "x", "--", "true"]).exits(2);
        let words = refused.complaint();
        assert!(words.contains(&format!("there is a branch {branch}, ")) && words.contains(advice), "{words}");
        repo.git(&["branch", "--delete", branch]);
        repo.has_no_traces();
        assert_eq!((repo.harness.ls().len(), repo.state()), (0, before.clone()));
    }
    repo.git(&["branch", "ostler/taken"]);
    assert!(repo.ostler(&["run", "-w", "taken", "--", "true"]).exits(2).complaint().contains("exists already"));
    repo.git(&["branch", "--delete", "ostler/taken"]);
    write(&repo.tree("taken").join("file"), "mine\n");
    assert!(repo.ostler(&["run", "-w", "taken", "--", "true"]).exits(2).complaint().contains("exists already"));
    std::fs::remove_dir_all(repo.folder.join(".worktrees")).unwrap();
    std::os::unix::fs::symlink("elsewhere", repo.folder.join(".worktrees")).unwrap();
    assert!(repo.ostler(&["run", "-w", "x", "--", "true"]).exits(2).complaint().contains("cannot be used"));
    std::fs::remove_file(repo.folder.join(".worktrees")).unwrap();
    // This fails only when the program is started.
    repo.ostler(&["run", "-w", "x", "--", "/no/such/program"]);
    repo.has_no_traces();
    assert_eq!(repo.state(), before);

    let outside = repo.ostler_in(&repo.harness.root().join("home"), &["run", "-w", "--", "true"]).exits(2);
    assert!(outside.complaint().contains("is not in a git repository"), "{outside:?}");
}

#[test]
fn a_hook_that_asks_gets_no_answer_and_the_tree_is_made() {
    let repo = Repo::new();
    let asked = repo.harness.root().join("asked");
    let hook = repo.folder.join(".git/hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let text = "#!/bin/sh\nif [ -t 0 ] || [ -t 1 ] || [ -t 2 ]; then echo terminal; fi > ASKED\n\
                read -r answer\necho \"$? '$answer'\" >> ASKED\n";
    repo.harness.write_program(&hook, &text.replace("ASKED", asked.to_str().unwrap()));
    let got = || {
        let got = std::fs::read_to_string(&asked).unwrap();
        std::fs::remove_file(&asked).unwrap();
        got
    };
    // What is piped in is for the program.
    let mut command = repo.harness.command(repo.harness.program());
    command.current_dir(&repo.folder).args(["run", "-w", "piped", "--", "cat"]);
    let ran = Started::new(command, Some(b"yes\n".to_vec())).finish().exits(0);
    assert_eq!((ran.stdout.as_str(), got().as_str()), ("yes\n", "1 ''\n"));

    let words = ["run", "--cwd", repo.folder.to_str().unwrap(), "-w", "typed", "--", "true"];
    let mut person = Person::runs(&repo.harness, SIZE, &words);
    person.types(b"yes\n");
    person.is_left_with(0);
    assert_eq!(got(), "1 ''\n");
    assert!(repo.tree("piped").is_dir() && repo.tree("typed").is_dir());
}

#[test]
fn variables_of_git_do_not_lead_to_another_repository() {
    let mut repo = Repo::new();
    let other = Repo::new();
    for (name, value) in [("GIT_DIR", ".git"), ("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", ".git/index")] {
        repo.harness.set(name, other.folder.join(value));
    }
    let script = "git rev-parse --show-toplevel; echo x > x.txt; git add .; git commit -qm x";
    let ran = repo.ostler(&["run", "-w", "x", "--", "sh", "-c", script]).exits(0);
    assert_eq!(ran.stdout.trim_end(), repo.tree("x").to_str().unwrap());
    other.has_no_traces();
    assert_eq!(other.git(&["log", "--format=%s"]), "first");
}
