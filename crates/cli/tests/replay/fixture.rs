//! Plays a recording, and sends the same answers and interrupts as when it was made.

use ostler_replay::{Action, Cue, Recording, Run, Told};
use ostler_testkit::{Harness, Session};
use serde_json::Value;
use std::path::Path;

/// Starts the recording without pauses, in the background.
#[track_caller]
pub fn start<'a>(harness: &'a Harness, file: &Path) -> Session<'a> {
    harness.detach(&[&format!("replay:{}", file.display()), "--", "--speed", "max"])
}

/// Plays the whole recording, to the end.
#[track_caller]
pub fn play<'a>(harness: &'a Harness, file: &Path, recording: &Recording) -> Session<'a> {
    let session = start(harness, file);
    let one_each = recording.runs.iter().all(Run::takes_one_message);
    for (index, run) in recording.runs.iter().enumerate() {
        if index > 0 && !one_each {
            // The exit code is not checked: the run may have been interrupted. The outcome is in the snapshot.
            harness.run(&["wait", session.id()]);
            let [message] = &run.messages()[..] else { panic!("a run that is resumed with one message: {run:?}") };
            harness.run(&["resume", "-d", session.id(), message]).exits(0);
        }
        for cue in run.cues() {
            follow(harness, &session, &cue);
        }
    }
    harness.run(&["wait", session.id()]);
    session
}

#[track_caller]
fn follow(harness: &Harness, session: &Session<'_>, cue: &Cue) {
    match &cue.told {
        // The first messages are sent by `run`.
        Told::Message(_) => {}
        Told::Answer { allow } => {
            harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
            harness.run(&["answer", session.id(), if *allow { "--allow" } else { "--deny" }]).exits(0);
        }
        Told::Interrupt => {
            session.until("it has printed what it had printed then", || {
                let printed = std::fs::read(session.run_file("out")).unwrap_or_default();
                let lines = printed.iter().filter(|&&byte| byte == b'\n').count();
                // A run that prints nothing before the interrupt must at least have got its message.
                let told = std::fs::metadata(session.run_file("in")).is_ok_and(|file| file.len() > 0);
                (told && lines >= cue.printed).then_some(())
            });
            harness.run(&["interrupt", session.id()]).exits(0);
        }
    }
}

/// The session file that a session should have: as recorded, with the ids of this session.
pub fn expected_session_file(session: &Session<'_>, recording: &Recording) -> String {
    let shown = session.show();
    let now = shown.native_id.unwrap_or_default();
    let mut text = String::new();
    for action in recording.runs.iter().flat_map(|run| &run.steps).map(|step| &step.action) {
        if let Action::Saves(line) = action {
            text.push_str(std::str::from_utf8(&line.bytes()).unwrap());
        }
    }
    text = text.replace(&recording.conversation, &now).replace(ostler_replay::WORK, &shown.cwd);
    let inbox = std::fs::read_to_string(session.path().join("inbox.jsonl")).unwrap();
    let requests = inbox.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names = requests
        .filter(|request| request["want"] == "message")
        .map(|request| request["id"].as_str().unwrap().to_owned());
    for (then, now) in recorded_names(recording).iter().zip(names) {
        text = text.replace(then, &now);
    }
    text
}

/// The ids that messages had in the recording.
fn recorded_names(recording: &Recording) -> Vec<String> {
    let reads = recording.runs.iter().flat_map(|run| &run.steps).filter_map(|step| match &step.action {
        Action::Reads(text) => serde_json::from_str::<Value>(&text.text).ok(),
        _ => None,
    });
    reads.filter_map(|line| line["uuid"].as_str().map(str::to_owned)).collect()
}
