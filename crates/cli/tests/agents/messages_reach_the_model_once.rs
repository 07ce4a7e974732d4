//! Messages sent during a turn wait in the session and reach the model in order, each once.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn three_messages_during_a_turn(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&["--keep"], Some("stream 15 100"));
    fixture.asked_for(1);
    for message in ["say first", "say second", "say third"] {
        fixture.harness.run(&["send", session.id(), message]).exits(0);
    }
    session.until_look("all are answered", |view| view.turns == 4 && view.queued == 0);
    session.stop();
    assert_eq!(session.show().outcome().kind, "succeeded");
    fixture.saw_once(&["stream 15 100", "say first", "say second", "say third"]);
    fixture.proves("messages during a turn: in order, each once");
}

for_every_agent!(three_messages_during_a_turn:
    claude_gets_three_messages_in_order_and_once Claude,
    codex_gets_three_messages_in_order_and_once Codex,
    gemini_gets_three_messages_in_order_and_once Gemini,
    opencode_gets_three_messages_in_order_and_once Opencode,
    qwen_gets_three_messages_in_order_and_once Qwen,
);
