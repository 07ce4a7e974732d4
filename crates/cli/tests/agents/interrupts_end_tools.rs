//! An interrupt during a running tool: the turn ends as interrupted, the tool's process is gone, and the session takes
//! the next message.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, patience};

fn an_interrupt_ends_the_tool(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (tool, words) = fixture.endless_tool();
    let session = fixture.detach(&["--keep"], Some(&format!("{tool} ; say never")));
    let tool = fixture.process(words);
    let before = session.recorded(ProcessKind::Agent);
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    patience::ended(&tool);
    assert_eq!(session.show().turns, 1);

    fixture.harness.run(&["send", session.id(), "say again"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.turns, shown.last.as_deref(), shown.state.as_str()), (2, Some("again"), "idle"), "{shown:?}");
    if agent == Agent::Claude {
        assert_eq!(before.map(|agent| agent.pid()), shown.pid, "it is the same process");
    }
    session.stop();
    fixture.harness.nothing_is_left();
    fixture.proves("interrupt ends a running tool; the next message works");
}

for_every_agent!(an_interrupt_ends_the_tool:
    an_interrupt_ends_the_tool_of_claude Claude,
    an_interrupt_ends_the_tool_of_codex Codex,
    an_interrupt_ends_the_tool_of_gemini Gemini,
    an_interrupt_ends_the_tool_of_opencode Opencode,
);
