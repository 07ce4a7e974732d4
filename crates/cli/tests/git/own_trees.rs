//! Sessions work in trees of their own, and the person's own tree stays as it is.

use crate::repo::Repo;
use serde_json::Value;

#[test]
fn two_sessions_change_the_same_file_and_neither_the_person_nor_the_other_sees_it() {
    let repo = Repo::new();
    // Unfinished work of the person.
    repo.write("a.txt", "unfinished\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.git(&["status"]);
    let before = repo.state();
    let base = repo.git(&["rev-parse", "HEAD"]);
    for name in ["left", "right"] {
        let script = format!("cat a.txt; echo {name} > a.txt; echo new > {name}.txt; git status --short");
        let ran = repo.ostler(&["run", "--worktree", name, "--", "sh", "-c", &script]).exits(0);
        assert!(ran.stdout.starts_with("one\n"), "it begins with what is committed: {ran:?}");
        let shown = repo.ostler(&["show", "--json", "@last"]).exits(0).json();
        let path = repo.tree(name);
        assert_eq!(shown["cwd"], path.to_str().unwrap());
        assert_eq!(shown["branch"], format!("ostler/{name}"));
        let tree = &shown["worktree"];
        assert_eq!((&tree["name"], &tree["path"]), (&name.into(), &path.to_str().unwrap().into()));
        assert_eq!((&tree["base"], &tree["from"]), (&Value::from(base.as_str()), &"main".into()));
        assert_eq!(shown["changes"], serde_json::json!({"ahead": 0, "behind": 0, "changed": 2}));
        let words = repo.ostler(&["show", "@last"]).exits(0).stdout;
        assert!(words.contains("from main") && words.contains("2 files changed"), "{words}");
    }
    assert_eq!(repo.state(), before);
    // The session has the name of its tree.
    let diff = repo.ostler(&["diff", "right"]).exits(0).stdout;
    assert!(diff.contains("-one\n+right\n") && diff.contains("b/right.txt") && !diff.contains("left"), "{diff}");
    assert!(repo.ostler(&["diff", "--stat", "@last"]).exits(0).stdout.contains("2 files changed"));
    // The session's own index stays as it is, too.
    assert_eq!(repo.git_in(&repo.tree("right"), &["diff", "--cached", "--name-only"]), "");
}

#[test]
fn commits_in_a_tree_are_counted_and_commits_from_the_branch_are_not_the_sessions_work() {
    let repo = Repo::new();
    let work = "echo mine > mine.txt; git add .; git commit -qm mine";
    repo.ostler(&["run", "-w", "work", "--", "sh", "-c", work]).exits(0);
    repo.write("theirs.txt", "theirs\n");
    repo.commit("theirs");
    let changes = |repo: &Repo| repo.ostler(&["show", "--json", "@last"]).exits(0).json()["changes"].clone();
    assert_eq!(changes(&repo), serde_json::json!({"ahead": 1, "behind": 1, "changed": 1}));
    repo.git_in(&repo.tree("work"), &["merge", "--quiet", "--no-edit", "main"]);
    assert_eq!(changes(&repo), serde_json::json!({"ahead": 2, "behind": 0, "changed": 1}));
    let diff = repo.ostler(&["diff", "@last"]).exits(0).stdout;
    assert!(diff.contains("mine.txt") && !diff.contains("theirs"), "{diff}");
    // The diff is the same after the work has landed.
    repo.git(&["merge", "--quiet", "ostler/work"]);
    assert!(repo.ostler(&["diff", "@last"]).exits(0).stdout.contains("mine.txt"));
}

#[test]
fn a_command_without_a_tree_of_its_own_has_no_diff() {
    let repo = Repo::new();
    repo.ostler(&["run", "--", "true"]).exits(0);
    let refused = repo.ostler(&["diff", "@last"]).exits(2);
    assert!(refused.complaint().contains("has no snapshots of its files"), "{refused:?}");
}

#[test]
fn ignored_files_that_are_named_are_copied_and_a_session_starts_in_the_same_subfolder() {
    let repo = Repo::new();
    repo.write(".worktreeinclude", "*.secret\nb.txt\nnot-ignored\n");
    repo.commit("what comes along");
    repo.write("key.secret", "key\n");
    repo.write("below/other.secret", "other\n");
    repo.write("build/large", "not named\n");
    repo.write("not-ignored", "not ours\n");
    std::os::unix::fs::symlink("key.secret", repo.folder.join("link.secret")).unwrap();
    let script = "pwd; cat other.secret ../key.secret ../link.secret; ls ..";
    let ran = repo.ostler_in(&repo.folder.join("below"), &["run", "-w", "x", "--", "sh", "-c", script]).exits(0);
    let below = repo.tree("x").join("below");
    assert!(ran.stdout.starts_with(&format!("{}\nother\nkey\nkey\n", below.display())), "{ran:?}");
    assert!(!ran.stdout.contains("build") && !ran.stdout.contains("not-ignored"), "{ran:?}");
    assert!(repo.tree("x").join("link.secret").is_symlink());
    // The folder of the trees is not in the person's status: it was added to the exclude file, once.
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? not-ignored");
    repo.ostler(&["run", "-w", "y", "--", "true"]).exits(0);
    let exclude = std::fs::read_to_string(repo.folder.join(".git/info/exclude")).unwrap();
    assert_eq!(exclude.matches(".worktrees").count(), 1, "{exclude}");
}

#[test]
fn a_copied_file_is_not_work_until_it_is_changed_even_if_the_commit_does_not_ignore_it() {
    let repo = Repo::new();
    repo.write(".worktreeinclude", ".env\nodd*/\n");
    repo.commit("what comes along");
    // This .gitignore is not committed, so the tree of a session does not have it.
    repo.write(".gitignore", "*.secret\nbuild/\n.env\nodd*/\n");
    repo.write(".env", "password\n");
    repo.write("odd [x]*/é", "password\n");
    for name in ["x", "y"] {
        repo.ostler(&["run", "-w", "--name", name, "--", "sh", "-c", "cat .env; cat odd*/*; echo work > work.txt"])
            .exits(0);
    }
    assert_eq!(repo.ostler(&["diff", "--stat", "x"]).exits(0).stdout.matches('|').count(), 1);
    let listed = repo.ostler(&["worktree", "ls"]).exits(0).stdout;
    assert_eq!(listed.matches("1 uncommitted change").count(), 2, "{listed}");
    repo.ostler(&["land", "x", "--check", "test -e work.txt"]).exits(0);
    assert_eq!(repo.git(&["show", "--name-only", "--format=", "main"]), "work.txt");
    assert_eq!(repo.git(&["log", "--all", "--format=", "--name-only", "--", ".env", "odd*"]), "");
    repo.ostler(&["worktree", "rm", "x"]).exits(0);
    // What the session has changed is its work.
    let changed = repo.tree("y").join(".env");
    std::fs::write(&changed, "other\n").unwrap();
    let diff = repo.ostler(&["diff", "y"]).exits(0).stdout;
    assert!(diff.contains("+other") && !diff.contains("password"), "{diff}");
    repo.ostler(&["worktree", "rm", "y"]).exits(7);
    assert_eq!(std::fs::read_to_string(&changed).unwrap(), "other\n");
    let forced = repo.ostler(&["worktree", "rm", "--force", "y"]).exits(0);
    assert_eq!(repo.git(&["show", "refs/ostler/saved/y:.env"]), "other", "{forced:?}");
    assert_eq!(std::fs::read_to_string(repo.folder.join(".env")).unwrap(), "password\n");
}

#[test]
fn copied_files_that_are_ignored_do_not_land_and_do_not_keep_the_tree() {
    let repo = Repo::new();
    repo.write(".worktreeinclude", ".env\n*.secret\n");
    repo.write(".gitignore", "*.secret\nbuild/\n.env\n");
    repo.commit("what comes along");
    repo.write(".env", "password\n");
    repo.write("below/key.secret", "key\n");
    for name in ["x", "y"] {
        repo.ostler(&[
            "run",
            "-w",
            "--name",
            name,
            "--",
            "sh",
            "-c",
            "cat .env below/key.secret; echo work > work.txt",
        ])
        .exits(0);
    }
    assert_eq!(repo.ostler(&["diff", "--stat", "x"]).exits(0).stdout.matches('|').count(), 1);
    repo.ostler(&["land", "x", "--check", "test -e work.txt -a -e .env"]).exits(0);
    assert_eq!(repo.git(&["show", "--name-only", "--format=", "main"]), "work.txt");
    repo.ostler(&["worktree", "rm", "x"]).exits(0);
    repo.ostler(&["worktree", "rm", "--force", "y"]).exits(0);
    assert_eq!(repo.git(&["show", "refs/ostler/saved/y:work.txt"]), "work");
    assert_eq!(repo.git(&["log", "--all", "--format=", "--name-only", "--", ".env", "*.secret"]), "");
}

#[test]
fn the_word_after_the_option_is_a_name_an_agent_or_a_prompt() {
    let repo = Repo::new();
    let told = |words: &[&str]| {
        repo.ostler(&[&["run"], words].concat()).exits(0);
        let shown = repo.ostler(&["show", "--json", "@last"]).exits(0).json();
        let tree = shown["worktree"]["name"].as_str().unwrap().to_owned();
        let tree = if shown["id"] == tree.as_str() { "its id".to_owned() } else { tree };
        (shown["agent"].as_str().unwrap().to_owned(), shown["prompt"].as_str().unwrap_or_default().to_owned(), tree)
    };
    let is = |agent: &str, prompt: &str, tree: &str| (agent.to_owned(), prompt.to_owned(), tree.to_owned());
    assert_eq!(told(&["-w", "demo", "say hello"]), is("demo", "say hello", "its id"));
    assert_eq!(told(&["demo", "-w", "say hello"]), is("demo", "say hello", "its id"));
    assert_eq!(told(&["demo", "say hello", "-w"]), is("demo", "say hello", "its id"));
    assert_eq!(told(&["-w", "one", "demo", "say hello"]), is("demo", "say hello", "one"));
    assert_eq!(told(&["demo", "say hello", "--worktree=two"]), is("demo", "say hello", "two"));
    assert_eq!(
        told(&["-w", "demo", "say hello", "--name", "Fix (the) login?"]),
        is("demo", "say hello", "Fix-the-login")
    );
}

#[test]
fn a_tree_begins_with_the_commit_that_is_asked_for() {
    let repo = Repo::new();
    let first = repo.git(&["rev-parse", "HEAD"]);
    repo.write("a.txt", "second\n");
    repo.commit("second");
    repo.git(&["tag", "v1", &first]);
    repo.git(&["branch", "old", &first]);
    for (base, from) in [("v1", Value::Null), ("old", "old".into()), ("HEAD~1", Value::Null)] {
        let ran = repo.ostler(&["run", "-w", "--base", base, "--", "cat", "a.txt"]).exits(0);
        assert_eq!(ran.stdout, "one\n", "{base}");
        let tree = repo.ostler(&["show", "--json", "@last"]).exits(0).json()["worktree"].clone();
        assert_eq!((&tree["base"], tree.get("from").unwrap_or(&Value::Null)), (&Value::from(first.as_str()), &from));
    }
}

#[test]
fn a_second_session_in_one_tree_gets_a_warning_or_is_refused() {
    let repo = Repo::new();
    repo.ostler(&["run", "-d", "--keep", "demo", "say hello", "--name", "first"]).exits(0);
    let second = repo.ostler_in(&repo.folder.join("below"), &["run", "demo", "say more"]).exits(0);
    assert!(second.stderr.contains("is open in the same tree"), "{second:?}");
    let refused = repo.ostler(&["run", "--exclusive", "demo", "say more"]).exits(7);
    assert!(refused.complaint().contains("first"), "{refused:?}");
    for apart in [&["run", "-w", "demo", "say more"][..], &["run", "--", "true"], &["run", "-w", "--", "true"]] {
        assert!(!repo.ostler(apart).exits(0).stderr.contains("same tree"));
    }
    repo.ostler(&["stop", "first"]).exits(0);
    let alone = repo.ostler(&["run", "--exclusive", "demo", "say more"]).exits(0);
    assert!(!alone.stderr.contains("same tree"), "{alone:?}");
}

#[test]
fn a_copied_conversation_gets_a_tree_with_the_files_of_the_original() {
    let repo = Repo::new();
    repo.ostler(&["run", "--name", "plain", "demo", "say hello"]).exits(0);
    repo.write("a.txt", "unfinished\n");
    let before = repo.state();
    // From the person's own tree: what is committed there.
    repo.ostler(&["fork", "-w", "plain", "say more", "--name", "copy"]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.tree("copy").join("a.txt")).unwrap(), "one\n");
    // From the tree of a session: also what is not committed.
    std::fs::write(repo.tree("copy").join("a.txt"), "half done\n").unwrap();
    std::fs::write(repo.tree("copy").join("new.txt"), "new\n").unwrap();
    let index = std::fs::read(repo.folder.join(".git/worktrees/copy/index")).unwrap();
    repo.ostler(&["fork", "--worktree=second", "copy", "say other"]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.tree("second").join("a.txt")).unwrap(), "half done\n");
    assert_eq!(std::fs::read_to_string(repo.tree("second").join("new.txt")).unwrap(), "new\n");
    assert_eq!(std::fs::read(repo.folder.join(".git/worktrees/copy/index")).unwrap(), index);
    assert_eq!(repo.ostler(&["diff", "second"]).exits(0).stdout, "", "the copied changes are not its own work");
    let shown = repo.ostler(&["show", "--json", "second"]).exits(0).json();
    assert_eq!((&shown["worktree"]["from"], &shown["branch"]), (&"main".into(), &"ostler/second".into()));
    // The name of the tree may also be the word after the option, as with `run`.
    repo.ostler(&["fork", "copy", "-w", "fourth", "say fourth"]).exits(0);
    repo.ostler(&["fork", "-w", "fifth", "copy", "say fifth"]).exits(0);
    repo.ostler(&["fork", "copy", "-w", "say sixth", "--name", "sixth"]).exits(0);
    for (name, said) in [("fourth", "fourth"), ("fifth", "fifth"), ("sixth", "sixth")] {
        assert!(repo.tree(name).is_dir(), "{name}");
        assert!(repo.ostler(&["logs", name]).exits(0).stdout.ends_with(&format!("{said}\n")), "{name}");
    }
    // With --base: the commit that is asked for.
    repo.ostler(&["fork", "-w", "--base", "main", "copy", "say third", "--name", "third"]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.tree("third").join("a.txt")).unwrap(), "one\n");
    assert_eq!(repo.state(), before);
    repo.git(&["checkout", "--quiet", "a.txt"]);
    repo.ostler(&["land", "second"]).exits(0);
    assert_eq!(repo.git(&["show", "main:new.txt"]), "new");
}

#[test]
fn a_conversation_that_cannot_be_found_from_another_folder_is_not_resumed_in_a_tree() {
    let repo = Repo::new();
    repo.ostler(&["run", "--name", "talk", "demo", "say hello"]).exits(0);
    let shown = |repo: &Repo| {
        let mut shown = repo.ostler(&["show", "--json", "talk"]).exits(0).json();
        // `quiet_s` grows with time, and snapshots are made after the end.
        shown["quiet_s"] = 0.into();
        shown["snapshots"] = serde_json::Value::Null;
        shown
    };
    let (before, state) = (shown(&repo), repo.state());
    let refused = repo.ostler(&["resume", "-w", "talk", "say more"]).exits(2);
    assert!(refused.complaint().contains("ostler fork --worktree"), "{refused:?}");
    repo.ostler(&["fork", "-w", "--base", "nowhere", "talk", "say x"]).exits(2);
    assert_eq!((shown(&repo), repo.state()), (before, state));
    repo.has_no_traces();
    repo.harness.run(&["run", "--name", "outside", "demo", "say hello"]).exits(0);
    let refused = repo.harness.run(&["fork", "-w", "outside", "say more"]).exits(2);
    assert!(refused.complaint().contains("is not in a git repository"), "{refused:?}");
}

#[test]
fn an_ended_session_is_resumed_in_its_tree() {
    let repo = Repo::new();
    repo.ostler(&["run", "-w", "talk", "demo", "say hello"]).exits(0);
    repo.ostler(&["resume", "@last", "say more"]).exits(0);
    let shown = repo.ostler(&["show", "--json", "@last"]).exits(0).json();
    assert_eq!((&shown["cwd"], &shown["run"]), (&repo.tree("talk").to_str().unwrap().into(), &2.into()));
    assert_eq!(shown["worktree"]["name"], "talk");
}
