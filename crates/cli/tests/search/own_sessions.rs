//! Sessions of ostler are found, by their transcripts or by their own records, and can be continued from a hit.

use crate::{harness, hits, texts};
use serde_json::Value;

fn words(hit: &Value, field: &str) -> Vec<String> {
    hit[field].as_array().unwrap().iter().skip(1).map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_is_found_and_continued_with_the_command_of_its_hit() {
    let harness = harness();
    let session = harness.detach(&["--name", "stripes", "demo", "say the zebra is here"]);
    harness.run(&["wait", session.id()]).exits(0);
    let found = hits(&harness, &["zebra", "--ours", "--role", "user"]);
    let hit = &found[0];
    assert_eq!((hit["session"].as_str(), hit["name"].as_str()), (Some(session.id()), Some("stripes")), "{hit}");
    assert_eq!(hit["title"], "say the zebra is here");
    assert!(hit["at"].as_str().is_some_and(|at| at.starts_with("20")), "{hit}");

    let mut resume: Vec<String> = words(hit, "command");
    assert_eq!(resume, ["resume", session.id()]);
    resume.push("say a giraffe as well".to_owned());
    harness.run(&resume.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
    assert!(hits(&harness, &["giraffe"]).iter().all(|hit| hit["session"] == session.id()));
    let read = words(hit, "read");
    let log = harness.run(&read.iter().map(String::as_str).collect::<Vec<_>>()).exits(0).stdout;
    assert!(log.contains("zebra is here") && log.contains("giraffe"), "{log}");

    // An archived session is still found, also with the messages between two archivings; a purged session is not.
    harness.run(&["archive", session.id()]).exits(0);
    let found = hits(&harness, &["zebra", "--ours"]);
    assert_eq!(words(&found[0], "command"), ["restore", session.id()]);
    harness.run(&["restore", session.id()]).exits(0);
    harness.run(&["resume", session.id(), "say an okapi as well"]).exits(0);
    harness.run(&["archive", session.id()]).exits(0);
    assert_eq!(hits(&harness, &["okapi", "--ours", "--role", "user"]).len(), 1);
    harness.run(&["purge", session.id()]).exits(0);
    assert_eq!(texts(&harness, &["giraffe", "--ours"]), [""; 0]);
}

#[test]
fn a_session_that_runs_is_found_and_attached_to() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say the zebra is here"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let found = hits(&harness, &["zebra", "--role", "user"]);
    assert_eq!(words(&found[0], "command"), ["attach", session.id()]);
    harness.run(&["send", "--wait", session.id(), "say a giraffe as well"]).exits(0);
    assert_eq!(hits(&harness, &["giraffe", "--role", "user"]).len(), 1);
    session.stop();
}
