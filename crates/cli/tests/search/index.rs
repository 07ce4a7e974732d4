//! The index is derived: whatever happens to it, the next search finds the same. Only its owner can read it.

use crate::transcripts::{CLAUDE, claude, claude_agent, claude_file};
use crate::{harness, texts};
use ostler_sys::pause_points::{self, Point, Role, token};
use ostler_sys::process::{Identity, Life, Pidfd};
use ostler_testkit::{Harness, SmallDisk, patience};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn index(harness: &Harness) -> PathBuf {
    harness.home().join("search/index.sqlite")
}

#[test]
fn a_deleted_damaged_or_older_index_is_made_again() {
    let harness = harness();
    claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    let same = |what: &str| assert_eq!(texts(&harness, &["zebra"]), ["first zebra"], "{what}");
    same("new");
    fs::remove_dir_all(harness.home().join("search")).unwrap();
    same("deleted");
    fs::write(index(&harness), [b'x'; 50_000]).unwrap();
    same("not a database");
    // SQLite's log is part of the database: only with an empty log the damage surely takes effect.
    Connection::open(index(&harness)).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut bytes = fs::read(index(&harness)).unwrap();
    bytes[8192..].fill(b'y');
    fs::write(index(&harness), &bytes).unwrap();
    same("damaged in its pages");
    Connection::open(index(&harness)).unwrap().execute_batch("DROP TABLE passages").unwrap();
    same("without a table");
    Connection::open(index(&harness)).unwrap().execute_batch("PRAGMA user_version = 999").unwrap();
    same("of another version");
    fs::write(index(&harness), "").unwrap();
    same("empty");
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let _ = fs::remove_file(harness.home().join("search").join(name));
    }
    fs::create_dir(index(&harness)).unwrap();
    same("a folder");
    // The machine lost power during a large write.
    fs::write(harness.home().join("search/writing"), "another boot").unwrap();
    same("cut off by a power failure");
    assert!(!harness.home().join("search/writing").exists());
}

#[test]
fn on_a_full_disk_a_search_finds_what_is_in_the_index_and_says_so() {
    if !rustix::process::geteuid().is_root() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "mounting a small disk needs root");
        return;
    }
    let disk = SmallDisk::mount("1m");
    let mut harness = harness();
    harness.keep_sessions_below(disk.path());
    claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    assert_eq!(texts(&harness, &["zebra"]), ["first zebra"]);
    let many = (0..20_000_u64).map(|number| format!("giraffe{number} {} {}", number * 7_919_003, number * 104_729_009));
    let text: String = many.map(|words| claude_agent(&words, "2026-11-10T09:00:00Z")).collect();
    let file = claude_file(&harness, "00000002-408d-4262-88d9-97e7e2d532f0");
    fs::write(&file, text).unwrap();
    let full = harness.run(&["search", "zebra"]).exits(0);
    assert!(full.stdout.contains("first zebra"), "{full:?}");
    assert_eq!(
        full.complaint(),
        "ostler: the search index cannot be written: database or disk is full; the newest messages may be missing; free some disk space"
    );
    disk.grow("64m");
    assert_eq!(texts(&harness, &["zebra"]), ["first zebra"]);
    assert_eq!(texts(&harness, &["giraffe19999"]).len(), 1);
}

#[test]
fn only_its_owner_can_read_the_index() {
    let harness = harness();
    claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o7777;
    // A folder that others could enter is closed again.
    let folder = harness.home().join("search");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(texts(&harness, &["zebra"]).len(), 1);
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_search_that_is_killed_in_the_middle_of_its_update_loses_nothing() {
    for point in [Point::IndexFilled, Point::IndexWritten] {
        let mut harness = harness();
        let pauses = harness.root().join("pauses");
        fs::create_dir(&pauses).unwrap();
        harness.set(pause_points::VARIABLE, &pauses);
        claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
        let kill = pauses.join(format!("{}.kill", token(Role::Client, point)));
        fs::write(&kill, "x").unwrap();
        assert_eq!(harness.run(&["search", "zebra"]).code, None, "killed");
        assert!(!kill.exists());
        assert_eq!(texts(&harness, &["zebra"]), ["first zebra"]);
    }
}

#[test]
fn a_search_during_the_update_of_another_uses_what_is_there() {
    let mut harness = harness();
    let pauses = harness.root().join("pauses");
    fs::create_dir(&pauses).unwrap();
    harness.set(pause_points::VARIABLE, &pauses);
    claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    assert_eq!(texts(&harness, &["zebra"]), ["first zebra"]);
    let file = claude_file(&harness, "00000002-408d-4262-88d9-97e7e2d532f0");
    fs::write(file, claude_agent("second zebra", "2026-11-10T09:00:00Z")).unwrap();
    fs::write(pauses.join(format!("{}.stop", token(Role::Client, Point::IndexFilled))), "x").unwrap();
    let first = harness.start(&["search", "zebra"]);
    patience::until("the first search is stopped", &[], || {
        (first.process().look().unwrap() == Life::Stopped).then_some(())
    });
    let second = harness.run(&["search", "zebra"]).exits(0);
    assert!(second.stdout.contains("first zebra") && !second.stdout.contains("second zebra"), "{second:?}");
    assert_eq!(second.complaint(), "ostler: another search is updating the index; the newest messages may be missing");
    Pidfd::open(first.process()).unwrap().unwrap().signal(rustix::process::Signal::CONT).unwrap();
    let first = first.finish().exits(0);
    assert!(first.stdout.contains("first zebra") && first.stdout.contains("second zebra"), "{first:?}");
}

/// Waits until a process waits for a lock, or has ended.
fn until_it_waits_for_a_lock(process: &Identity) {
    let waits =
        |line: &str| line.contains("->") && line.split_whitespace().any(|word| word == process.pid().to_string());
    patience::until("it waits for the lock or has ended", &[], || {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        (locks.lines().any(waits) || process.look().unwrap() == Life::Gone).then_some(())
    });
}

#[test]
fn a_search_while_another_makes_the_first_index_waits_for_it() {
    // The index is still empty, or partly written.
    for point in [Point::IndexFilled, Point::IndexWritten] {
        let mut harness = harness();
        let pauses = harness.root().join("pauses");
        fs::create_dir(&pauses).unwrap();
        harness.set(pause_points::VARIABLE, &pauses);
        claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
        harness.run(&["run", "demo", "say the zebra of a session"]).exits(0);
        fs::write(pauses.join(format!("{}.stop", token(Role::Client, point))), "x").unwrap();
        let first = harness.start(&["search", "zebra"]);
        patience::until("the first search is stopped", &[], || {
            (first.process().look().unwrap() == Life::Stopped).then_some(())
        });
        let second = harness.start(&["search", "zebra"]);
        until_it_waits_for_a_lock(second.process());
        Pidfd::open(first.process()).unwrap().unwrap().signal(rustix::process::Signal::CONT).unwrap();
        for output in [first.finish().exits(0), second.finish().exits(0)] {
            assert!(output.stdout.contains("first zebra"), "{}: {output:?}", point.name());
            assert!(output.stdout.contains("zebra of a session"), "{}: {output:?}", point.name());
        }
    }
}

#[test]
fn many_searches_at_once_make_one_index() {
    let harness = harness();
    for number in 0..40 {
        let file = claude_file(&harness, &format!("{number:08}-408d-4262-88d9-97e7e2d532f0"));
        fs::write(file, claude_agent(&format!("zebra {number}"), "2026-11-10T09:00:00Z")).unwrap();
    }
    let started: Vec<_> = (0..6).map(|_| harness.start(&["search", "zebra", "--most", "99", "--json"])).collect();
    for one in started {
        let one = one.finish();
        // No search uses a part of the first index as if it were complete.
        assert_eq!(one.exits(0).json().as_array().unwrap().len(), 40);
    }
    assert_eq!(texts(&harness, &["zebra", "--most", "99"]).len(), 40);
}

#[test]
fn an_index_whose_owner_lost_permission_to_read_it_works_again() {
    let harness = harness();
    claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    let Some(program) = crate::belongs_to_other_user(&harness) else { return };
    let same = || {
        let found = crate::as_other_user(&harness, &program, &["search", "zebra"]).exits(0);
        assert!(found.stdout.contains("first zebra"), "{found:?}");
    };
    same();
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "lock"] {
        let file = harness.home().join("search").join(name);
        if file.exists() {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o0)).unwrap();
        }
        same();
    }
}
