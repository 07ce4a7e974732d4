//! Unusual files as they occur in real trees.

use crate::fixture::Turns;
use crate::repo::Repo;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

#[test]
fn modes_links_empty_files_and_names_that_are_not_text_are_kept_and_put_back() {
    let turns = Turns::new();
    let folder = turns.repo.folder.clone();
    let odd = folder.join(OsStr::from_bytes(b"not \xff text \"\\\n.txt"));
    std::fs::write(&odd, "odd\n").unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    std::fs::write(folder.join(":(glob)*"), "colon\n").unwrap();
    std::fs::write(folder.join("program"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(folder.join("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("a.txt", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere", folder.join("dangling")).unwrap();
    std::fs::create_dir(folder.join("becomes-a-file")).unwrap();
    std::fs::write(folder.join("becomes-a-file/inside"), "inside\n").unwrap();
    turns.turn("true");
    let before = turns.files();
    turns.turn("rm -r link dangling program empty becomes-a-file not*; echo file > becomes-a-file; mkdir link; echo x > link/x");
    let after = turns.files();
    assert_ne!(before, after);
    turns.repo.ostler(&["rewind", &turns.id, "--turn", "2", "--files"]).exits(0);
    assert_eq!(turns.files(), before);
    turns.repo.ostler(&["rewind", &turns.id, "--undo"]).exits(0);
    assert_eq!(turns.files(), after);
    let listed = turns.listed(2);
    assert!(
        listed.contains("100755 program") && listed.contains("120000 link") && listed.contains("100644 empty"),
        "{listed}"
    );
}

#[test]
fn what_cannot_be_stored_is_left_out_and_named() {
    let repo = Repo::new();
    repo.harness.configure("snapshot_file_limit = \"1KiB\"\n");
    repo.write("large.bin", &"x".repeat(2000));
    let _socket = UnixListener::bind(repo.folder.join("socket")).unwrap();
    repo.git_in(&repo.folder, &["init", "--quiet", "nested"]);
    repo.git_in(&repo.folder.join("nested"), &["commit", "--quiet", "--allow-empty", "--message", "x"]);
    repo.git_in(&repo.folder, &["init", "--quiet", "without-commit"]);
    repo.write("build/ignored", "x");
    let turns = Turns::in_repo(repo);
    turns.turn("mkfifo pipe; echo x > nested/inside; echo y > y");
    let listed = turns.listed(2);
    assert!(listed.contains("160000 nested") && listed.contains("100644 y"), "{listed}");
    for absent in ["large.bin", "socket", "pipe", "without-commit", "build", "nested/inside"] {
        assert!(!listed.contains(absent), "{absent}: {listed}");
    }
    let skipped = turns.line(2)["skipped"].clone();
    let why = |path: &str| {
        let found = skipped.as_array().unwrap().iter().find(|one| one["path"] == path).cloned();
        found.unwrap_or_default()["why"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        ["large.bin", "socket", "pipe", "without-commit"].map(why),
        ["too_large", "socket", "pipe", "no_commit"]
    );
    let shown = turns.repo.ostler(&["show", &turns.id]).exits(0).stdout;
    assert!(shown.contains("large.bin (too large)"), "{shown}");
    // A rewind does not touch these files.
    turns.repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(0);
    for path in ["large.bin", "socket", "pipe", "without-commit/.git", "build/ignored", "nested/inside"] {
        assert!(turns.repo.folder.join(path).symlink_metadata().is_ok(), "{path}");
    }
    assert!(!turns.repo.folder.join("y").exists());
}

#[test]
fn what_is_ignored_is_what_git_ignores_also_when_the_rules_change() {
    let repo = Repo::new();
    repo.write("kept.secret", "tracked although it is ignored\n");
    repo.git(&["add", "--force", "kept.secret"]);
    repo.git(&["commit", "--quiet", "--message", "forced"]);
    let turns = Turns::in_repo(repo);
    turns.turn("mkdir -p out build; echo 1 > out/1; echo 1 > build/1; echo 1 > x.log; echo more >> kept.secret");
    turns.turn("echo out/ >> .gitignore; echo '*.log' >> .git/info/exclude; echo 2 > out/2");
    turns.turn("printf '!out/\\n' >> .gitignore; mkdir -p below; echo '*' > below/.gitignore; echo 3 > below/3");
    turns.turn("git add -f build/1; echo deeper > build/2");
    assert!(turns.diff(2).contains("kept.secret"), "{}", turns.diff(2));
    let has = |turn: u32, path: &str| turns.listed(turn).lines().any(|line| line.ends_with(&format!(" {path}")));
    assert_eq!([2, 3, 4, 5].map(|turn| has(turn, "out/1")), [true, false, true, true]);
    assert_eq!([2, 3, 4, 5].map(|turn| has(turn, "out/2")), [false, false, true, true]);
    assert_eq!([2, 3, 4, 5].map(|turn| has(turn, "x.log")), [true, false, false, false]);
    assert_eq!([2, 3, 4, 5].map(|turn| has(turn, "kept.secret")), [true; 4]);
    assert_eq!([2, 3, 4, 5].map(|turn| has(turn, "build/1")), [false, false, false, true]);
    assert!(!has(5, "build/2") && !has(5, "below/3"), "{}", turns.listed(5));
}

#[test]
fn a_file_that_was_written_during_a_snapshot_is_right_in_the_next_one() {
    let turns = Turns::new();
    let path = turns.repo.folder.join("busy");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        let mut n = 0u64;
        while stopped.try_recv().is_err() {
            n += 1;
            std::fs::write(&path, format!("{n}\n").repeat(5000)).unwrap();
        }
    });
    turns.turn("true");
    stop.send(()).unwrap();
    writer.join().unwrap();
    turns.turn("true");
    // Its present content is stored, although the snapshot before may have seen the same size and date.
    let commit = turns.line(3)["commit"].as_str().unwrap().to_owned();
    let kept = turns.in_store(&["cat-file", "blob", &format!("{commit}:busy")]);
    assert_eq!(kept, std::fs::read_to_string(turns.repo.folder.join("busy")).unwrap().trim_end());
}

#[test]
fn a_tree_without_a_commit_a_linked_tree_and_one_that_is_emptied_have_snapshots_too() {
    let repo = Repo::empty("fresh");
    repo.write("first", "1\n");
    let turns = Turns::in_repo(repo);
    turns.turn("rm first");
    turns.turn("echo again > first");
    assert_eq!((turns.listed(2), turns.listed(3)), (String::new(), "100644 first".to_owned()));
    // A session with its own worktree.
    let repo = Repo::new();
    repo.ostler(&["run", "-w", "own", "demo", "run-command echo own >> a.txt"]).exits(0);
    let id = repo.ostler(&["show", "--json", "own"]).exits(0).json()["id"].as_str().unwrap().to_owned();
    let turns = Turns { repo, id };
    turns.noted(1);
    turns.turn("echo more > more.txt");
    assert!(turns.diff(2).contains("b/more.txt"));
    assert_eq!(turns.repo.git(&["status", "--porcelain"]), "");
}
