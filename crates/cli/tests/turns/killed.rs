//! A process is killed at any point: nothing is lost, no lock stays, and the next process continues.

use crate::fixture::{Turns, kill_at};
use crate::repo::Repo;
use ostler_sys::pause_points::{Point, Role};
use ostler_testkit::patience;
use std::path::Path;

fn locks(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            locks(&path, found);
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".lock") && name != "ostler.lock"
            || name.starts_with("tmp_")
            || name.starts_with("fast_import")
        {
            found.push(name);
        }
    }
}

#[test]
fn a_snapshot_that_is_killed_at_any_point_leaves_no_trace_and_the_next_one_has_its_changes() {
    let points = [
        (Role::Keeper, Point::SnapshotStarted),
        (Role::Snapshot, Point::SnapshotEntered),
        (Role::Snapshot, Point::TreeWalked),
        (Role::Snapshot, Point::SnapshotWritten),
        (Role::Snapshot, Point::SnapshotNoted),
        (Role::Snapshot, Point::KnownWritten),
    ];
    let mut turns = Turns::new();
    for (role, point) in points {
        let name = point.name();
        let before = turns.repo.state();
        // The snapshot at the start of the run passes this point first.
        let nth = if role == Role::Keeper { 1 } else { 2 };
        let token = kill_at(&mut turns.repo, role, point, nth);
        let turn = turns.turn_without_snapshot(&format!("echo {name} > {name}.txt"));
        patience::until(name, &[token.parent().unwrap()], || (!token.exists()).then_some(()));
        let after = turns.turn("true");
        assert_eq!(after, turn + 1);
        let mut left = Vec::new();
        locks(&turns.store(), &mut left);
        locks(&turns.repo.folder.join(".git"), &mut left);
        assert!(left.is_empty(), "{name}: {left:?}");
        assert!(turns.listed(after).contains(&format!("{name}.txt")), "{name}: {}", turns.listed(after));
        assert_eq!(turns.in_store(&["fsck", "--full", "--no-dangling"]), "");
        let mut now = turns.repo.state();
        now.remove(&format!("{name}.txt"));
        now.insert("status".to_owned(), before["status"].clone());
        assert_eq!(now, before, "{name}");
    }
}

#[test]
fn the_first_snapshot_may_be_killed_as_well() {
    for point in [Point::SnapshotEntered, Point::TreeWalked, Point::ObjectsLinked, Point::SnapshotWritten] {
        let mut repo = Repo::new();
        let token = kill_at(&mut repo, Role::Snapshot, point, 1);
        let turns = Turns::in_repo(repo);
        assert!(!token.exists(), "{}", point.name());
        turns.turn("echo two >> a.txt");
        assert!(turns.diff(2).contains("+two"), "{}", point.name());
    }
}

#[test]
fn a_rewind_that_is_killed_at_any_point_can_be_undone_and_done_again() {
    let points = [
        (Point::TreeWalked, 1),
        (Point::SnapshotWritten, 1),
        (Point::RewindNoted, 1),
        (Point::FileExchanged, 1),
        (Point::FileExchanged, 2),
        (Point::FileExchanged, 3),
        (Point::FilePutBack, 1),
        (Point::FilePutBack, 2),
        (Point::FilePutBack, 3),
        (Point::FilePutBack, 4),
        (Point::RewindDone, 1),
    ];
    let mut turns = Turns::new();
    turns.turn("echo two >> a.txt; echo two >> below/b.txt; echo new > new.txt; echo gone > gone.txt");
    let second = turns.files();
    turns.turn("echo three > a.txt; rm below/b.txt; echo other > new.txt; rm gone.txt; echo 3 > 3.txt");
    turns.repo.write("by-a-person.txt", "in no turn\n");
    let present = turns.files();
    for (point, nth) in points {
        let name = format!("{} {nth}", point.name());
        let token = kill_at(&mut turns.repo, Role::Client, point, nth);
        let id = turns.id.clone();
        let rewind = ["rewind", id.as_str(), "--turn", "2", "--files"];
        let killed = turns.repo.ostler(&rewind);
        assert!(!token.exists(), "{name} is not passed");
        assert_ne!(killed.code, Some(0), "{name}");
        // Every file has its old or its new content, and there is no other file.
        for (path, (_, bytes)) in turns.files() {
            let known = [present.get(&path), second.get(&path)].into_iter().flatten().any(|(_, known)| *known == bytes);
            assert!(known, "{name}: {} has {bytes:?}", path.display());
        }
        if matches!(point, Point::TreeWalked | Point::SnapshotWritten) {
            assert_eq!(turns.files(), present, "{name}");
            continue;
        }
        // Back.
        turns.repo.ostler(&["rewind", &id, "--undo"]).exits(0);
        assert_eq!(turns.files(), present, "{name}: undone");
        // Killed again, done again, and undone to what there was at first.
        kill_at(&mut turns.repo, Role::Client, point, nth);
        turns.repo.ostler(&rewind);
        turns.repo.ostler(&rewind).exits(0);
        assert_eq!(turns.files(), second, "{name}: done again");
        turns.repo.ostler(&["rewind", &id, "--undo"]).exits(0);
        assert_eq!(turns.files(), present, "{name}: undone to what there was first");
        assert!(!turns.repo.folder.join(".git/ostler.rewind").exists(), "{name}");
    }
}

#[test]
fn undoing_that_is_killed_at_any_point_is_finished_by_undoing_again() {
    let points =
        [(Point::RewindNoted, 1), (Point::FileExchanged, 1), (Point::FileExchanged, 2), (Point::FilePutBack, 2)];
    let mut turns = Turns::new();
    turns.turn("echo two >> a.txt; echo two >> below/b.txt; echo new > new.txt");
    let second = turns.files();
    turns.turn("echo three > a.txt; echo three > below/b.txt; rm new.txt; echo 3 > 3.txt");
    turns.repo.write("by-a-person.txt", "in no turn\n");
    let present = turns.files();
    let id = turns.id.clone();
    for (point, nth) in points {
        let name = format!("{} {nth}", point.name());
        turns.repo.ostler(&["rewind", &id, "--turn", "2", "--files"]).exits(0);
        assert_eq!(turns.files(), second, "{name}");
        for (point, nth) in [(point, nth), (Point::RewindNoted, 1)] {
            let token = kill_at(&mut turns.repo, Role::Client, point, nth);
            assert_ne!(turns.repo.ostler(&["rewind", &id, "--undo"]).code, Some(0), "{name}");
            assert!(!token.exists(), "{name} is not passed");
        }
        turns.repo.ostler(&["rewind", &id, "--undo"]).exits(0);
        assert_eq!(turns.files(), present, "{name}: finished");
    }
}

#[test]
fn files_that_would_keep_git_from_writing_the_same_pack_again_are_removed() {
    let repo = Repo::new();
    repo.git(&["gc", "--quiet"]);
    let turns = Turns::in_repo(repo);
    turns.turn("echo two >> a.txt");
    let packs = turns.store().join("objects/pack");
    let ends_with = |end: &str| -> Vec<std::path::PathBuf> {
        let paths = std::fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|found| found == end)).collect()
    };
    let linked = ends_with("keep");
    assert_eq!(linked.len(), 1);
    // One of a git that found the disk full, and one of a git that was killed after it had written its pack.
    std::fs::write(packs.join(format!("pack-{}.keep", "0".repeat(40))), "").unwrap();
    let own = ends_with("pack").into_iter().find(|pack| !pack.with_extension("keep").exists()).unwrap();
    std::fs::write(own.with_extension("keep"), "fast-import\n").unwrap();
    turns.turn("echo three >> a.txt");
    assert_eq!(ends_with("keep"), linked);
    assert!(own.exists() && turns.diff(2).contains("+two") && turns.diff(3).contains("+three"));
}
