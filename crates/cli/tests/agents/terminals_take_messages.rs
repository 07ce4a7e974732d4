//! What is sent to an agent in a terminal arrives once. It waits until the prompt is there and no dialog is open,
//! counts as delivered when the agent has written it down, and if it never arrived it is sent with the next resume.

use crate::fixture::{Fixture, for_every_agent};
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_mock_llm::agents::Agent;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::Session;
use std::time::{Duration, Instant};

/// Waits until no message is queued any more.
fn all_has_arrived(session: &Session<'_>) {
    session.until_look("all that was sent has arrived", |view| view.queued == 0);
}

fn trusting(agent: Agent) -> Option<Fixture> {
    let fixture = Fixture::new(agent)?;
    agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    Some(fixture)
}

/// `send` right after the start, then to the ended session, then the first text again with `resume`.
fn takes_messages_whenever_they_come(agent: Agent) {
    let Some(fixture) = trusting(agent) else { return };
    let session = fixture.detach(&["-t"], None);
    fixture.harness.run(&["send", session.id(), "say one"]).exits(0);
    all_has_arrived(&session);
    fixture.asked_for(1);
    assert_eq!(fixture.seen(), ["say one"]);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");

    let kept = fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    assert!(kept.stdout.contains("send it now: ostler resume"), "{kept:?}");
    assert_eq!(session.look().queued, 1);
    fixture.harness.run(&["resume", "-d", session.id(), "say one"]).exits(0);
    all_has_arrived(&session);
    fixture.asked_for(3);
    fixture.saw_once(&["say one", "say two", "say one"]);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");
    fixture.proves("terminal: a message waits for the prompt, and is delivered when it is in the transcript");
    fixture.proves("terminal: a message to an ended session goes out with the next resume");
}

for_every_agent!(takes_messages_whenever_they_come:
    codex_takes_messages_in_a_terminal Codex,
    gemini_takes_messages_in_a_terminal Gemini,
    opencode_takes_messages_in_a_terminal Opencode,
);

/// Chooses the second entry of a dialog of codex, as a person does: presses the key until the entry is selected. Every
/// key is put in (that is our part), but on a busy machine the dialog did not react to them in 12 of 160 runs (load 8
/// to 20); the cause is not known.
fn chooses_the_second(person: &mut Person, session: &Session<'_>) {
    let put_in = || std::fs::read(session.run_file("in")).map_or(0, |bytes| bytes.len());
    for _ in 0..20 {
        let before = put_in();
        person.types(b"\x1b[B");
        session.until("the key is put in", || (put_in() > before).then_some(()));
        let end = Instant::now() + Duration::from_secs(5);
        while !person.shows("› 2.") && Instant::now() < end {
            person.looks(end.saturating_duration_since(Instant::now()));
        }
        if person.shows("› 2.") {
            break;
        }
    }
    person.sees("› 2.");
    person.types(b"\r");
}

/// Codex offers another model as it starts: the keys of a message would choose it.
#[test]
fn a_dialog_of_codex_is_not_answered_by_a_message() {
    const MODEL: &str = "model = \"gpt-5.6-sol\"";
    let Some(fixture) = trusting(Agent::Codex) else { return };
    let config = fixture.harness.root().join("home/.codex/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("model = \"scripted\"", MODEL)).unwrap();
    let session = fixture.detach(&["-t"], None);
    fixture.harness.run(&["send", session.id(), "say hello"]).exits(0);

    let wanted = format!("codex shows a dialog; answer it: ostler attach {}", session.id());
    let view =
        session.until_look("the reason is visible", |view| view.message_waits.as_deref() == Some(wanted.as_str()));
    assert_eq!(view.queued, 1);
    let listed = fixture.harness.run(&["ls"]).exits(0);
    assert!(listed.stdout.contains(&format!("not delivered yet: {wanted}")), "{listed:?}");

    // It was stopped before the dialog was answered, so it never had a conversation. The message waits for the next
    // resume.
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let ended = session.look();
    assert_eq!((ended.queued, ended.outcome.unwrap().saved.word()), (1, "not applicable"));
    assert!(std::fs::read_to_string(&config).unwrap().contains(MODEL), "the model was not changed");
    fixture.harness.run(&["resume", "-d", session.id()]).exits(0);
    session.until_look("the dialog is there again", |view| view.message_waits.as_deref() == Some(wanted.as_str()));

    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees("Use existing model");
    chooses_the_second(&mut person, &session);
    all_has_arrived(&session);
    person.sees("say hello");
    person.types(b"\x1c");
    person.is_left_with(0);
    assert!(std::fs::read_to_string(&config).unwrap().contains(MODEL));
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");
    fixture.proves("terminal: a dialog is not answered by a message, which waits and says why");
}

/// Each keeper is killed at another step of typing a message, and the next one reads from the screen how far it got.
#[test]
fn a_message_is_typed_once_although_keepers_are_killed_while_they_type() {
    let Some(mut fixture) = trusting(Agent::Codex) else { return };
    let points = fixture.harness.root().join("points");
    std::fs::create_dir(&points).unwrap();
    fixture.harness.set(pause_points::VARIABLE, &points);
    let session = fixture.detach(&["-t"], None);
    fixture.harness.run(&["send", session.id(), "say ready"]).exits(0);
    all_has_arrived(&session);
    let mut messages = vec!["say ready".to_owned()];
    // The steps: decided, noted, typed, sent, found. Two pieces are put in: the text and the return.
    let steps = [
        (Point::FeedingNoted, 1),
        (Point::PieceNoted, 1),
        (Point::PiecePut, 1),
        (Point::PieceNoted, 2),
        (Point::MessageFed, 1),
        (Point::MessageTaken, 1),
    ];
    for (place, (point, passing)) in steps.into_iter().enumerate() {
        let token = points.join(format!("{}.kill", pause_points::token(Role::Keeper, point)));
        std::fs::write(&token, vec![b'.'; passing]).unwrap();
        let message = format!("say step{place}");
        fixture.harness.run(&["send", session.id(), &message]).exits(0);
        messages.push(message);
        all_has_arrived(&session);
        fixture.asked_for(messages.len());
        assert!(!token.exists(), "the keeper died at {point:?}");
    }
    fixture.saw_once(&messages.iter().map(String::as_str).collect::<Vec<_>>());
    fixture.harness.run(&["stop", session.id()]).exits(0);
    fixture.proves("terminal: no message is typed twice by a keeper that replaces a killed one");
}

/// opencode reports its turns in a terminal, so `wait` can wait for their ends and report their outcomes.
#[test]
fn opencode_reports_its_turns_from_a_terminal() {
    let Some(fixture) = trusting(Agent::Opencode) else { return };
    let session = fixture.detach(&["-t"], None);
    assert_eq!(session.look().state, Phase::Idle, "no turn is running");
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    fixture.harness.run(&["send", session.id(), "say one"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!((session.look().state, session.look().turns), (Phase::Idle, 1));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);

    fixture.harness.run(&["send", session.id(), "fail 400 always"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(1);

    fixture.harness.run(&["send", session.id(), "stream 100000 20"]).exits(0);
    fixture.asked_for(3);
    session.until_look("it works", |view| view.state == Phase::Working && view.queued == 0);
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    assert!(session.look().alive, "the session is kept");
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("interrupted", "verified"), "{shown:?}");
    fixture.proves("terminal: turns and their outcomes are known");
    fixture.proves("terminal: an interrupt is never a success");
}
