//! Trees are removed when nothing is lost with them, and not before.

use crate::repo::{Repo, write};
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Identity, Life, Pidfd, command_line};
use ostler_testkit::{Started, patience};
use rustix::process::Signal;
use std::path::Path;

#[track_caller]
fn is_kept(repo: &Repo, name: &str, why: &str) {
    let refused = repo.ostler(&["worktree", "rm", name]).exits(7);
    assert!(refused.complaint().contains(why), "{refused:?}");
    let collected = repo.ostler(&["worktree", "gc"]).exits(0).stdout;
    assert!(collected.contains(&format!("{name}: kept")), "{collected}");
    assert!(repo.tree(name).is_dir());
    let listed = repo.ostler(&["worktree", "ls"]).exits(0).stdout;
    assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
}

fn made(name: &str, script: &str) -> Repo {
    let repo = Repo::new();
    repo.ostler(&["run", "-w", name, "--", "sh", "-c", script]).exits(0);
    repo
}

#[test]
fn a_tree_without_work_is_removed_with_its_branch() {
    for how in [&["rm", "x"][..], &["gc"]] {
        let repo = made("x", "mkdir build; echo large > build/out");
        let dry = repo.ostler(&["worktree", "gc", "--dry-run"]).exits(0).stdout;
        assert_eq!((dry.as_str(), repo.tree("x").is_dir()), ("x: would be removed\n", true));
        let done = repo.ostler(&[&["worktree"], how].concat()).exits(0).stdout;
        assert_eq!(done, "x: removed\n");
        repo.has_no_traces();
    }
    let repo = Repo::new();
    let none = repo.ostler(&["worktree", "rm", "x"]).exits(3);
    assert!(none.complaint().contains("there is no worktree x"), "{none:?}");
}

#[test]
fn work_that_is_nowhere_else_keeps_its_tree_and_is_saved_before_force_removes_it() {
    let cases = [
        ("echo more >> a.txt", "1 uncommitted change", "a.txt", "one\nmore\n"),
        ("echo new > 'new file.txt'", "1 uncommitted change", "new file.txt", "new\n"),
        ("echo staged > s.txt; git add s.txt; rm s.txt; echo later > s.txt", "uncommitted", "s.txt", "later\n"),
        ("echo c > c.txt; git add .; git commit -qm c", "1 commit that is on no other branch", "c.txt", "c\n"),
        ("git checkout -q --detach; echo d > d.txt; git add .; git commit -qm d", "1 commit", "d.txt", "d\n"),
        ("rm a.txt; mkdir a.txt; echo deep > a.txt/deep", "uncommitted changes", "a.txt/deep", "deep\n"),
    ];
    for (script, why, file, text) in cases {
        let repo = made("x", script);
        let before = repo.state();
        is_kept(&repo, "x", why);
        let removed = repo.ostler(&["worktree", "rm", "--force", "x"]).exits(0).stdout;
        let back = removed.split("get it back with: git ").nth(1).unwrap().trim();
        assert_eq!(repo.state(), before, "{script}");
        repo.has_no_traces();
        // The command in the output brings the work back.
        repo.git(&back.split(' ').collect::<Vec<_>>());
        assert_eq!(repo.git(&["show", &format!("x:{file}")]), text.trim_end(), "{script}");
        repo.git(&["fsck", "--no-dangling"]);
    }
}

#[test]
fn saved_work_is_not_overwritten_by_the_next_removal() {
    let repo = Repo::new();
    for text in ["first", "second"] {
        repo.ostler(&["run", "-w", "x", "--", "sh", "-c", &format!("echo {text} > a.txt")]).exits(0);
        repo.ostler(&["worktree", "rm", "--force", "x"]).exits(0);
    }
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x:a.txt"]), "first");
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x-2:a.txt"]), "second");
    // It is neither in the list of branches nor in that of stashes.
    assert_eq!(repo.git(&["branch", "--all"]), "* main");
    assert_eq!(repo.git(&["stash", "list"]), "");
}

#[test]
fn a_tree_is_removed_when_its_commits_are_elsewhere_too() {
    let commit = "echo c > c.txt; git add .; git commit -qm c";
    for elsewhere in
        [&["merge", "--quiet", "ostler/x"][..], &["branch", "kept", "ostler/x"], &["tag", "kept", "ostler/x"]]
    {
        let repo = made("x", commit);
        is_kept(&repo, "x", "1 commit");
        repo.git(elsewhere);
        repo.ostler(&["worktree", "rm", "x"]).exits(0);
        repo.has_no_traces();
    }
    // A branch of the person's own that was checked out there stays.
    let repo = made("x", "git checkout -qb mine; echo c > c.txt; git add .; git commit -qm c");
    repo.ostler(&["worktree", "rm", "x"]).exits(0);
    repo.has_no_traces();
    assert_eq!(repo.git(&["show", "mine:c.txt"]), "c");
}

#[test]
fn landed_work_counts_as_elsewhere_only_while_the_branch_has_it() {
    for how in [&[][..], &["--merge"], &["--rebase"]] {
        let repo = made("x", "echo c > c.txt; git add .; git commit -qm c; echo d > d.txt");
        repo.write("meanwhile.txt", "m\n");
        let before = repo.commit("meanwhile");
        repo.ostler(&[&["land", "x"], how].concat()).exits(0);
        let landed = repo.git(&["rev-parse", "main"]);
        assert!(
            repo.ostler(&["worktree", "gc", "--dry-run"]).exits(0).stdout.contains("x: would be removed"),
            "{how:?}"
        );
        // The person takes the work back from the branch.
        repo.git(&["reset", "--quiet", "--hard", &before]);
        is_kept(&repo, "x", "2 commits that are on no other branch");
        assert_eq!(repo.git(&["show", "ostler/x:d.txt"]), "d");
        // Now a tag has it.
        repo.git(&["tag", "kept", &landed]);
        repo.ostler(&["worktree", "rm", "x"]).exits(0);
        repo.has_no_traces();
    }
}

#[test]
fn landed_work_of_an_earlier_session_of_the_same_name_is_saved_and_not_overwritten() {
    let repo = Repo::new();
    for text in ["first", "second"] {
        repo.ostler(&["run", "-w", "x", "--", "sh", "-c", &format!("echo {text} > {text}.txt")]).exits(0);
        repo.ostler(&["land", "x"]).exits(0);
        repo.ostler(&["worktree", "rm", "x"]).exits(0);
        repo.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    }
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x:first.txt"]), "first");
    assert_eq!(repo.git(&["show", "refs/ostler/landed/x:second.txt"]), "second");
}

#[test]
fn work_is_saved_in_a_repository_with_sha256_object_names() {
    let repo = Repo::empty("repo");
    std::fs::remove_dir_all(repo.folder.join(".git")).unwrap();
    repo.git(&["init", "--quiet", "--initial-branch", "main", "--object-format=sha256"]);
    repo.write("a.txt", "one\n");
    repo.commit("first");
    for text in ["first", "second"] {
        repo.ostler(&["run", "-w", "x", "--", "sh", "-c", &format!("echo {text} > a.txt")]).exits(0);
        repo.ostler(&["worktree", "rm", "--force", "x"]).exits(0);
    }
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x:a.txt"]), "first");
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x-2:a.txt"]), "second");
}

#[test]
fn an_unfinished_merge_a_session_and_a_process_keep_a_tree() {
    let repo = made("x", "echo left > a.txt; git commit -qam left");
    repo.write("a.txt", "right\n");
    repo.commit("right");
    repo.git(&["branch", "also", "ostler/x"]);
    let mut merge = repo.harness.command("git");
    merge.current_dir(repo.tree("x")).args(["merge", "main"]);
    Started::new(merge, None).finish().exits(1);
    is_kept(&repo, "x", "a merge in progress");
    repo.ostler(&["worktree", "rm", "--force", "x"]).exits(0);
    assert!(repo.git(&["show", "refs/ostler/saved/x:a.txt"]).contains("<<<<<<<"));

    let id = repo.ostler(&["run", "-d", "-w", "y", "--", "sleep", "600"]).exits(0).stdout;
    for words in [&["worktree", "rm", "y"][..], &["worktree", "rm", "--force", "y"]] {
        let refused = repo.ostler(words).exits(7);
        assert!(refused.complaint().contains("ostler stop"), "{refused:?}");
    }
    assert!(repo.ostler(&["worktree", "gc"]).exits(0).stdout.contains("y: kept"));
    repo.ostler(&["stop", id.trim()]).exits(0);

    let mut inside = repo.harness.command("sleep");
    inside.current_dir(repo.tree("y")).arg("600");
    let inside = Started::new(inside, None);
    is_kept(&repo, "y", "1 process working in it");
    drop(inside);
    repo.ostler(&["worktree", "rm", "y"]).exits(0);
}

#[test]
fn a_removal_waits_for_the_snapshot_of_the_last_turn() {
    for words in [&["worktree", "rm", "x"][..], &["worktree", "gc"]] {
        let mut repo = Repo::new();
        let pauses = repo.harness.root().join("pauses");
        std::fs::create_dir(&pauses).unwrap();
        repo.harness.set(pause_points::VARIABLE, &pauses);
        let token = pauses.join(format!("{}.stop", pause_points::token(Role::Snapshot, Point::SnapshotEntered)));
        std::fs::write(&token, "x").unwrap();
        repo.ostler(&["run", "-w", "x", "demo", "say hello"]).exits(0);
        let id = repo.ostler(&["show", "--json", "x"]).exits(0).json()["id"].as_str().unwrap().to_owned();
        let is_it = |one: &Identity| {
            command_line(one.pid()).get(1).is_some_and(|word| word == "__turn") && one.look().unwrap() == Life::Stopped
        };
        let stopped = patience::until("it is stopped", &[&pauses], || repo.harness.alive().into_iter().find(is_it));
        let removing = repo.start_in(&repo.folder, words);
        Pidfd::open(&stopped).unwrap().unwrap().signal(Signal::CONT).unwrap();
        assert_eq!(removing.finish().exits(0).stdout, "x: removed\n");
        repo.has_no_traces();
        let noted = std::fs::read_to_string(repo.harness.home().join("sessions").join(id).join("turns.jsonl")).unwrap();
        assert!(noted.contains("\"what\":\"ended\"") && !noted.contains("\"what\":\"failed\""), "{noted}");
    }
}

#[test]
fn a_tree_whose_folder_was_deleted_is_listed_and_its_commits_are_kept() {
    let repo = made("x", "echo c > c.txt; git add .; git commit -qm c");
    std::fs::remove_dir_all(repo.tree("x")).unwrap();
    // The tree is locked, so `git worktree prune` keeps its record.
    repo.git(&["worktree", "prune"]);
    let listed = repo.ostler(&["worktree", "ls"]).exits(0).stdout;
    assert!(listed.contains("its folder is gone") && listed.contains("1 commit"), "{listed}");
    let says_where = || {
        for words in [&["land", "@last"][..], &["diff", "@last"]] {
            let refused = repo.ostler(words).exits(3);
            let words = refused.complaint();
            assert!(words.contains("has no folder any more") && words.contains("git log ostler/x"), "{words}");
        }
    };
    says_where();
    // Also without git's record the message says where the work is.
    repo.git(&["worktree", "unlock", repo.tree("x").to_str().unwrap()]);
    repo.git(&["worktree", "prune"]);
    says_where();
    repo.git(&[
        "worktree",
        "add",
        "--quiet",
        "--lock",
        "--reason",
        "it belongs to an ostler session; to remove it: ostler worktree rm x",
        ".worktrees/x",
        "ostler/x",
    ]);
    std::fs::remove_dir_all(repo.tree("x")).unwrap();
    assert!(repo.ostler(&["worktree", "rm", "x"]).exits(7).complaint().contains("1 commit"));
    repo.ostler(&["worktree", "rm", "--force", "x"]).exits(0);
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x:c.txt"]), "c");
    repo.has_no_traces();
}

#[test]
fn gc_removes_no_tree_of_a_session_that_is_starting() {
    let repo = Repo::new();
    let names: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
    std::thread::scope(|scope| {
        let starting: Vec<_> = names
            .iter()
            .map(|name| scope.spawn(|| repo.ostler(&["run", "-d", "-w", name, "--", "sleep", "600"]).exits(0)))
            .collect();
        while starting.iter().any(|one| !one.is_finished()) {
            repo.ostler(&["worktree", "gc"]).exits(0);
        }
        for one in starting {
            one.join().unwrap();
        }
    });
    for name in &names {
        assert!(repo.tree(name).join("a.txt").exists(), "{name}");
    }
    repo.ostler(&["stop", "--all"]);
    let collected = repo.ostler(&["worktree", "gc"]).exits(0).stdout;
    assert_eq!(collected.matches(": removed").count(), names.len(), "{collected}");
    repo.has_no_traces();
}

#[test]
fn a_launch_that_is_killed_at_any_moment_leaves_nothing_that_cannot_be_removed() {
    let repo = Repo::new();
    for number in 0..200 {
        write(&repo.folder.join(format!("many/{number}.txt")), &"line\n".repeat(200));
    }
    repo.commit("many");
    let before = repo.state();
    for round in 0..12_u32 {
        let name = format!("k{round}");
        let started = repo.start_in(&repo.folder, &["run", "-d", "-w", &name, "--", "true"]);
        // Killed when this many files are there, or when the launch has ended.
        until_there(&repo.tree(&name), round as usize * 20, &started);
        drop(started);
    }
    repo.ostler(&["stop", "--all"]);
    for path in repo.tree("").read_dir().into_iter().flatten() {
        let name = path.unwrap().file_name().into_string().unwrap();
        repo.ostler(&["worktree", "rm", "--force", &name]).exits(0);
    }
    assert_eq!(repo.state(), before);
    repo.git(&["fsck", "--no-dangling"]);
}

/// Waits until a tree has this many files in `many`, or the process has ended.
fn until_there(tree: &Path, files: usize, started: &Started) {
    ostler_testkit::patience::until("the tree is being made", &[], || {
        let there = std::fs::read_dir(tree.join("many")).map_or(0, Iterator::count);
        let gone = !started.process().may_live();
        (there >= files || gone).then_some(())
    });
}

#[test]
fn changes_that_git_was_told_to_ignore_and_files_only_in_the_index_are_work_too() {
    for hide in ["--skip-worktree", "--assume-unchanged"] {
        let repo = made("x", &format!("git update-index {hide} a.txt; echo hidden >> a.txt"));
        assert!(repo.ostler(&["diff", "@last"]).exits(0).stdout.contains("+hidden"), "{hide}");
        is_kept(&repo, "x", "1 uncommitted change");
        repo.ostler(&["worktree", "rm", "--force", "x"]).exits(0);
        assert!(repo.git(&["show", "refs/ostler/saved/x:a.txt"]).contains("hidden"), "{hide}");
    }
    let repo = made("x", "echo staged > s.txt; git add s.txt; rm s.txt; echo other > other.txt");
    repo.ostler(&["worktree", "rm", "--force", "x"]).exits(0);
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x^2:s.txt"]), "staged");
    assert_eq!(repo.git(&["show", "refs/ostler/saved/x:other.txt"]), "other");
}

#[test]
fn repositories_inside_of_a_tree_keep_it_and_are_not_removed_by_force() {
    let inner = "mkdir -p build; git init -q {}; cd {}; echo x > x; git add .; git commit -qm x";
    // One that is untracked in the tree, and one that is ignored there.
    for folder in ["inner", "build/inner"] {
        let repo = made("x", &inner.replace("{}", folder));
        is_kept(&repo, "x", "of its own inside");
        assert!(repo.ostler(&["worktree", "rm", "--force", "x"]).exits(7).complaint().contains("move it away"));
        assert!(repo.tree("x").join(folder).join("x").exists());
    }
}

#[test]
fn trees_that_a_person_has_made_are_never_removed() {
    let repo = made("ours", "true");
    repo.git(&["worktree", "add", "--quiet", ".worktrees/mine", "-b", "mine"]);
    repo.git(&[
        "worktree",
        "add",
        "--quiet",
        "--lock",
        "--reason",
        "leave it",
        ".worktrees/locked",
        "-b",
        "ostler/locked",
    ]);
    let collected = repo.ostler(&["worktree", "gc"]).exits(0).stdout;
    assert_eq!(collected, "ours: removed\n");
    repo.ostler(&["worktree", "rm", "--force", "mine"]).exits(3);
    assert!(repo.tree("mine").is_dir() && repo.tree("locked").is_dir());
}

#[test]
fn a_folder_that_git_no_longer_knows_is_kept() {
    let repo = made("x", "echo new > new.txt");
    std::fs::remove_file(repo.tree("x").join(".git")).unwrap();
    let before = repo.state();
    is_kept(&repo, "x", "without a valid .git file");
    repo.ostler(&["worktree", "rm", "--force", "x"]).exits(1);
    repo.ostler(&["land", "x"]).exits(1);
    assert!(repo.tree("x").join("new.txt").exists());
    assert_eq!(repo.state(), before);
}

#[test]
fn a_change_in_the_second_in_which_the_tree_was_made_is_seen_later() {
    let repo = Repo::new();
    // With these settings git compares seconds, and no ctime, which a test cannot set.
    repo.git(&["config", "core.trustctime", "false"]);
    repo.git(&["config", "core.checkStat", "minimal"]);
    repo.ostler(&["run", "-w", "x", "--", "true"]).exits(0);
    let (file, index) = (repo.tree("x").join("a.txt"), repo.folder.join(".git/worktrees/x/index"));
    // The tree was made an hour ago, and its file was changed in the same second, to a text of the same size.
    let date = std::fs::metadata(&file).unwrap().modified().unwrap() - std::time::Duration::from_secs(3600);
    let put_back = |path: &Path| std::fs::File::options().write(true).open(path).unwrap().set_modified(date).unwrap();
    put_back(&file);
    repo.git_in(&repo.tree("x"), &["update-index", "--refresh"]);
    std::fs::write(&file, "two\n").unwrap();
    put_back(&file);
    put_back(&index);
    assert!(repo.ostler(&["diff", "x"]).exits(0).stdout.contains("+two"));
    is_kept(&repo, "x", "1 uncommitted change");
    repo.ostler(&["land", "x"]).exits(0);
    assert_eq!(repo.git(&["show", "main:a.txt"]), "two");
}
