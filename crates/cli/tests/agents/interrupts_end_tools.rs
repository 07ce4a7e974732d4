//! An interrupt during a running tool: the turn ends as interrupted, the tool's process is gone, and the session takes the
//! next message.

use crate::bed::{Bed, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Who, patience};

fn an_interrupt_ends_the_tool(agent: Agent) {
    let Some(bed) = Bed::new(agent) else { return };
    let (tool, words) = bed.endless_tool();
    let session = bed.detach(&["--keep"], Some(&format!("{tool} ; say never")));
    let tool = bed.process(words);
    let before = session.recorded(Who::Agent);
    bed.harness.run(&["interrupt", session.id()]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    patience::ended(&tool);
    assert_eq!(session.show().turns, 1);

    bed.harness.run(&["send", session.id(), "say again"]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.turns, shown.last.as_deref(), shown.state.as_str()), (2, Some("again"), "idle"), "{shown:?}");
    if agent == Agent::Claude {
        assert_eq!(before.map(|agent| agent.pid()), shown.pid, "it is the same process");
    }
    session.stop();
    bed.harness.nothing_is_left();
    bed.proves("interrupt ends a running tool; the next message works");
}

for_every_agent!(an_interrupt_ends_the_tool:
    an_interrupt_ends_the_tool_of_claude Claude,
    an_interrupt_ends_the_tool_of_codex Codex,
    an_interrupt_ends_the_tool_of_gemini Gemini,
    an_interrupt_ends_the_tool_of_opencode Opencode,
);
