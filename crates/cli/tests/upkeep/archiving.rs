//! What is put away is out of the way and comes back as it was.

use crate::harness;
use ostler_testkit::Who;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(name, bytes)| (path.join(name), bytes)));
        } else {
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_session_is_readable_while_put_away_and_comes_back_as_it_was() {
    let harness = harness();
    let session = harness.detach(&["--name", "greeter", "--", "echo", "good morning"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["archive", "greeter"]).exits(0);
    assert!(!session.path().exists());
    assert!(harness.ls().is_empty());
    let listed = harness.run(&["ls", "-a", "--json"]).exits(0).json();
    assert_eq!((&listed[0]["id"], &listed[0]["archived"]), (&session.id().into(), &true.into()));
    assert_eq!(harness.run(&["logs", session.id()]).exits(0).stdout, "good morning\n");
    assert_eq!(session.show().outcome().kind, "succeeded");

    let month = std::fs::read_dir(harness.home().join("archive")).unwrap().next().unwrap().unwrap().path();
    let away = files(&month.join(session.id()));
    harness.run(&["restore", session.id()]).exits(0);
    let back = files(&session.path());
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.values().cloned().collect::<Vec<_>>();
    assert_eq!(names(&away), names(&back));
    assert_eq!(harness.ls().len(), 1);
}

#[test]
fn a_running_session_is_ended_properly_before_it_is_put_away() {
    let harness = harness();
    let (agent, command) = (harness.detach(&["--keep", "demo", "hello"]), harness.detach(&["--", "sleep", "600"]));
    harness.run(&["wait", "--until", "turn", agent.id()]).exits(0);
    let processes = [Who::Agent, Who::Holder, Who::Keeper].map(|who| [agent.living(who), command.living(who)]).concat();
    harness.run(&["archive", agent.id(), command.id()]).exits(0);
    assert!(processes.iter().all(|process| !process.may_live()), "somebody of them still lives");
    assert_eq!(
        (agent.show().outcome().kind.as_str(), agent.show().outcome().saved.as_str()),
        ("succeeded", "verified")
    );
    assert_eq!(command.show().outcome().kind, "stopped");
    assert!(command.show().outcome().cause.contains("archive"));
}

#[test]
fn what_cannot_be_moved_is_named_and_the_others_are_moved() {
    let harness = harness();
    let (first, second) = (harness.detach(&["--", "true"]), harness.detach(&["--", "true"]));
    harness.run(&["wait", first.id(), second.id()]).exits(0);
    let output = harness.run(&["restore", first.id()]).exits(1);
    assert!(output.complaint().contains("is not archived"));
    harness.run(&["archive", first.id()]).exits(0);
    let output = harness.run(&["archive", first.id(), second.id()]).exits(1);
    assert!(output.complaint().contains("is already archived"));
    assert_eq!(output.stdout, format!("{}: archived\n", second.id()));
    let beginning = &first.id()[..7];
    assert_eq!(harness.run(&["restore", beginning]).exits(0).stdout, format!("{}: restored\n", first.id()));
    assert_eq!(harness.run(&["archive", "nobody"]).exits(3).stdout, "");
}

#[test]
fn a_stray_file_in_the_archive_hides_nobody() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["archive", session.id()]).exits(0);
    std::fs::write(harness.home().join("archive/README"), "what this is").unwrap();
    std::fs::create_dir(harness.home().join("archive/old")).unwrap();
    assert_eq!(harness.run(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().len(), 1);
}

#[test]
fn a_session_that_is_resumed_meanwhile_is_never_put_away_alive() {
    let harness = harness();
    for _ in 0..10 {
        let session = harness.detach(&["demo", "say hello"]);
        harness.run(&["wait", session.id()]).exits(0);
        let resumed = harness.start(&["resume", "-d", "--keep", session.id()]);
        let archived = harness.run(&["archive", session.id()]);
        let resumed = resumed.finish();
        let shown = session.show();
        assert!(session.path().exists() || !shown.alive, "{shown:?} {resumed:?} {archived:?}");
        harness.run(&["stop", "--kill", session.id()]).exits(0);
    }
}
