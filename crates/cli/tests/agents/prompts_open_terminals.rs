//! `run -t AGENT PROMPT`: the prompt is the first message of the agent in its terminal.

use crate::bed::{Bed, for_every_agent};
use ostler_model::agents::Agent;

fn is_told_in_a_terminal(agent: Agent) {
    let Some(bed) = Bed::new(agent) else { return };
    agent.trust(&bed.harness.root().join("home"), &bed.work()).unwrap();
    let session = bed.detach(&["-t"], Some("say from the start"));
    bed.asked_for(1);
    assert_eq!(bed.seen(), ["say from the start"]);
    session.until_printed("from the start");
    bed.harness.run(&["stop", session.id()]).exits(0);
    bed.proves("terminal: a prompt is the first message");
}

for_every_agent!(is_told_in_a_terminal:
    claude_is_told_in_a_terminal Claude,
);
