//! opencode keeps its conversations in a database: its rows prove that a turn is saved, also when it was cut off.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session};

/// How a session ended, and whether its end is saved.
#[track_caller]
fn ended(session: &Session<'_>) -> (String, String) {
    let outcome = session.look().outcome.unwrap();
    (outcome.kind.word().to_owned(), outcome.saved.word().to_owned())
}

#[test]
fn opencode_stopped_in_the_middle_of_a_sentence_has_saved_what_was_said_before() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    let script = format!("{} ; stream 100000 20", fixture.tool("echo ran"));
    let session = fixture.detach(&[], Some(&script));
    fixture.asked_for(2);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(ended(&session), ("stopped".to_owned(), "verified".to_owned()));
    let shown = session.show();
    assert!(shown.transcript.is_some_and(|path| path.ends_with("/opencode/opencode.db")));
}

#[test]
fn opencode_killed_at_the_end_of_its_turn_has_saved_its_answer() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    // On a busy machine it may exit before it is killed.
    let mut sessions = (0..5).map(|_| fixture.detach(&[], Some("say the answer")));
    let killed = |session: &Session<'_>| {
        session.until_printed("the answer");
        session.kill_if_alive(ProcessKind::Agent)
    };
    let session = sessions.find(killed).unwrap();
    let waited = fixture.harness.run(&["wait", session.id()]);
    let (kind, saved) = ended(&session);
    // It depends on the moment of the kill whether it has reported the end of its turn.
    let code = ["succeeded", "failed"].iter().position(|known| *known == kind).unwrap();
    waited.exits(i32::try_from(code).unwrap());
    assert_eq!(saved, "verified");
    assert_eq!(session.look().outcome.unwrap().text.as_deref(), Some("the answer"));
    let output = fixture.harness.run(&["resume", session.id(), "say next"]).exits(0);
    assert_eq!(output.stdout, "next\n");
    assert!(fixture.last_request().contains("the answer"), "the model is told what it said");
}
