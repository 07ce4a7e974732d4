//! A turn counts as saved when it is in the session file, however late that is, and not before. The recordings are of a
//! claude that writes later than any real one, and of one that never writes.

use crate::fixture::{expected_session_file, play};
use ostler_replay::{Action, Recording};
use ostler_testkit::Harness;
use ostler_testkit::recordings::recorded;
use std::path::PathBuf;

/// A changed copy of the recording of a plain reply.
fn changed(harness: &Harness, change: impl FnOnce(&mut Recording)) -> (PathBuf, Recording) {
    let mut recording = recorded("claude-reply").recording;
    change(&mut recording);
    let file = harness.root().join("changed.rec");
    std::fs::write(&file, recording.to_string()).unwrap();
    (file, recording)
}

/// The step at which the end of the turn is announced.
fn end_of_turn(recording: &Recording) -> usize {
    let is_result =
        |action: &Action| matches!(action, Action::Prints(text) if text.text.contains("\"type\":\"result\""));
    recording.runs[0].steps.iter().position(|step| is_result(&step.action)).unwrap()
}

#[test]
fn a_reply_that_reaches_the_session_file_late_is_waited_for() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let (file, recording) = changed(&harness, |recording| {
        let end = end_of_turn(recording);
        let late =
            recording.runs[0].steps[end..].iter_mut().find(|step| matches!(step.action, Action::Saves(_))).unwrap();
        late.pause_ms = 1000;
    });
    let output = harness.run(&["run", &format!("replay:{}", file.display())]).exits(0);
    assert_eq!(output.stdout, "Hello from the model.\n");
    let shown = harness.run(&["show", "--json", "@last"]).exits(0).json();
    let session = harness.session(shown["id"].as_str().unwrap());
    assert_eq!(session.show().outcome().saved, "verified");
    let written = std::fs::read_to_string(session.show().transcript.unwrap()).unwrap();
    assert_eq!(written, expected_session_file(&session, &recording));
}

#[test]
fn a_reply_that_never_reaches_the_session_file_is_kept_and_not_called_saved() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let (file, recording) = changed(&harness, |recording| {
        let end = end_of_turn(recording);
        let steps = &mut recording.runs[0].steps;
        let after = steps.split_off(end);
        steps.extend(after.into_iter().filter(|step| !matches!(step.action, Action::Saves(_))));
    });
    let session = play(&harness, &file, &recording);
    harness.run(&["wait", session.id()]).exits(8);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("succeeded", "unverified"), "{outcome:?}");
    assert_eq!(outcome.text.as_deref(), Some("Hello from the model."));
}
