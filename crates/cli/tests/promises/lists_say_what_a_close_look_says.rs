//! `ls` reads hundreds of sessions and as little of each as it can. It still says the same as `show`, whatever happened
//! to a session.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind, Session, Shown};

/// Time passes between the two commands.
fn without_time(shown: Shown) -> Shown {
    Shown { quiet_s: 0, ..shown }
}

#[track_caller]
fn agree(harness: &Harness, session: &Session<'_>) -> Shown {
    let listed = harness.ls().into_iter().find(|shown| shown.id == session.id()).unwrap();
    let (listed, shown) = (without_time(listed), without_time(session.show()));
    assert_eq!(listed, shown);
    shown
}

fn summary_file(session: &Session<'_>) -> std::path::PathBuf {
    session.path().join("outcome.json")
}

#[test]
fn ls_and_show_agree_while_helpers_are_replaced() {
    let harness = harness();
    let sessions = [
        harness.detach(&["--", "sh", "-c", "echo hello; exec sleep 600"]),
        harness.detach(&["-t", "--", "sh", "-c", "echo hello; exec sleep 600"]),
        harness.detach(&["--keep", "demo", "say hello"]),
    ];
    for session in &sessions {
        session.living(ProcessKind::Keeper);
        session.until_look("its output is complete", |view| {
            view.kept && view.last.as_deref() == Some("hello") && (view.agent == "command" || view.turns == 1)
        });
        let shown = agree(&harness, session);
        assert!(shown.alive && shown.kept && shown.holder_pid.is_some());
        for who in [ProcessKind::Keeper, ProcessKind::Holder, ProcessKind::Keeper] {
            let before = session.kill(who);
            session.replaced(who, &before);
            session.until_look("both helpers", |view| view.kept && view.holder_pid.is_some());
            let shown = agree(&harness, session);
            assert_eq!(shown.keeper_pid, session.recorded(ProcessKind::Keeper).map(|keeper| keeper.pid()));
            assert_eq!(shown.holder_pid, session.recorded(ProcessKind::Holder).map(|holder| holder.pid()));
        }
        session.stop();
        agree(&harness, session);
    }
}

#[test]
fn ls_and_show_agree_on_a_session_without_helpers() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    let shown = agree(&harness, &session);
    let alarm = shown.alarm.unwrap_or_default();
    assert!(shown.alive && !shown.kept && alarm.contains("holder and keeper are gone"), "{alarm}");
    session.stop();
    agree(&harness, &session);
}

#[test]
fn ls_and_show_agree_on_an_ended_session_that_gets_a_message_and_is_resumed() {
    let harness = harness();
    let session = harness.detach(&["demo", "say hello"]);
    harness.run(&["wait", session.id()]).exits(0);
    session.until("its summary is written", || summary_file(&session).exists().then_some(()));
    assert_eq!(agree(&harness, &session).queued, 0);

    harness.run(&["send", session.id(), "say again"]).exits(0);
    assert!(!summary_file(&session).exists(), "the summary lacks a message that came later");
    assert_eq!(agree(&harness, &session).queued, 1);

    harness.run(&["resume", session.id(), "--keep", "-d"]).exits(0);
    let listed = &harness.ls()[0];
    assert_eq!((listed.alive, listed.run, listed.ended), (true, 2, false));
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    agree(&harness, &session);
    harness.run(&["stop", session.id()]).exits(0);
    session.until("its summary is written again", || summary_file(&session).exists().then_some(()));
    let shown = agree(&harness, &session);
    assert_eq!((shown.run, shown.turns, shown.queued, shown.last.as_deref()), (2, 2, 0, Some("again")));
}

#[test]
fn ls_shows_damage_to_the_records_of_an_ended_session() {
    let harness = harness();
    for file in ["session.json", "runs/1/outcome.json"] {
        let session = harness.detach(&["--", "true"]);
        harness.run(&["wait", session.id()]).exits(0);
        session.until("its summary is written", || summary_file(&session).exists().then_some(()));
        std::fs::write(session.path().join(file), "garbage").unwrap();
        let listed = harness.run(&["ls", "--json"]).exits(0).json();
        let damaged = listed.as_array().unwrap().iter().find(|one| one["id"] == session.id()).unwrap();
        assert_eq!(damaged["state"], "damaged", "{file}");
        std::fs::remove_dir_all(session.path()).unwrap();
    }
}

#[test]
fn ls_and_show_agree_on_a_session_that_gets_a_message_while_it_ends() {
    let harness = harness();
    for round in 0..8 {
        let session = harness.detach(&["demo", "say hello"]);
        // Either the end of the session or the message comes first.
        harness.run(&["send", session.id(), &format!("say round {round}")]).exits(0);
        harness.run(&["wait", session.id()]).exits(0);
        agree(&harness, &session);
        harness.run(&["resume", session.id(), "say more"]).exits(0);
        let shown = agree(&harness, &session);
        assert_eq!((shown.turns, shown.queued), (3, 0), "{shown:?}");
    }
}

#[test]
fn ls_and_show_agree_on_messages_withdrawn_after_the_end() {
    let harness = harness();
    let session = harness.detach(&["demo", "say hello"]);
    harness.run(&["wait", session.id()]).exits(0);
    for text in ["say one", "say two"] {
        harness.run(&["send", session.id(), text]).exits(0);
    }
    let queued = || agree(&harness, &session).queued;
    assert_eq!(queued(), 2);
    harness.run(&["send", session.id(), "--withdraw", "99"]).exits(1);
    assert_eq!(queued(), 2, "a message that did not wait is not subtracted");
    harness.run(&["send", session.id(), "--withdraw", "2"]).exits(0);
    harness.run(&["send", session.id(), "--withdraw", "2"]).exits(1);
    assert_eq!(queued(), 1);
}

#[test]
fn ls_is_right_about_many_sessions_of_which_some_are_lost() {
    let harness = harness();
    let mut sessions: Vec<Session<'_>> = (0..40).map(|_| harness.detach(&["--", "sleep", "600"])).collect();
    for session in &sessions {
        session.living(ProcessKind::Keeper);
    }
    // When all processes of a session are killed at once nothing is recorded, so `ls` has to try the socket of each.
    for session in &sessions[..20] {
        session.orphan();
        session.kill_if_alive(ProcessKind::Agent);
    }
    sessions.push(harness.detach(&["--", "true"]));
    harness.run(&["wait", sessions[40].id()]).exits(0);
    for _ in 0..10 {
        let listed = harness.ls();
        assert_eq!(listed.len(), 41);
        for (number, session) in sessions.iter().enumerate() {
            let shown = listed.iter().find(|shown| shown.id == session.id()).unwrap();
            let kind = shown.outcome.as_ref().map(|outcome| outcome.kind.as_str());
            let right = match number {
                0..20 => kind == Some("lost") && !shown.alive,
                20..40 => kind.is_none() && shown.alive && shown.kept,
                _ => kind == Some("succeeded"),
            };
            assert!(right, "{number}: {shown:?}");
        }
    }
    for session in &sessions[20..40] {
        session.stop();
    }
}

#[test]
fn ls_and_show_agree_on_an_archived_session_whose_transcript_changed() {
    let harness = harness();
    let session = harness.detach(&["demo", "say hello"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["archive", session.id()]).exits(0);
    let transcript = session.show().transcript.unwrap();
    let mut text = std::fs::read_to_string(&transcript).unwrap();
    text.push_str("{}\n");
    std::fs::write(&transcript, text).unwrap();
    let all = harness.run(&["ls", "-a", "--json"]).exits(0).json();
    let listed = all.as_array().unwrap().iter().find(|one| one["id"] == session.id()).unwrap();
    let shown = session.show();
    assert!(shown.alarm.is_some());
    assert_eq!(listed["alarm"].as_str(), shown.alarm.as_deref());
}

#[test]
fn ls_follows_its_schema() {
    let harness = harness();
    let asking = harness.detach(&["--keep", "--label", "task=42", "demo", "ask May I?"]);
    asking.until_look("it asks", |view| view.asking.is_some());
    harness.run(&["run", "--", "false"]).exits(1);
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/session.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let known = schema["properties"].as_object().unwrap();
    let required = schema["required"].as_array().unwrap();
    let listed = harness.run(&["ls", "-a", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    for session in listed.as_array().unwrap() {
        let session = session.as_object().unwrap();
        let unknown: Vec<&String> = session.keys().filter(|key| !known.contains_key(*key)).collect();
        assert!(unknown.is_empty(), "docs/schema does not have {unknown:?}");
        let missing: Vec<_> = required.iter().filter(|key| !session.contains_key(key.as_str().unwrap())).collect();
        assert!(missing.is_empty(), "docs/schema says that there is {missing:?}");
    }
    asking.stop();
}
