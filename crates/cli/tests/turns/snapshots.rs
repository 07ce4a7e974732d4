//! A snapshot at every turn, which changes nothing in the user's repository.

use crate::fixture::Turns;
use crate::repo::Repo;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Identity, Life, Pidfd, command_line};
use ostler_testkit::patience;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn every_turn_has_its_changes_and_the_repository_is_the_same_byte_for_byte() {
    let repo = Repo::new();
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash", "--quiet", "--", "a.txt"]);
    repo.write("key.secret", "ignored\n");
    let turns = Turns::in_repo(repo);
    let repo = &turns.repo;
    // Only `.git` is compared: the turns change the tree on purpose.
    let before = |turns: &Turns| {
        let mut all = turns.everything();
        all.retain(|path, _| path.starts_with(repo.folder.join(".git")));
        (all, repo.git(&["log", "--all", "--format=%H"]), repo.git(&["stash", "list"]), repo.git(&["for-each-ref"]))
    };
    // Git itself updates dates in the index at a `git status`, so that is done before.
    repo.git(&["status", "--porcelain"]);
    let was = before(&turns);
    assert_eq!(turns.turn("echo two >> a.txt; echo new > new.txt; mkdir -p deep/er; echo x > deep/er/x"), 2);
    assert_eq!(turns.turn("rm new.txt; echo ignored > other.secret"), 3);
    assert_eq!(turns.turn("true"), 4);
    assert_eq!(before(&turns), was, "no object, no reference, no index, no date");

    let second = turns.diff(2);
    assert!(second.contains("+two") && second.contains("b/new.txt") && second.contains("b/deep/er/x"), "{second}");
    assert!(!second.contains("staged") && !second.contains("secret"), "older changes are not listed: {second}");
    let third = turns.diff(3);
    assert!(
        third.contains("deleted file mode 100644") && !third.contains("secret") && !third.contains("two"),
        "{third}"
    );
    assert_eq!(turns.diff(4), "");
    assert!(repo.ostler(&["diff", &turns.id, "--turn", "2", "--stat"]).exits(0).stdout.contains("3 files changed"));
    // Without a turn: everything that the session did, and nothing that a user does after its end.
    repo.write("by-a-person.txt", "new\n");
    let all = repo.ostler(&["diff", &turns.id]).exits(0).stdout;
    assert!(
        all.contains("+two")
            && !all.contains("by-a-person.txt")
            && !all.contains("staged")
            && !all.contains("b/new.txt"),
        "{all}"
    );
    assert_eq!(before(&turns), was);

    let shown = repo.ostler(&["show", &turns.id]).exits(0).stdout;
    assert!(shown.contains("after turns 0–4"), "{shown}");
    let refused = repo.ostler(&["diff", &turns.id, "--turn", "9"]).exits(2);
    assert!(refused.complaint().contains("there are some after these: 0–4"), "{refused:?}");
}

#[test]
fn no_hook_no_filter_and_no_watcher_of_the_repository_runs() {
    let repo = Repo::new();
    let ran = repo.folder.join("../ran");
    for hook in ["pre-commit", "post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "watch"] {
        program(&repo.folder.join(".git/hooks").join(hook), &format!("echo {hook} >> {}", ran.display()));
    }
    let noisy = |what: &str| format!("sh -c 'echo {what} >> {}; cat'", ran.display());
    repo.write(".gitattributes", "*.big filter=noisy\n*.enc text working-tree-encoding=UTF-16\n*.crlf text eol=crlf\n");
    repo.write("x.big", "the contents\n");
    repo.write("y.crlf", "one\r\ntwo\r\n");
    repo.commit("with attributes");
    for (name, value) in [
        ("filter.noisy.clean", noisy("clean")),
        ("filter.noisy.smudge", noisy("smudge")),
        ("filter.noisy.process", noisy("process")),
        ("filter.noisy.required", "true".to_owned()),
        ("diff.external", noisy("diff")),
        ("core.fsmonitor", repo.folder.join(".git/hooks/watch").display().to_string()),
        ("core.hooksPath", repo.folder.join(".git/hooks").display().to_string()),
    ] {
        repo.git(&["config", name, &value]);
    }
    let _ = std::fs::remove_file(&ran);
    let turns = Turns::in_repo(repo);
    turns.turn("echo more >> x.big; echo three >> y.crlf; echo z > z.enc");
    turns.turn("echo even more >> x.big");
    turns.diff(2);
    turns.repo.ostler(&["rewind", &turns.id, "--turn", "2", "--files"]).exits(0);
    assert!(!ran.exists(), "{}", std::fs::read_to_string(&ran).unwrap());
    // The exact bytes of the files, without git's conversions.
    let commit = turns.line(1)["commit"].as_str().unwrap().to_owned();
    assert_eq!(turns.in_store(&["cat-file", "-s", &format!("{commit}:y.crlf")]), "10");
    assert_eq!(std::fs::read_to_string(turns.repo.folder.join("x.big")).unwrap(), "the contents\nmore\n");
    assert_eq!(std::fs::read_to_string(turns.repo.folder.join("y.crlf")).unwrap(), "one\r\ntwo\r\nthree\n");
}

#[test]
fn a_rewritten_history_and_a_gc_take_nothing_from_a_snapshot() {
    let repo = Repo::new();
    repo.write("large.txt", &"a line\n".repeat(2000));
    repo.commit("second");
    repo.git(&["gc", "--quiet"]);
    repo.write("loose.txt", "loose\n");
    repo.commit("third");
    repo.write("only-staged.txt", "staged\n");
    repo.git(&["add", "only-staged.txt"]);
    let turns = Turns::in_repo(repo);
    let repo = &turns.repo;
    turns.turn("echo changed >> large.txt");
    let files = turns.files();
    // None of the old commits is reachable any more.
    repo.git(&["checkout", "--quiet", "--orphan", "other"]);
    repo.git(&["rm", "-r", "--quiet", "--force", "."]);
    repo.write("other.txt", "other\n");
    repo.commit("other");
    repo.git(&["branch", "-D", "main"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(turns.in_store(&["fsck", "--full", "--strict", "--no-dangling"]), "");
    repo.ostler(&["rewind", &turns.id, "--turn", "2", "--files"]).exits(0);
    assert_eq!(turns.files(), files);
    assert!(turns.diff(2).contains("+changed"));
}

#[test]
fn snapshots_are_taken_unless_they_are_off() {
    let repo = Repo::new();
    repo.harness.configure("snapshots = \"off\"\n");
    repo.ostler(&["run", "demo", "say hello"]).exits(0);
    let refused = repo.ostler(&["diff", "@last"]).exits(2);
    assert!(refused.complaint().contains("has no snapshots of its files"), "{refused:?}");
    assert!(!repo.harness.home().join("turns").exists());
    repo.harness.configure("");
    // Neither for a command, nor outside a repository.
    repo.ostler(&["run", "--", "true"]).exits(0);
    repo.ostler_in(repo.harness.root(), &["run", "demo", "say hello"]).exits(0);
    assert!(!repo.harness.home().join("turns").exists());
}

#[test]
fn a_snapshot_that_takes_too_long_is_given_up_and_show_says_so() {
    let mut repo = Repo::new();
    let pauses = repo.harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    repo.harness.set(pause_points::VARIABLE, &pauses);
    // Stopped after its time limit has begun to run.
    let token = pauses.join(format!("{}.stop", pause_points::token(Role::Snapshot, Point::TreeWalked)));
    std::fs::write(&token, "x").unwrap();
    repo.ostler(&["run", "demo", "say hello"]).exits(0);
    patience::until("the stop", &[&pauses], || (!token.exists()).then_some(()));
    let process = stopped(&repo);
    // The limit of 10 s is measured by the kernel's monotonic clock. A test cannot set that clock, and nothing shows
    // that the limit has passed.
    assert!(!patience::ends_within(&process, Duration::from_secs(11)), "it ended although it was stopped");
    Pidfd::open(&process).unwrap().unwrap().signal(Signal::CONT).unwrap();
    patience::ended(&process);
    let shown = repo.ostler(&["show", "@last"]).exits(0).stdout;
    assert!(shown.contains("no more are taken: a snapshot took longer than 10 s"), "{shown}");
    repo.ostler(&["resume", "@last", "run-command echo x > x"]).exits(0);
    let refused = repo.ostler(&["diff", "@last", "--turn", "2"]).exits(2);
    assert!(refused.complaint().contains("took longer than 10 s"), "{refused:?}");
}

/// The process that takes a snapshot and is stopped in the middle.
fn stopped(repo: &Repo) -> Identity {
    let is_it = |one: &Identity| {
        command_line(one.pid()).get(1).is_some_and(|word| word == "__turn") && one.look().unwrap() == Life::Stopped
    };
    patience::until("a process that was stopped", &[], || repo.harness.alive().into_iter().find(is_it))
}

#[test]
fn snapshots_are_archived_restored_and_deleted_with_the_session() {
    let turns = Turns::new();
    turns.turn("echo two >> a.txt");
    let repo = &turns.repo;
    repo.ostler(&["archive", &turns.id]).exits(0);
    assert!(turns.diff(2).contains("+two"), "an archived session is read as before");
    let refused = repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(1);
    assert!(refused.complaint().contains("is archived"), "{refused:?}");
    repo.ostler(&["restore", &turns.id]).exits(0);
    assert!(turns.diff(2).contains("+two"));
    let used = repo.ostler(&["du", "--json"]).exits(0).json();
    assert!(used["sessions"][0]["snapshots"].as_u64().unwrap() > 0, "{used}");
    repo.ostler(&["purge", &turns.id]).exits(0);
    assert!(!turns.store().exists());
}

#[test]
fn a_snapshot_that_starts_late_on_a_busy_machine_is_waited_for() {
    let mut repo = Repo::new();
    let pauses = repo.harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    repo.harness.set(pause_points::VARIABLE, &pauses);
    let turns = Turns::in_repo(repo);
    // One snapshot is taken at the beginning of the next run, and another at the end of its turn; the latter is
    // stopped.
    let token = pauses.join(format!("{}.stop", pause_points::token(Role::Snapshot, Point::SnapshotEntered)));
    std::fs::write(&token, "xx").unwrap();
    turns.turn_without_snapshot("echo two >> a.txt");
    patience::until("the stop", &[&pauses], || (!token.exists()).then_some(()));
    let process = stopped(&turns.repo);
    let diff = turns.repo.start_in(&turns.repo.folder, &["diff", &turns.id, "--turn", "2"]);
    // A snapshot has a second to start; after that the command looks for its process again and again, which nothing
    // shows.
    assert!(!patience::ends_within(diff.process(), Duration::from_secs(3)), "it did not wait");
    Pidfd::open(&process).unwrap().unwrap().signal(Signal::CONT).unwrap();
    assert!(diff.finish().exits(0).stdout.contains("+two"));
    patience::ended(&process);
}

#[test]
fn a_snapshot_that_waits_for_the_one_before_is_waited_for_as_well() {
    let mut repo = Repo::new();
    let pauses = repo.harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    repo.harness.set(pause_points::VARIABLE, &pauses);
    let turns = Turns::in_repo(repo);
    // The snapshot at the beginning of the next run is stopped while it holds the store.
    let token = pauses.join(format!("{}.stop", pause_points::token(Role::Snapshot, Point::TreeWalked)));
    std::fs::write(&token, "x").unwrap();
    let id = &turns.id;
    turns.repo.ostler(&["resume", "-d", "--keep", id, "run-command echo two >> a.txt"]).exits(0);
    patience::until("the stop", &[&pauses], || (!token.exists()).then_some(()));
    turns.repo.ostler(&["send", "--wait", id, "run-command echo three >> a.txt"]).exits(0);
    let process = stopped(&turns.repo);
    // Of two turns that ended in the meantime, the newest gets a snapshot.
    let rewind = turns.repo.start_in(&turns.repo.folder, &["rewind", id, "--turn", "3", "--files"]);
    // Longer than the second that a snapshot has to start. Nothing shows that this time has passed.
    assert!(!patience::ends_within(rewind.process(), Duration::from_secs(2)), "it did not wait");
    Pidfd::open(&process).unwrap().unwrap().signal(Signal::CONT).unwrap();
    assert!(rewind.finish().exits(0).stdout.contains("0 files put back to the end of turn 3"));
    turns.repo.ostler(&["stop", id]).exits(0);
}

#[test]
fn a_session_ends_while_its_snapshot_is_taken_and_neither_waits_for_the_other() {
    let mut repo = Repo::new();
    let pauses = repo.harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    repo.harness.set(pause_points::VARIABLE, &pauses);
    let token = pauses.join(format!("{}.stop", pause_points::token(Role::Snapshot, Point::SnapshotEntered)));
    std::fs::write(&token, "x").unwrap();
    // The snapshot is stopped before its first step, and the session still ends.
    repo.ostler(&["run", "demo", "run-command echo two >> a.txt"]).exits(0);
    let shown = repo.ostler(&["show", "--json", "@last"]).exits(0).json();
    assert_eq!((&shown["status"], &shown["outcome"]["left"]), (&"succeeded".into(), &serde_json::Value::Null));
    let process = stopped(&repo);
    Pidfd::open(&process).unwrap().unwrap().signal(Signal::CONT).unwrap();
    patience::ended(&process);
}
