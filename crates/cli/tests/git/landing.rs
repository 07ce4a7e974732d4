//! Work lands on a branch when its check passes. Otherwise nothing changes.

use crate::repo::Repo;
use ostler_testkit::patience;

/// A session that has run this script in a tree of its own.
fn worked(repo: &Repo, name: &str, script: &str) {
    repo.ostler(&["run", "-w", "--name", name, "--", "sh", "-c", script]).exits(0);
}

#[test]
fn work_lands_as_one_commit_of_the_person_and_its_tree_can_be_removed() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo two >> a.txt; git add .; git commit -qm inner; echo new > new.txt");
    // The person's own changes do not hinder the landing.
    repo.write("mine.txt", "mine\n");
    repo.write("below/b.txt", "changed\n");
    let landed =
        repo.ostler(&["land", "fix", "-m", "Fix the login", "--check", "test -e new.txt && ! test -e mine.txt"]);
    let landed = landed.exits(0).stdout;
    assert!(landed.contains("landed on main (") && landed.ends_with("1 commit, 2 files\n"), "{landed}");
    assert_eq!(repo.git(&["log", "--format=%s by %an", "-2"]), "Fix the login by A Person\nfirst by A Person");
    let id = repo.ostler(&["show", "--json", "fix"]).exits(0).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(repo.git(&["log", "-1", "--format=%(trailers:key=Ostler-Session,valueonly)"]).trim(), id);
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "one\ntwo\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), " M below/b.txt\n?? mine.txt");
    assert!(repo.ostler(&["land", "fix"]).exits(0).stdout.contains("nothing to land"));
    // The session's own commits are kept, so nothing is lost with the tree.
    repo.ostler(&["worktree", "rm", "fix"]).exits(0);
    assert_eq!(repo.git(&["log", "--format=%s", "-2", "refs/ostler/landed/fix"]).lines().nth(1), Some("inner"));
    repo.has_no_traces();
    repo.git(&["fsck", "--no-dangling"]);
}

#[test]
fn the_work_of_an_agent_lands_with_the_first_line_of_its_prompt_as_subject() {
    let repo = Repo::new();
    repo.ostler(&["run", "-w", "--name", "short", "demo", "run-command echo x > x.txt\nand nothing else"]).exits(0);
    repo.ostler(&["land", "short"]).exits(0);
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "run-command echo x > x.txt");
}

#[test]
fn a_conflict_or_a_failed_check_changes_nothing() {
    let repo = Repo::new();
    worked(&repo, "left", "echo left > a.txt");
    worked(&repo, "right", "echo right > a.txt; echo more > more.txt");
    repo.ostler(&["land", "left"]).exits(0);
    let before = repo.state();
    let conflict = repo.ostler(&["land", "right"]).exits(1);
    let words = conflict.complaint();
    assert!(
        words.contains("in a.txt")
            && words.contains("nothing has changed on main, and the work is committed on ostler/right")
            && words.contains("ostler resume"),
        "{words}"
    );
    assert_eq!(repo.state(), before);
    assert_eq!(repo.git(&["show", "ostler/right:a.txt"]), "right", "its work is on its branch");

    worked(&repo, "third", "echo third > third.txt");
    // A check that cannot be started is refused before anything is built or committed.
    let branch = repo.git(&["rev-parse", "ostler/third"]);
    for check in ["", " ", "no-such-program-here --now", "if"] {
        for refused in [&["land", "third", "--check", check][..], &["compare", "third", "--check", check]] {
            let refused = repo.ostler(refused).exits(2);
            assert!(refused.complaint().contains("cannot be started"), "{refused:?}");
        }
        assert_eq!((repo.state(), repo.git(&["rev-parse", "ostler/third"])), (before.clone(), branch.clone()));
    }
    for (check, said) in [("echo seen; exit 3", "seen"), ("true; no-such-program", "not found"), ("kill -9 $$", "")] {
        let failed = repo.ostler(&["land", "third", "--check", check]).exits(1);
        let words = failed.complaint();
        assert!(words.contains("the check failed") && words.contains("nothing has changed"), "{words}");
        // The message names the session that has the output of the check.
        let log = repo.ostler(&["logs", words.rsplit(' ').next().unwrap()]).exits(0);
        assert!(format!("{}{}", log.stdout, log.stderr).contains(said), "{log:?}");
        assert_eq!(repo.state(), before);
    }
    for dry in [&["land", "third", "--dry-run"][..], &["land", "third", "--dry-run", "--rebase"]] {
        let branch = repo.git(&["rev-parse", "ostler/third"]);
        repo.ostler(dry).exits(0);
        assert_eq!((repo.state(), repo.git(&["rev-parse", "ostler/third"])), (before.clone(), branch));
    }
    repo.ostler(&["land", "third", "--check", "grep -q left a.txt && grep -q third third.txt"]).exits(0);
    assert_eq!(repo.git(&["log", "--format=%s"]).lines().count(), 3);
    assert!(
        !repo
            .folder
            .join(".worktrees")
            .read_dir()
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with('.') })
    );
}

#[test]
fn each_commit_of_those_that_land_one_by_one_has_to_pass_the_check() {
    let repo = Repo::new();
    let script = "touch broken; git add .; git commit -qm 'break it'; git rm -q broken; git commit -qm 'repair it'; echo 3 > 3.txt";
    worked(&repo, "steps", script);
    let before = repo.state();
    let refused = repo.ostler(&["land", "steps", "--rebase", "--check", "! test -e broken"]).exits(1);
    assert!(refused.complaint().contains("the check failed at the commit \"break it\""), "{refused:?}");
    assert_eq!(repo.state(), before);
    // Each commit is checked with its own files, in order.
    let seen = repo.harness.root().join("seen");
    let check = format!("echo $(ls) >> {}", seen.display());
    repo.ostler(&["land", "steps", "--rebase", "--check", &check]).exits(0);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert_eq!(seen, "a.txt below broken\na.txt below\n3.txt a.txt below\n");
    assert_eq!(repo.git(&["log", "--format=%s", "-3"]).lines().skip(1).collect::<Vec<_>>(), ["repair it", "break it"]);
}

#[test]
fn commits_land_one_by_one_or_merged_when_that_is_asked_for() {
    let script = "for n in 1 2; do echo $n > $n.txt; git add .; git commit -qm \"step $n\"; done; echo 3 > 3.txt";
    let repo = Repo::new();
    worked(&repo, "steps", script);
    repo.write("meanwhile.txt", "x\n");
    repo.commit("meanwhile");
    repo.ostler(&["land", "steps", "--rebase", "-m", "step 3"]).exits(0);
    let log = repo.git(&["log", "--format=%s|%(trailers:key=Ostler-Session,valueonly,separator=)", "-4"]);
    let subjects: Vec<&str> = log.lines().map(|line| line.split('|').next().unwrap()).collect();
    assert_eq!(subjects, ["step 3", "step 2", "step 1", "meanwhile"]);
    assert!(log.lines().take(3).all(|line| line.split('|').nth(1).unwrap().len() == 8), "{log}");
    assert_eq!(repo.git(&["log", "--merges", "--format=%s"]), "");

    let repo = Repo::new();
    worked(&repo, "steps", script);
    repo.ostler(&["land", "steps", "--merge", "-m", "All steps", "--no-trailers"]).exits(0);
    assert_eq!(repo.git(&["log", "--merges", "--format=%B"]).trim(), "All steps");
    assert!(repo.git(&["branch", "--contains", "ostler/steps"]).contains("main"));
}

#[test]
fn a_branch_that_is_checked_out_moves_with_its_files_or_not_at_all() {
    let repo = Repo::new();
    repo.git(&["branch", "release"]);
    worked(&repo, "fix", "echo fixed > a.txt");
    repo.write("a.txt", "unfinished\n");
    let before = repo.state();
    let refused = repo.ostler(&["land", "fix"]).exits(1);
    assert!(refused.complaint().contains("cannot be moved where it is checked out"), "{refused:?}");
    assert_eq!(repo.state(), before);
    // A branch that is not checked out anywhere.
    repo.ostler(&["land", "fix", "--into", "release"]).exits(0);
    assert_eq!(repo.git(&["show", "release:a.txt"]), "fixed");
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "unfinished\n");
    // A name that is not a branch is refused before anything is committed.
    repo.git(&["tag", "v1"]);
    worked(&repo, "later", "echo later > later.txt");
    for name in ["nowhere", "v1", "HEAD", ""] {
        let refused = repo.ostler(&["land", "later", "--into", name]).exits(2);
        assert!(refused.complaint().contains(&format!("there is no branch {name:?}")), "{refused:?}");
        assert_eq!(repo.git(&["rev-parse", "ostler/later"]), repo.git(&["rev-parse", "main"]));
    }
    repo.git(&["checkout", "--quiet", "a.txt"]);
    // A lock that another git process has left.
    repo.write(".git/index.lock", "");
    let before = repo.state();
    repo.ostler(&["land", "fix"]).exits(1);
    assert_eq!(repo.state(), before);
    std::fs::remove_file(repo.folder.join(".git/index.lock")).unwrap();
    repo.ostler(&["land", "fix"]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "fixed\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn files_and_index_are_restored_when_the_branch_cannot_be_moved() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo two >> a.txt; echo new > new.txt; rm below/b.txt");
    repo.write("mine.txt", "mine\n");
    let before = repo.git(&["rev-parse", "main"]);
    // Another git process is about to move the branch, or was killed when it was.
    repo.write(".git/refs/heads/main.lock", "");
    let refused = repo.ostler(&["land", "fix"]).exits(1);
    assert!(refused.complaint().contains("main.lock"), "{refused:?}");
    std::fs::remove_file(repo.folder.join(".git/refs/heads/main.lock")).unwrap();
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? mine.txt");
    assert_eq!(repo.git(&["rev-parse", "main"]), before);
    let landed = repo.ostler(&["land", "fix"]).exits(0).stdout;
    assert!(landed.contains("landed on main"), "{landed}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? mine.txt");
    assert_eq!(std::fs::read_to_string(repo.folder.join("new.txt")).unwrap(), "new\n");
    repo.git(&["fsck", "--no-dangling"]);
}

#[test]
fn a_session_at_work_or_without_a_tree_or_a_branch_does_not_land() {
    let repo = Repo::new();
    repo.ostler(&["run", "-d", "-w", "busy", "--name", "busy", "--", "sleep", "600"]).exits(0);
    assert!(repo.ostler(&["land", "busy"]).exits(7).complaint().contains("is still working"));
    repo.ostler(&["stop", "busy"]).exits(0);
    repo.ostler(&["run", "--name", "plain", "--", "true"]).exits(0);
    assert!(repo.ostler(&["land", "plain"]).exits(2).complaint().contains("has no worktree"));
    repo.git(&["checkout", "--quiet", "--detach"]);
    worked(&repo, "no branch", "echo x > x.txt");
    assert!(repo.ostler(&["land", "no branch"]).exits(2).complaint().contains("--into"));
    // A session that waits for messages may land the work that it has done.
    repo.git(&["checkout", "--quiet", "main"]);
    repo.ostler(&["run", "-d", "--keep", "-w", "kept", "--name", "kept", "demo", "say hello"]).exits(0);
    repo.ostler(&["wait", "--until", "turn", "kept"]).exits(0);
    std::fs::write(repo.tree("kept").join("k.txt"), "k\n").unwrap();
    repo.ostler(&["land", "kept"]).exits(0);
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "say hello");
}

#[test]
fn many_sessions_land_at_once_one_after_the_other_and_every_commit_passes_the_check() {
    let repo = Repo::new();
    // Each session adds a file; two of them add one that the check refuses.
    let names: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    for name in &names {
        let file = if ["s3", "s7"].contains(&name.as_str()) { "wrong" } else { "right" };
        worked(&repo, name, &format!("echo {name} > {file}-{name}.txt"));
    }
    let check = "! ls wrong-* 2>/dev/null";
    let landed: Vec<Option<i32>> = std::thread::scope(|scope| {
        let landing: Vec<_> =
            names.iter().map(|name| scope.spawn(|| repo.ostler(&["land", name, "--check", check]).code)).collect();
        landing.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (name, code) in names.iter().zip(&landed) {
        assert_eq!(*code, Some(i32::from(["s3", "s7"].contains(&name.as_str()))), "{name}");
    }
    assert_eq!(repo.git(&["rev-list", "--count", "main"]), "19");
    assert_eq!(repo.git(&["log", "--merges", "--format=%h"]), "");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    // Every commit at which the branch has ever been passes the check.
    let moves = repo.git(&["log", "--walk-reflogs", "--format=%H", "main"]);
    assert_eq!(moves.lines().count(), 19);
    for commit in moves.lines() {
        repo.git(&["checkout", "--quiet", "--detach", commit]);
        let mut again = repo.harness.command("sh");
        again.current_dir(&repo.folder).args(["-c", check]);
        ostler_testkit::Started::new(again, None).finish().exits(0);
    }
    repo.git(&["checkout", "--quiet", "main"]);
    repo.git(&["fsck", "--no-dangling"]);
}

#[test]
fn work_is_built_and_checked_again_when_the_branch_moves_during_the_check() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo fixed > fixed.txt");
    // The first check waits until a person has committed.
    let (began, done) = (repo.harness.root().join("began"), repo.harness.root().join("done"));
    let check = format!("echo >> {}; until [ -e {} ]; do sleep 0.05; done", began.display(), done.display());
    let landing = repo.start_in(&repo.folder, &["land", "fix", "--check", &check]);
    patience::until("the check has begun", &[], || began.exists().then_some(()));
    repo.write("person.txt", "person\n");
    repo.commit("person");
    std::fs::write(&done, "").unwrap();
    landing.finish().exits(0);
    assert_eq!(std::fs::read_to_string(&began).unwrap().lines().count(), 2, "it was checked again");
    assert_eq!(repo.git(&["log", "--format=%s", "-2"]), "fix\nperson");
    assert!(repo.folder.join("fixed.txt").exists() && repo.folder.join("person.txt").exists());
}

#[test]
fn a_landing_that_is_killed_leaves_the_branch_where_it_was_and_the_next_one_works() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo fixed > fixed.txt");
    let before = repo.state();
    let began = repo.harness.root().join("began");
    let check = format!("echo > {}; exec sleep 600", began.display());
    for _ in 0..2 {
        let landing = repo.start_in(&repo.folder, &["land", "fix", "--check", &check]);
        patience::until("the check has begun", &[], || began.exists().then_some(()));
        std::fs::remove_file(&began).unwrap();
        drop(landing);
        assert_eq!(repo.state(), before);
    }
    repo.ostler(&["land", "fix"]).exits(0);
    assert_eq!(repo.git(&["log", "--format=%s", "-2"]), "fix\nfirst");
    repo.ostler(&["worktree", "rm", "fix"]).exits(0);
    repo.has_no_traces();
    repo.git(&["fsck", "--no-dangling"]);
}

#[test]
fn work_in_the_middle_of_a_merge_or_of_another_session_does_not_land() {
    let repo = Repo::new();
    worked(&repo, "left", "echo left > a.txt; git commit -qam left");
    worked(&repo, "right", "echo right > a.txt; git commit -qam right; git merge -q ostler/left; true");
    let before = repo.state();
    for words in [&["land", "right"][..], &["land", "right", "--dry-run"]] {
        assert!(repo.ostler(words).exits(7).complaint().contains("a merge is in progress"));
        assert_eq!(repo.state(), before);
    }
    // A repository inside the tree, which would land as a name without contents.
    worked(&repo, "inner", "git init -q inner; echo x > inner/x; cd inner; git add .; git commit -qm x");
    assert!(repo.ostler(&["land", "inner"]).exits(7).complaint().contains("is a repository of its own"));
    // Another session works in its tree.
    worked(&repo, "shared", "echo done > done.txt");
    let half = ["run", "-d", "--name", "half", "--", "sh", "-c", "echo half > half.txt; exec sleep 600"];
    repo.ostler_in(&repo.tree("shared"), &half).exits(0);
    assert!(repo.ostler(&["land", "shared"]).exits(7).complaint().contains("half"));
    repo.ostler(&["stop", "half"]).exits(0);
    assert!(repo.ostler(&["land", "shared", "-m", " "]).exits(2).complaint().contains("the message is empty"));
    assert_eq!(repo.state(), before);
}

#[test]
fn a_branch_that_is_being_rebased_or_is_checked_out_twice_does_not_move() {
    let repo = Repo::new();
    worked(&repo, "fix", "echo fixed > fixed.txt");
    repo.git(&["checkout", "--quiet", "-b", "side"]);
    repo.write("a.txt", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.write("a.txt", "main\n");
    repo.commit("main");
    let mut rebase = repo.harness.command("git");
    rebase.current_dir(&repo.folder).args(["rebase", "--quiet", "side"]);
    ostler_testkit::Started::new(rebase, None).finish().exits(1);
    let main = repo.git(&["rev-parse", "refs/heads/main"]);
    let refused = repo.ostler(&["land", "fix"]).exits(1);
    assert!(refused.complaint().contains("a rebase is in progress"), "{refused:?}");
    assert_eq!(repo.git(&["rev-parse", "refs/heads/main"]), main);
    repo.git(&["rebase", "--abort"]);
    repo.git(&["worktree", "add", "--quiet", "--force", "../twice", "main"]);
    assert!(repo.ostler(&["land", "fix"]).exits(1).complaint().contains("checked out in two worktrees"));
    repo.git(&["worktree", "remove", "../twice"]);
    // A person's settings for merging by hand have no effect.
    for setting in ["no", "only"] {
        repo.git(&["config", "merge.ff", setting]);
        worked(&repo, &format!("ff {setting}"), &format!("echo x > {setting}.txt"));
        repo.ostler(&["land", &format!("ff {setting}")]).exits(0);
    }
    // An ignored file of the person is not overwritten.
    worked(&repo, "secret", "echo theirs > key.secret; git add -f key.secret; git commit -qm key");
    repo.write("key.secret", "mine\n");
    repo.ostler(&["land", "secret"]).exits(1);
    assert_eq!(std::fs::read_to_string(repo.folder.join("key.secret")).unwrap(), "mine\n");
}
