//! What was accepted reaches the agent, even if every process was killed before it was delivered: the agent's own
//! conversation shows whether the message is there.

use crate::fixture::{Fixture, for_every_agent};
use ostler_core::view::{Phase, View};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session};

/// The continued conversation has both messages, each once and in order.
#[track_caller]
fn both_are_answered(fixture: &Fixture, session: &Session<'_>) {
    fixture.harness.run(&["send", session.id(), "say after"]).exits(0);
    let output = fixture.harness.run(&["resume", session.id()]).exits(0);
    assert!(output.stdout.ends_with("after\n"), "{output:?}");
    let mut seen = fixture.server.user_messages().pop().unwrap().messages;
    seen.retain(|message| ["say zero", "say after"].contains(&message.as_str()));
    assert_eq!(seen, ["say zero", "say after"]);
    assert_eq!(session.show().queued, 0);
}

fn stopped_at_once(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&[], Some("say zero"));
    let output = fixture.harness.run(&["stop", session.id()]);
    assert!([Some(0), Some(8)].contains(&output.code), "{output:?}");
    both_are_answered(&fixture, &session);
    fixture.proves("stop before it has begun: the prompt waits for the resume");
}

for_every_agent!(stopped_at_once:
    a_prompt_to_claude_that_was_stopped_at_once_waits Claude,
    a_prompt_to_codex_that_was_stopped_at_once_waits Codex,
    a_prompt_to_gemini_that_was_stopped_at_once_waits Gemini,
    a_prompt_to_opencode_that_was_stopped_at_once_waits Opencode,
);

fn killed_at_once(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&["--keep"], Some("say zero"));
    session.orphan();
    session.kill_if_alive(ProcessKind::Agent);
    both_are_answered(&fixture, &session);
    fixture.proves("everything killed before it has begun: the prompt waits for the resume");
}

for_every_agent!(killed_at_once:
    a_prompt_to_claude_that_was_killed_at_once_waits Claude,
    a_prompt_to_codex_that_was_killed_at_once_waits Codex,
    a_prompt_to_gemini_that_was_killed_at_once_waits Gemini,
    a_prompt_to_opencode_that_was_killed_at_once_waits Opencode,
);

/// One process per message: after a process was killed, the next one gets the same message.
fn killed_with_a_message(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&["--keep"], Some("say zero"));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let before = session.show().run;
    fixture.harness.run(&["send", session.id(), "say after"]).exits(0);
    session.until_look("a process for it", |view| view.run > before && view.pid.is_some());
    session.kill_if_alive(ProcessKind::Agent);
    fixture.harness.run(&["send", session.id(), "say last"]).exits(0);
    let at_rest = |view: &View| view.ended || (view.queued == 0 && view.state == Phase::Idle);
    // A process that is killed before it can get its message ends the session.
    if session.until_look("all is answered, or the end", at_rest).ended {
        fixture.harness.run(&["resume", "-d", "--keep", session.id()]).exits(0);
        session.until_look("all is answered", |view| view.queued == 0 && view.state == Phase::Idle);
    }
    let mut seen = fixture.server.user_messages().pop().unwrap().messages;
    seen.retain(|message| message.starts_with("say "));
    assert_eq!(seen, ["say zero", "say after", "say last"]);
    fixture.proves("killed before it took in a message: the next process is given it");
}

for_every_agent!(killed_with_a_message:
    a_message_of_a_killed_codex_is_given_to_the_next_process Codex,
    a_message_of_a_killed_gemini_is_given_to_the_next_process Gemini,
    a_message_of_a_killed_opencode_is_given_to_the_next_process Opencode,
);
