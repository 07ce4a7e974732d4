//! What is sent to an agent in a terminal arrives once: it waits until the prompt is there and no dialog is open, it counts as
//! delivered when the agent has written it down, and what never arrived goes out with the next resume.

use crate::bed::{Bed, for_every_agent};
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_mock_llm::agents::Agent;
use ostler_sys::pause::{self, Point, Role};
use ostler_testkit::Session;

/// Waits until nothing that was sent waits any more.
fn all_has_arrived(session: &Session<'_>) {
    session.until_look("all that was sent has arrived", |view| view.queued == 0);
}

fn trusting(agent: Agent) -> Option<Bed> {
    let bed = Bed::new(agent)?;
    agent.trust(&bed.harness.root().join("home"), &bed.work()).unwrap();
    Some(bed)
}

/// `send` right after the start, then to the ended session, then the first words again with `resume`.
fn takes_messages_whenever_they_come(agent: Agent) {
    let Some(bed) = trusting(agent) else { return };
    let session = bed.detach(&["-t"], None);
    bed.harness.run(&["send", session.id(), "say one"]).exits(0);
    all_has_arrived(&session);
    bed.asked_for(1);
    assert_eq!(bed.seen(), ["say one"]);
    bed.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");

    let kept = bed.harness.run(&["send", session.id(), "say two"]).exits(0);
    assert!(kept.stdout.contains("send it now: ostler resume"), "{kept:?}");
    assert_eq!(session.look().queued, 1);
    bed.harness.run(&["resume", "-d", session.id(), "say one"]).exits(0);
    all_has_arrived(&session);
    bed.asked_for(3);
    bed.saw_once(&["say one", "say two", "say one"]);
    bed.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");
    bed.proves("terminal: a message waits for the prompt, and is delivered when it is in the transcript");
    bed.proves("terminal: a message to an ended session goes out with the next resume");
}

for_every_agent!(takes_messages_whenever_they_come:
    codex_takes_messages_in_a_terminal Codex,
    gemini_takes_messages_in_a_terminal Gemini,
    opencode_takes_messages_in_a_terminal Opencode,
);

/// Codex offers another model as it starts: keys would choose it.
#[test]
fn a_dialog_of_codex_is_not_answered_by_a_message() {
    const MODEL: &str = "model = \"gpt-5.6-sol\"";
    let Some(bed) = trusting(Agent::Codex) else { return };
    let config = bed.harness.root().join("home/.codex/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("model = \"scripted\"", MODEL)).unwrap();
    let session = bed.detach(&["-t"], None);
    bed.harness.run(&["send", session.id(), "say hello"]).exits(0);

    let wanted = format!("codex shows a dialog; answer it: ostler attach {}", session.id());
    let view =
        session.until_look("why it waits is told", |view| view.message_waits.as_deref() == Some(wanted.as_str()));
    assert_eq!(view.queued, 1);
    let listed = bed.harness.run(&["ls"]).exits(0);
    assert!(listed.stdout.contains(&format!("not delivered yet: {wanted}")), "{listed:?}");

    // Stopped before the dialog was answered, it never had a conversation; the message waits for the next resume.
    bed.harness.run(&["stop", session.id()]).exits(0);
    let ended = session.look();
    assert_eq!((ended.queued, ended.outcome.unwrap().saved.word()), (1, "not applicable"));
    assert!(std::fs::read_to_string(&config).unwrap().contains(MODEL), "nobody chose a model");
    bed.harness.run(&["resume", "-d", session.id()]).exits(0);
    session.until_look("the dialog is there again", |view| view.message_waits.as_deref() == Some(wanted.as_str()));

    let mut person = Person::runs(&bed.harness, (40, 120), &["attach", session.id()]);
    person.sees("Use existing model");
    person.types(b"\x1b[B\r");
    all_has_arrived(&session);
    person.sees("say hello");
    person.types(b"\x1c");
    person.is_left_with(0);
    assert!(std::fs::read_to_string(&config).unwrap().contains(MODEL));
    bed.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");
    bed.proves("terminal: a dialog is not answered by a message, which waits and says why");
}

/// Each keeper dies at another step of typing a message, and the next one sees on the screen how far it got.
#[test]
fn a_keeper_that_dies_while_it_types_types_nothing_twice() {
    let Some(mut bed) = trusting(Agent::Codex) else { return };
    let points = bed.harness.root().join("points");
    std::fs::create_dir(&points).unwrap();
    bed.harness.set(pause::VARIABLE, &points);
    let session = bed.detach(&["-t"], None);
    bed.harness.run(&["send", session.id(), "say ready"]).exits(0);
    all_has_arrived(&session);
    let mut messages = vec!["say ready".to_owned()];
    // Decided, noted, typed, sent, found. Two pieces are put in: the text and the return.
    let steps = [
        (Point::FeedingNoted, 1),
        (Point::PieceNoted, 1),
        (Point::PiecePut, 1),
        (Point::PieceNoted, 2),
        (Point::MessageFed, 1),
        (Point::MessageTaken, 1),
    ];
    for (place, (point, passing)) in steps.into_iter().enumerate() {
        let token = points.join(format!("{}.kill", pause::token(Role::Keeper, point)));
        std::fs::write(&token, vec![b'.'; passing]).unwrap();
        let message = format!("say step{place}");
        bed.harness.run(&["send", session.id(), &message]).exits(0);
        messages.push(message);
        all_has_arrived(&session);
        bed.asked_for(messages.len());
        assert!(!token.exists(), "the keeper died at {point:?}");
    }
    bed.saw_once(&messages.iter().map(String::as_str).collect::<Vec<_>>());
    bed.harness.run(&["stop", session.id()]).exits(0);
    bed.proves("terminal: no message is typed twice by a keeper that replaces a killed one");
}

/// opencode's turns in a terminal are told, so their ends can be waited for, with their outcomes.
#[test]
fn opencode_tells_of_its_turns_from_a_terminal() {
    let Some(bed) = trusting(Agent::Opencode) else { return };
    let session = bed.detach(&["-t"], None);
    assert_eq!(session.look().state, Phase::Idle, "no turn is running");
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    bed.harness.run(&["send", session.id(), "say one"]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!((session.look().state, session.look().turns), (Phase::Idle, 1));
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);

    bed.harness.run(&["send", session.id(), "fail 400 always"]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(1);

    bed.harness.run(&["send", session.id(), "stream 100000 20"]).exits(0);
    bed.asked_for(3);
    session.until_look("it works", |view| view.state == Phase::Working && view.queued == 0);
    bed.harness.run(&["interrupt", session.id()]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    assert!(session.look().alive, "the session is kept");
    bed.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("interrupted", "verified"), "{shown:?}");
    bed.proves("terminal: turns and their outcomes are known");
    bed.proves("terminal: an interrupt is never a success");
}
