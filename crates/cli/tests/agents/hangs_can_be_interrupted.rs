//! While a model sends nothing, the session stays working, is quiet for longer and longer, and is never declared dead.
//! An interrupt ends the turn, and the outcome is `interrupted`.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Session;

fn quiet_until_interrupted(fixture: &Fixture, session: Session<'_>) {
    let quiet = session.until_look("it is quiet", |view| view.quiet_s >= 1);
    assert_eq!((quiet.state.word(), quiet.alive, quiet.outcome.is_none()), ("working", true, true), "{quiet:?}");
    session.until_look("it is quieter", |view| view.quiet_s > quiet.quiet_s);
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id()]).exits(6);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.turns), ("interrupted", 1), "{shown:?}");
    let logs = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert!(logs.ends_with("the turn was interrupted\n"), "{logs}");
    fixture.harness.nothing_is_left();
}

fn a_hang_can_be_interrupted(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&[], Some("hang"));
    fixture.asked_for(1);
    quiet_until_interrupted(&fixture, session);
    fixture.proves("hang: working and quiet, until interrupted");
}

for_every_agent!(a_hang_can_be_interrupted:
    claude_that_hangs_can_be_interrupted Claude,
    codex_that_hangs_can_be_interrupted Codex,
    gemini_that_hangs_can_be_interrupted Gemini,
    opencode_that_hangs_can_be_interrupted Opencode,
    qwen_that_hangs_can_be_interrupted Qwen,
);

#[test]
fn opencode_that_tries_for_ever_can_be_interrupted() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    let session = fixture.detach(&[], Some("fail 529 always"));
    fixture.asked_for(2);
    quiet_until_interrupted(&fixture, session);
    fixture.proves("endless HTTP 529: working and quiet, until interrupted");
}

/// These two wait for a server that does not run, and report no end.
fn one_that_waits_for_a_server_can_be_interrupted(agent: Agent) {
    let Some(fixture) = Fixture::with_dead_server(agent) else { return };
    let session = fixture.detach(&[], Some("say hello"));
    quiet_until_interrupted(&fixture, session);
    fixture.proves("no server: working and quiet, until interrupted");
}

for_every_agent!(one_that_waits_for_a_server_can_be_interrupted:
    codex_that_waits_for_a_server_can_be_interrupted Codex,
    opencode_that_waits_for_a_server_can_be_interrupted Opencode,
);

/// Opencode's output names the conversation only with the first word of the model.
#[test]
fn opencode_interrupted_in_its_first_turn_continues_the_same_conversation() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    let session = fixture.detach(&["--keep"], Some("hang"));
    fixture.asked_for(1);
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    assert!(session.show().native_id.is_some(), "{:?}", session.show());
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!(fixture.seen(), ["hang", "say two"]);
    assert_eq!(session.show().last.as_deref(), Some("two"));
    fixture.proves("interrupted in the first turn: goes on in the same conversation");
}
