//! A recording contains only what happened: a client that does something else gets an error.

use crate::fixture::{play, start};
use ostler_testkit::Harness;
use ostler_testkit::recordings::recorded;

#[test]
fn a_wrong_recording_or_option_is_refused_before_anything_starts() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let reply = format!("replay:{}", recorded("claude-reply").file.display());
    let other = harness.root().join("other");
    std::fs::write(&other, "hello\n").unwrap();
    for (words, said) in [
        (vec!["replay:/nowhere"], "No such file"),
        (vec![&format!("replay:{}", other.display())], "does not begin with"),
        (vec![&reply, "another prompt"], "its own messages"),
        (vec![&reply, "--", "--speed", "0"], "is not a speed"),
        (vec![&reply, "--", "--fast"], "--fast"),
    ] {
        let refused = harness.run(&[&["run"], &words[..]].concat()).exits(2);
        assert!(refused.complaint().contains(said), "{refused:?}");
    }
    assert!(harness.ls().is_empty(), "nothing was started");
}

#[test]
fn a_recording_that_waits_to_be_interrupted_says_so() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    for (name, waits) in [("codex-interrupted", true), ("claude-interrupted", true), ("codex-reply", false)] {
        let file = format!("replay:{}", recorded(name).file.display());
        let output = harness.run(&["run", "-d", &file, "--", "--speed", "max"]).exits(0);
        assert_eq!(output.stderr.contains("ostler interrupt @last"), waits, "{name}: {output:?}");
        // The exit code is not checked: how much of the transcript is written by now depends on timing.
        let session = harness.session(output.stdout.trim_end());
        harness.run(&["stop", session.id()]);
        assert!(session.show().ended);
    }
}

#[test]
fn an_answer_that_differs_from_the_recording_ends_it_with_the_reason() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let session = start(&harness, &recorded("claude-denied").file);
    harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    harness.run(&["answer", session.id(), "--allow"]).exits(0);
    harness.run(&["wait", session.id()]).exits(1);
    let complaint = std::fs::read_to_string(session.run_file("err")).unwrap();
    assert!(complaint.contains("a recording cannot answer that"), "{complaint}");
}

#[test]
fn a_conversation_that_was_played_to_its_end_cannot_continue() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let one = recorded("codex-reply");
    let session = play(&harness, &one.file, &one.recording);
    harness.run(&["resume", session.id(), "and then?"]).exits(1);
    let complaint = std::fs::read_to_string(session.path().join("runs/2/err")).unwrap();
    assert!(complaint.contains("all of them are played"), "{complaint}");
}
