//! `bisect` finds the turn after which a check fails.

use crate::fixture::Turns;
use ostler_sys::process::{Identity, Pidfd};
use ostler_testkit::patience;

#[test]
fn the_turn_that_broke_it_is_found_among_thirty_with_six_checks() {
    let turns = Turns::new();
    for turn in 2..=30 {
        let what = if turn == 17 { "echo broken >> a.txt" } else { "true" };
        turns.turn(&format!("echo {turn} >> log.txt; {what}"));
    }
    let repo = &turns.repo;
    let before = turns.everything();
    let counted = repo.harness.root().join("counted");
    let check = format!("echo x >> {}; ! grep -q broken a.txt", counted.display());
    let found = repo.ostler(&["bisect", &turns.id, "--check", &check]).exits(0);
    assert!(found.stdout.contains(": turn 17 "), "{found:?}");
    assert!(found.stdout.contains("prompt: run-command echo 17 >> log.txt"), "{found:?}");
    assert!(
        found.stdout.contains("+broken") && found.stdout.contains("+17") && !found.stdout.contains("+16"),
        "{found:?}"
    );
    let checks = std::fs::read_to_string(&counted).unwrap().lines().count();
    assert!(checks <= 6, "{checks} checks");
    assert_eq!(turns.everything(), before, "nothing is changed in the user's tree");
    // Only the check that shows the failure is kept, and none of the folders.
    let sessions = repo.ostler(&["ls", "--all", "--json"]).exits(0).json();
    assert_eq!(sessions.as_array().unwrap().len(), 2, "{sessions}");
    assert!(!turns.store().with_extension("bisect").exists());
}

#[test]
fn a_check_that_fails_at_the_start_or_succeeds_at_the_end_is_reported() {
    let turns = Turns::new();
    turns.turn("echo two >> a.txt");
    for check in ["", "no-such-program-here", "if"] {
        turns.repo.ostler(&["bisect", &turns.id, "--check", check]).exits(2);
    }
    let bad = turns.repo.ostler(&["bisect", &turns.id, "--check", "false"]).exits(1);
    assert!(bad.stderr.contains("fails at the start already"), "{bad:?}");
    let good = turns.repo.ostler(&["bisect", &turns.id, "--check", "true"]).exits(1);
    assert!(good.stderr.contains("succeeds after turn 2"), "{good:?}");
}

#[test]
fn a_search_that_is_interrupted_leaves_neither_its_check_nor_its_folder() {
    let turns = Turns::new();
    turns.turn("echo broken >> a.txt");
    let repo = &turns.repo;
    let began = repo.harness.root().join("began");
    // The check fails at the end, and the next check does not end.
    let check = format!("grep -q broken a.txt && exit 1; echo $$ > {}; exec sleep 1000", began.display());
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let search = repo.start_in(&repo.folder, &["bisect", &turns.id, "--check", &check]);
        let pid: i32 = patience::until("the check", &[repo.harness.root()], || {
            std::fs::read_to_string(&began).ok()?.trim().parse().ok()
        });
        let running = Identity::of(pid).unwrap().unwrap();
        std::fs::remove_file(&began).unwrap();
        Pidfd::open(search.process()).unwrap().unwrap().signal(signal).unwrap();
        search.finish().exits(6);
        assert!(!running.may_live(), "the check runs");
        assert!(!turns.store().with_extension("bisect").exists());
        let sessions = repo.ostler(&["ls", "--all", "--json"]).exits(0).json();
        assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    }
}

#[test]
fn a_search_that_is_killed_leaves_a_check_that_the_next_one_ends() {
    let turns = Turns::new();
    turns.turn("echo broken >> a.txt");
    let repo = &turns.repo;
    let began = repo.harness.root().join("began");
    let check = format!("echo $$ > {}; sleep 1000", began.display());
    let mut first = repo.harness.command(repo.harness.program());
    let mut first = first.args(["bisect", &turns.id, "--check", &check]).spawn().unwrap();
    let pid: i32 = patience::until("the check", &[repo.harness.root()], || {
        std::fs::read_to_string(&began).ok()?.trim().parse().ok()
    });
    let running = Identity::of(pid).unwrap().unwrap();
    let second = repo.ostler(&["bisect", &turns.id, "--check", "true"]);
    assert!(second.complaint().contains("another command is working on"), "one at a time: {second:?}");
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(running.may_live(), "a check is a session of its own");
    let found = repo.ostler(&["bisect", &turns.id, "--check", "! grep -q broken a.txt"]).exits(0);
    assert!(found.stdout.contains(": turn 2 "), "{found:?}");
    patience::ended(&running);
    // A turn can still end: its snapshot is not blocked.
    turns.turn("true");
}
