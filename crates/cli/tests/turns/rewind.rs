//! Files and conversation as they were at the end of a turn.

use crate::fixture::Turns;

#[test]
fn files_go_back_and_forth_and_neither_ignored_files_nor_the_index_are_touched() {
    let turns = Turns::new();
    let repo = &turns.repo;
    turns.turn("echo two >> a.txt; echo new > new.txt");
    let second = turns.files();
    turns.turn("echo three >> a.txt; rm new.txt; echo ignored > key.secret; mkdir -p d; echo d > d/d");
    repo.write("a.txt", "edited by a person\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", "edited once more\n");
    let index = std::fs::read(repo.folder.join(".git/index")).unwrap();
    let present = turns.files();
    let told = repo.ostler(&["rewind", &turns.id, "--turn", "2", "--files"]).exits(0).stdout;
    assert!(told.contains("3 files put back to the end of turn 2; undo: ostler rewind"), "{told}");
    let mut expected = second.clone();
    expected.insert(repo.folder.join("key.secret"), present[&repo.folder.join("key.secret")].clone());
    assert_eq!(turns.files(), expected);
    assert_eq!(std::fs::read(repo.folder.join(".git/index")).unwrap(), index);
    assert_eq!(repo.git(&["show", ":a.txt"]), "edited by a person");
    repo.ostler(&["rewind", &turns.id, "--undo"]).exits(0);
    assert_eq!(turns.files(), present, "also changes that no turn made");
    assert!(!repo.folder.join(".git/ostler.rewind").exists());
}

#[test]
fn each_undo_goes_one_rewind_further_back_and_a_rewind_without_changes_does_not_count() {
    let turns = Turns::new();
    let repo = &turns.repo;
    turns.turn("echo two >> a.txt");
    repo.write("a.txt", "edited by a person\n");
    let present = turns.files();
    repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(0);
    let first = turns.files();
    let told = repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(0).stdout;
    assert!(told.contains("0 files") && !told.contains("--undo"), "{told}");
    assert_eq!(turns.files(), first);
    repo.write("later.txt", "by a person, too\n");
    let later = turns.files();
    repo.ostler(&["rewind", &turns.id, "--turn", "2", "--files"]).exits(0);
    for expected in [&later, &present] {
        repo.ostler(&["rewind", &turns.id, "--undo"]).exits(0);
        assert_eq!(turns.files(), *expected);
    }
    let end = repo.ostler(&["rewind", &turns.id, "--undo"]).exits(2);
    assert!(end.complaint().contains("nothing has changed"), "{end:?}");
    assert_eq!(turns.files(), present);
    // After another rewind, every earlier state can be reached again.
    repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(0);
    let mut seen = vec![turns.files()];
    while repo.ostler(&["rewind", &turns.id, "--undo"]).code == Some(0) {
        seen.push(turns.files());
        assert!(seen.len() < 10, "undo never ends");
    }
    assert!(seen.contains(&later) && seen.contains(&present), "{seen:?}");
}

#[test]
fn what_is_ignored_now_or_then_is_never_deleted() {
    let turns = Turns::new();
    let repo = &turns.repo;
    turns.turn("echo .env >> .gitignore; echo packages/ >> .gitignore; echo key > .env; mkdir packages; echo p > packages/p; echo 2 > 2.txt");
    let second = turns.files();
    repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(0);
    assert!(!repo.folder.join("2.txt").exists());
    repo.ostler(&["rewind", &turns.id, "--undo"]).exits(0);
    assert_eq!(turns.files(), second);
    // And from an older turn to a newer one.
    repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(0);
    repo.ostler(&["rewind", &turns.id, "--turn", "2", "--files"]).exits(0);
    assert_eq!(turns.files(), second);
}

#[test]
fn rewind_is_refused_where_something_would_be_lost_or_half_done() {
    let turns = Turns::new();
    let repo = &turns.repo;
    let undo = repo.ostler(&["rewind", &turns.id, "--undo"]).exits(2);
    assert!(undo.complaint().contains("were not put back before"), "{undo:?}");
    turns.turn("echo was here > was.txt; mkdir -p folder; echo x > folder/x");
    turns.turn("rm -r was.txt folder; printf 'was.txt\\nfolder\\n' >> .gitignore; echo precious > was.txt; echo precious > folder");
    let before = turns.everything();
    let refused = repo.ostler(&["rewind", &turns.id, "--turn", "2", "--files"]).exits(1);
    let words = refused.complaint();
    assert!(words.contains("was.txt") && words.contains("folder") && words.contains("nothing has changed"), "{words}");
    assert_eq!(turns.everything(), before);
    let none = repo.ostler(&["rewind", &turns.id, "--turn", "7", "--files"]).exits(2);
    assert!(none.complaint().contains("has no snapshot of its files after turn 7"), "{none:?}");

    // In the middle of a merge.
    repo.git(&["checkout", "--quiet", "-b", "side", "HEAD"]);
    repo.write("below/b.txt", "side\n");
    repo.commit("side");
    repo.git(&["checkout", "--quiet", "main"]);
    repo.write("below/b.txt", "main\n");
    repo.commit("main");
    let mut merge = repo.harness.command("git");
    assert!(!merge.current_dir(&repo.folder).args(["merge", "--quiet", "side"]).output().unwrap().status.success());
    let refused = repo.ostler(&["rewind", &turns.id, "--turn", "1", "--files"]).exits(7);
    assert!(refused.complaint().contains("a merge is in progress"), "{refused:?}");
    repo.git(&["merge", "--abort"]);

    // While the session works, or another session in the same tree.
    let other = repo.ostler(&["run", "-d", "demo", "sleep"]).exits(0).stdout.trim().to_owned();
    ostler_testkit::patience::until("a turn", &[], || {
        (repo.ostler(&["show", "--json", &other]).exits(0).json()["state"] == "working").then_some(())
    });
    for id in [&other, &turns.id] {
        let refused = repo.ostler(&["rewind", id, "--turn", "0", "--files"]).exits(7);
        assert!(refused.complaint().contains("is still working"), "{refused:?}");
    }
    repo.ostler(&["stop", "--kill", &other]);
}

#[test]
fn a_copy_of_the_conversation_ends_with_the_turn_and_the_session_stays_as_it_is() {
    let turns = Turns::new();
    let repo = &turns.repo;
    turns.turn("echo two >> a.txt");
    turns.turn("echo three >> a.txt");
    let session = turns.session_folder();
    let transcript = repo.ostler(&["show", "--json", &turns.id]).exits(0).json()["transcript"].clone();
    let read = || std::fs::read(transcript.as_str().unwrap()).unwrap();
    // The keeper publishes the outcome first, and notes the end after that.
    let ends = || std::fs::read_to_string(session.join("journal.jsonl")).unwrap().matches("\"what\":\"ended\"").count();
    ostler_testkit::patience::until("the end is noted", &[&session], || (ends() == 3).then_some(()));
    let before = (std::fs::read(session.join("journal.jsonl")).unwrap(), read());
    let told = repo.ostler(&["rewind", &turns.id, "--turn", "2"]).exits(0).stdout;
    let copy = told.lines().last().unwrap().split(':').next().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "one\ntwo\n");
    let shown = repo.ostler(&["show", "--json", &copy]).exits(0).json();
    assert_eq!((&shown["parent"], &shown["ended"]), (&turns.id.as_str().into(), &true.into()));
    repo.ostler(&["resume", &copy, "say I am the copy"]).exits(0);
    let log = repo.ostler(&["logs", &copy]).exits(0).stdout;
    assert!(log.contains("I am the copy"), "{log}");
    let copied = std::fs::read_to_string(
        repo.ostler(&["show", "--json", &copy]).exits(0).json()["transcript"].as_str().unwrap(),
    )
    .unwrap();
    assert!(
        copied.contains("echo two") && !copied.contains("echo three") && copied.contains("I am the copy"),
        "{copied}"
    );
    assert_eq!((std::fs::read(session.join("journal.jsonl")).unwrap(), read()), before);
    for (turn, words) in [("0", "has nothing before turn 1"), ("9", "has no turn 9")] {
        let refused = repo.ostler(&["rewind", &turns.id, "--turn", turn, "--conversation"]).exits(2);
        assert!(refused.complaint().contains(words), "{refused:?}");
    }
}
