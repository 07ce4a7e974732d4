//! The user sends the same text twice. The transcripts of some agents do not contain our ids, so a message is
//! recognised by its text, and the first message must not count as the second.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session};

const TWIN: &str = "say twin";

/// A session that got the message once and has answered, and whose next process has just got the same message again.
fn sent_twice(fixture: &Fixture) -> Session<'_> {
    let session = fixture.detach(&["--keep"], Some(TWIN));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let before = session.show().run;
    fixture.harness.run(&["send", session.id(), TWIN]).exits(0);
    session.until_look("a process that has it", |view| view.run > before && view.pid.is_some() && view.queued == 0);
    session
}

/// Whatever happened to the second message, the continued conversation has it once, after the first.
#[track_caller]
fn both_are_in_the_conversation(fixture: &Fixture, session: &Session<'_>) {
    fixture.harness.run(&["resume", session.id(), "say after"]).exits(0);
    let mut seen = fixture.server.user_messages().pop().unwrap().messages;
    seen.retain(|message| [TWIN, "say after"].contains(&message.as_str()));
    assert_eq!(seen, [TWIN, TWIN, "say after"]);
}

fn stopped(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = sent_twice(&fixture);
    let output = fixture.harness.run(&["stop", session.id()]);
    let shown = session.show();
    let (saved, waits) = (shown.outcome().saved.as_str(), shown.queued == 1);
    // A message that still waits is not in the transcript, and must not be reported as saved.
    assert!(!waits || saved != "verified", "{shown:?}");
    assert_eq!(output.code, Some(if saved == "unverified" { 8 } else { 0 }), "{output:?}");
    both_are_in_the_conversation(&fixture, &session);
    fixture.proves("the same words twice, stopped before the second: it waits");
}

for_every_agent!(stopped:
    the_second_of_two_equal_messages_is_not_lost_when_codex_is_stopped Codex,
    the_second_of_two_equal_messages_is_not_lost_when_gemini_is_stopped Gemini,
    the_second_of_two_equal_messages_is_not_lost_when_opencode_is_stopped Opencode,
);

fn killed(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = sent_twice(&fixture);
    session.orphan();
    session.kill_if_alive(ProcessKind::Agent);
    both_are_in_the_conversation(&fixture, &session);
    fixture.proves("the same words twice, everything killed before the second: it waits");
}

for_every_agent!(killed:
    the_second_of_two_equal_messages_is_not_lost_when_codex_is_killed Codex,
    the_second_of_two_equal_messages_is_not_lost_when_gemini_is_killed Gemini,
    the_second_of_two_equal_messages_is_not_lost_when_opencode_is_killed Opencode,
);
