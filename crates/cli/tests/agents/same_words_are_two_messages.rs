//! Somebody says the same thing twice. Agents whose transcripts have no ids of ours are found out by the words themselves,
//! and the first message must not stand for the second.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Session, Who};

const TWIN: &str = "say twin";

/// A session that was told it once and has answered, and whose process for the second time has just been given it.
fn told_twice(fixture: &Fixture) -> Session<'_> {
    let session = fixture.detach(&["--keep"], Some(TWIN));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let before = session.show().run;
    fixture.harness.run(&["send", session.id(), TWIN]).exits(0);
    session.until_look("a process that has it", |view| view.run > before && view.pid.is_some() && view.queued == 0);
    session
}

/// Whatever became of the second one, the conversation that goes on has it once, behind the first.
#[track_caller]
fn both_are_in_the_conversation(fixture: &Fixture, session: &Session<'_>) {
    fixture.harness.run(&["resume", session.id(), "say after"]).exits(0);
    let mut seen = fixture.server.user_messages().pop().unwrap().messages;
    seen.retain(|message| [TWIN, "say after"].contains(&message.as_str()));
    assert_eq!(seen, [TWIN, TWIN, "say after"]);
}

fn stopped(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = told_twice(&fixture);
    let output = fixture.harness.run(&["stop", session.id()]);
    let shown = session.show();
    let (saved, waits) = (shown.outcome().saved.as_str(), shown.queued == 1);
    // Where it waits on, nothing of it is in the transcript, and nobody says that it is.
    assert!(!waits || saved != "verified", "{shown:?}");
    assert_eq!(output.code, Some(if saved == "unverified" { 8 } else { 0 }), "{output:?}");
    both_are_in_the_conversation(&fixture, &session);
    fixture.proves("the same words twice, stopped before the second: it waits");
}

for_every_agent!(stopped:
    codex_stopped_before_the_second_of_the_same_words_is_told_it_again Codex,
    gemini_stopped_before_the_second_of_the_same_words_is_told_it_again Gemini,
    opencode_stopped_before_the_second_of_the_same_words_is_told_it_again Opencode,
);

fn killed(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = told_twice(&fixture);
    session.orphan();
    session.kill_if_alive(Who::Agent);
    both_are_in_the_conversation(&fixture, &session);
    fixture.proves("the same words twice, everything killed before the second: it waits");
}

for_every_agent!(killed:
    codex_killed_before_the_second_of_the_same_words_is_told_it_again Codex,
    gemini_killed_before_the_second_of_the_same_words_is_told_it_again Gemini,
    opencode_killed_before_the_second_of_the_same_words_is_told_it_again Opencode,
);
