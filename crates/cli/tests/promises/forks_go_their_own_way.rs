//! A fork begins with the whole conversation, continues separately, and does not change the original.

use crate::harness;
use serde_json::Value;

fn transcript(shown: &Value) -> String {
    std::fs::read_to_string(shown["transcript"].as_str().unwrap()).unwrap()
}

#[test]
fn a_fork_has_the_conversation_and_the_original_is_not_changed() {
    let harness = harness();
    harness.run(&["run", "--name", "first", "demo", "say one"]).exits(0);
    let show = |id: &str| harness.run(&["show", "--json", id]).exits(0).json();
    let (before, said) = (show("first"), transcript(&show("first")));
    assert_eq!(harness.run(&["fork", "first", "--name", "second", "say two"]).exits(0).stdout, "two\n");
    let (first, second) = (show("first"), show("second"));
    assert_eq!((transcript(&first), &first["outcome"]), (said, &before["outcome"]));
    assert_eq!((&second["parent"], &first["children"]), (&first["id"], &Value::from(vec![second["id"].clone()])));
    assert_ne!(first["native_id"], second["native_id"]);
    assert!(transcript(&second).contains("say one") && transcript(&second).contains("say two"));
    // The fork is a session like any other, and the conversation was copied once.
    harness.run(&["resume", "second", "say three"]).exits(0);
    assert_eq!(transcript(&show("second")).matches("say one\"").count(), 1);
    assert_eq!(transcript(&show("first")), transcript(&before));
}

#[test]
fn a_fork_of_a_running_session_runs_beside_it() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    session.until("its turn is on disk", || {
        let text = std::fs::read_to_string(session.show().transcript?).ok()?;
        text.contains("\"one\"").then_some(())
    });
    harness.run(&["fork", session.id(), "say two"]).exits(0);
    assert!(session.look().alive);
    assert_eq!(session.look().turns, 1);
}

#[test]
fn the_family_is_drawn_and_a_session_without_relatives_has_none() {
    let harness = harness();
    harness.run(&["run", "--name", "first", "demo", "say one"]).exits(0);
    assert!(!harness.run(&["show", "first"]).exits(0).stdout.contains("family"));
    for name in ["second", "third"] {
        harness.run(&["fork", "first", "--name", name, "say two"]).exits(0);
    }
    let first = harness.run(&["show", "first"]).exits(0).stdout;
    let lines: Vec<&str> = first.lines().filter(|line| line.contains("─ ") || line.contains("family")).collect();
    assert!(lines[0].contains("family") && lines[0].ends_with("this one"), "{first}");
    assert!(lines[1].contains("├─ ") && lines[1].contains("second  demo, succeeded"), "{first}");
    assert!(lines[2].contains("└─ ") && lines[2].contains("third  demo, succeeded"), "{first}");
    let second = harness.run(&["show", "second"]).exits(0).stdout;
    assert!(second.contains("first  demo, succeeded") && second.contains("└─ "), "{second}");
    harness.run(&["purge", "first"]).exits(0);
    let orphan = harness.run(&["show", "second"]).exits(0).stdout;
    assert!(orphan.contains("  purged"), "{orphan}");
}

#[test]
fn a_missing_transcript_is_reported_with_the_command_that_restores_it() {
    let harness = harness();
    for archived in [false, true] {
        let session = harness.detach(&["demo", "say one"]);
        harness.run(&["wait", session.id()]).exits(0);
        let transcript = session.show().transcript.unwrap();
        if archived {
            harness.run(&["archive", session.id()]).exits(0);
        }
        std::fs::remove_file(&transcript).unwrap();
        let shown = harness.run(&["show", session.id()]).exits(0).stdout;
        assert!(shown.contains("gone") && !shown.contains("yes: the last turn is in the transcript"), "{shown}");
        let refused = harness.run(&["fork", session.id(), "say two"]).exits(2);
        let restore = format!("ostler checkpoints restore {} last", session.id());
        assert!(refused.complaint().contains("is gone") && refused.complaint().contains(&restore), "{refused:?}");
        harness.run(&["checkpoints", "restore", session.id(), "last"]).exits(0);
        assert!(harness.run(&["show", session.id()]).exits(0).stdout.contains("yes: the last turn is in the"));
        harness.run(&["fork", session.id(), "say two"]).exits(0);
    }
}

#[test]
fn what_cannot_be_forked_is_refused_in_one_line() {
    let harness = harness();
    let command = harness.detach(&["--", "true"]);
    assert!(harness.run(&["fork", command.id(), "more"]).exits(2).complaint().contains("is a command"));
    let idle = harness.detach(&["--keep", "demo"]);
    assert!(harness.run(&["fork", idle.id(), "more"]).exits(2).complaint().contains("no conversation yet"));
    harness.run(&["run", "--name", "first", "demo", "say one"]).exits(0);
    assert!(harness.run(&["fork", "first"]).exits(2).complaint().contains("--keep"));
    assert!(
        harness.run(&["fork", "first", "--name", "a:b", "more"]).exits(2).complaint().contains("is not a valid name")
    );
}
