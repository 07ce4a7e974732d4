//! What git does not record of a tree is put back, too: permissions, and empty folders.

use crate::fixture::Turns;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

impl Turns {
    fn mode(&self, name: &str) -> u32 {
        self.repo.folder.join(name).symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    fn set_mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.repo.folder.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    /// Everything but `.git`, folders too, with modes.
    fn all(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let git = self.repo.folder.join(".git");
        let all = self.everything().into_iter().filter(|(path, _)| !path.starts_with(&git));
        all.map(|(path, (mode, _, bytes))| (path, (mode, bytes))).collect()
    }

    fn rewind(&self, turn: &str) {
        self.repo.ostler(&["rewind", &self.id, "--turn", turn, "--files"]).exits(0);
    }

    fn undo(&self) {
        self.repo.ostler(&["rewind", &self.id, "--undo"]).exits(0);
    }
}

#[test]
fn a_file_that_is_put_back_has_the_permissions_that_it_had() {
    let turns = Turns::new();
    turns.turn("umask 022; echo key > key.pem; chmod 600 key.pem; echo run > run; chmod 700 run; echo g > g; chmod 664 g; echo r > r; chmod 444 r");
    let second = turns.all();
    turns.turn("rm -f key.pem run g r; echo three > three.txt; chmod 640 three.txt");
    let third = turns.all();
    turns.rewind("2");
    assert_eq!(turns.all(), second);
    turns.undo();
    assert_eq!(turns.all(), third);
    // Files are put back where there is a folder or a link now.
    turns.turn("mkdir -p key.pem/below; ln -s a.txt run");
    let fourth = turns.all();
    turns.rewind("2");
    assert_eq!(turns.all(), second);
    turns.undo();
    assert_eq!(turns.all(), fourth);
}

#[test]
fn a_file_that_stays_or_changes_in_its_place_keeps_its_permissions() {
    let turns = Turns::new();
    turns.turn("echo same > same; echo text > text; echo program > program; chmod 755 program; echo other > other");
    turns.turn("echo more >> text; echo more >> program; chmod 755 other; echo more >> other");
    // Set by a user.
    for (name, mode) in [("same", 0o600), ("text", 0o640), ("program", 0o744), ("other", 0o750), ("a.txt", 0o400)] {
        turns.set_mode(name, mode);
    }
    turns.rewind("2");
    let modes = ["same", "text", "program", "other", "a.txt"].map(|name| turns.mode(name));
    assert_eq!(modes, [0o600, 0o640, 0o744, 0o640, 0o400]);
    turns.undo();
    assert_eq!((turns.mode("same"), turns.mode("other")), (0o600, 0o750));
}

#[test]
fn empty_folders_are_kept_and_put_back() {
    let turns = Turns::new();
    let repo = &turns.repo;
    turns.turn("mkdir -p 'an empty/deep' kept removed; echo x > kept.txt");
    let second = turns.all();
    // One folder gets a file, one is removed, one becomes a file, and a new one is created.
    turns.turn("echo x > kept/x; rmdir removed; rmdir 'an empty/deep'; echo file > 'an empty/deep'; mkdir later");
    let third = turns.all();
    turns.rewind("2");
    let mut expected = second.clone();
    // An empty folder that was created later is not removed.
    expected.insert(repo.folder.join("later"), third[&repo.folder.join("later")].clone());
    assert_eq!(turns.all(), expected);
    turns.undo();
    let mut expected = third.clone();
    expected.insert(repo.folder.join("removed"), second[&repo.folder.join("removed")].clone());
    assert_eq!(turns.all(), expected);
    // A folder is put back even when no file differs.
    turns.rewind("2");
    std::fs::remove_dir(repo.folder.join("removed")).unwrap();
    turns.rewind("2");
    assert!(repo.folder.join("removed").is_dir());
    // A link is not followed.
    std::fs::remove_dir_all(repo.folder.join("an empty")).unwrap();
    let outside = repo.harness.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(repo.folder.join(".git/info/exclude"), "an empty\n").unwrap();
    std::os::unix::fs::symlink(&outside, repo.folder.join("an empty")).unwrap();
    turns.rewind("2");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn the_diff_of_an_ended_session_shows_what_it_did_and_not_what_others_did_since() {
    let turns = Turns::new();
    let repo = &turns.repo;
    turns.turn("echo two >> a.txt; echo new > new.txt");
    let diff = || repo.ostler(&["diff", &turns.id]).exits(0);
    let before = diff();
    assert!(before.stdout.contains("+two") && before.stdout.contains("+new"), "{before:?}");
    // Changes by a user, and by another session.
    repo.write("a.txt", "edited by a person\n");
    repo.write("later.txt", "later\n");
    repo.git(&["add", "--all"]);
    repo.ostler(&["run", "demo", "run-command rm new.txt; echo other > other.txt"]).exits(0);
    let after = diff();
    assert_eq!((&after.stdout, after.stderr.as_str()), (&before.stdout, ""));
    // Also after its files were put back.
    repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(0);
    assert_eq!(diff().stdout, before.stdout);
}

#[test]
fn the_diff_of_a_session_that_was_cut_off_says_that_it_shows_the_folder_as_it_is() {
    let turns = Turns::new();
    let repo = &turns.repo;
    let began = repo.harness.root().join("began");
    let message = format!("run-command echo half > half.txt; touch {}; sleep 600", began.display());
    repo.ostler(&["resume", "-d", &turns.id, &message]).exits(0);
    ostler_testkit::patience::until("the turn has begun", &[repo.harness.root()], || began.exists().then_some(()));
    // While the session works, the diff shows the folder as it is now, and there is no note about this.
    let running = repo.ostler(&["diff", &turns.id]).exits(0);
    assert!(running.stdout.contains("+half") && !running.stderr.contains("as it is now"), "{running:?}");
    repo.ostler(&["stop", "--kill", &turns.id]);
    let shown = repo.ostler(&["diff", &turns.id]).exits(0);
    assert!(shown.stdout.contains("+half") && shown.stderr.contains("its folder as it is now"), "{shown:?}");
}
