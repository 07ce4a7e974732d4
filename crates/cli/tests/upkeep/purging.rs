//! A purged session cannot be restored, a live session is not purged, and a half-deleted one is never shown.

use crate::harness;
use ostler_testkit::Harness;

fn names(harness: &Harness, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(harness.home().join(folder)).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_live_session_is_not_purged_and_keeps_running() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let output = harness.run(&["purge", session.id()]).exits(1);
    assert!(output.complaint().contains("stop it first"), "{output:?}");
    assert!(session.show().alive);
}

#[test]
fn ended_and_archived_sessions_are_deleted_and_a_dry_run_only_lists_them() {
    let harness = harness();
    let (ended, archived) = (harness.detach(&["--", "true"]), harness.detach(&["--", "true"]));
    harness.run(&["wait", ended.id(), archived.id()]).exits(0);
    harness.run(&["archive", archived.id()]).exits(0);
    let dry = harness.run(&["purge", "--dry-run", ended.id(), archived.id()]).exits(0);
    assert_eq!(dry.stdout.lines().filter(|line| line.ends_with("would be purged")).count(), 2);
    harness.run(&["purge", ended.id(), archived.id()]).exits(0);
    assert!(names(&harness, "sessions").is_empty());
    assert_eq!(harness.run(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().len(), 0);
    harness.run(&["show", ended.id()]).exits(3);
}

#[test]
fn only_what_ended_long_enough_ago_is_purged_from_the_archive() {
    let harness = harness();
    let (kept, archived) = (harness.detach(&["--", "true"]), harness.detach(&["--", "true"]));
    harness.run(&["wait", kept.id(), archived.id()]).exits(0);
    harness.run(&["archive", archived.id()]).exits(0);
    assert_eq!(harness.run(&["purge", "--archived", "--older-than", "1h"]).exits(0).stdout, "");
    let swept = harness.run(&["purge", "--archived", "--older-than", "0s"]).exits(0).stdout;
    assert_eq!(swept, format!("{}: purged\n", archived.id()));
    assert!(kept.show().ended, "what was not archived stays");
}

#[test]
fn a_purge_that_was_killed_shows_nowhere_and_the_next_one_finishes_it() {
    let harness = harness();
    let (half, other) = (harness.detach(&["--", "true"]), harness.detach(&["--", "true"]));
    harness.run(&["wait", half.id(), other.id()]).exits(0);
    let hidden = half.path().with_file_name(format!(".gone-{}", half.id()));
    std::fs::rename(half.path(), &hidden).unwrap();
    std::fs::remove_file(hidden.join("session.json")).unwrap();
    assert_eq!(harness.ls().len(), 1);
    let found = harness.run(&["doctor"]).exits(1).stdout;
    assert!(found.contains(&format!("rm -r {}", hidden.display())), "{found}");
    harness.run(&["purge", other.id()]).exits(0);
    assert!(names(&harness, "sessions").is_empty());
}

#[test]
fn a_damaged_session_is_deleted_by_name_but_not_while_its_agent_lives() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let record = session.path().join("session.json");
    let good = std::fs::read(&record).unwrap();
    std::fs::write(&record, "garbage").unwrap();
    assert!(harness.run(&["purge", session.id()]).exits(1).complaint().contains("is still running"));
    std::fs::write(&record, good).unwrap();
    session.stop();
    std::fs::write(&record, "garbage").unwrap();
    harness.run(&["purge", session.id()]).exits(0);
    assert!(!session.path().exists());
}

#[test]
fn a_whole_name_has_precedence_over_a_prefix_and_only_a_whole_name_deletes() {
    let harness = harness();
    harness.run(&["run", "--name", "web", "--", "true"]).exits(0);
    harness.run(&["archive", "web"]).exits(0);
    let longer = harness.detach(&["--name", "web-prod", "--", "sleep", "600"]);
    let stopped = harness.run(&["stop", "web"]).exits(0);
    assert!(stopped.stdout.contains("web") && !stopped.stdout.contains("web-prod"), "{stopped:?}");
    assert!(longer.show().alive, "another session was stopped");
    assert_eq!(harness.run(&["show", "--json", "web"]).exits(0).json()["archived"], true);
    harness.run(&["stop", "web-prod"]).exits(0);
    harness.run(&["purge", "web"]).exits(0);
    let again = harness.run(&["purge", "web"]).exits(3);
    assert!(again.complaint().contains("did you mean web-prod?"), "{again:?}");
    assert!(longer.show().ended);
    assert_eq!(harness.run(&["show", "--json", "web"]).exits(0).json()["name"], "web-prod", "a prefix is enough");
}
