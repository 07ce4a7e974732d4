//! Whenever a session is stopped, what was accepted before is in the agent's transcript, no tool lives on, and nothing new
//! begins.

use crate::bed::{Bed, for_every_agent};
use ostler_model::agents::Agent;

#[test]
fn claude_stopped_at_the_end_of_its_turn_has_saved_it_every_time() {
    let Some(bed) = Bed::new(Agent::Claude) else { return };
    let session = bed.detach(&["--keep"], Some("say reply-0"));
    for round in 1..=10 {
        // Returns when the end of the turn is read, which is before claude has written it down.
        bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
        bed.harness.run(&["stop", session.id()]).exits(0);
        let shown = session.show();
        assert_eq!(shown.outcome().saved, "verified", "round {round}");
        assert_eq!(shown.outcome().kind, "succeeded", "round {round}");
        bed.harness.run(&["resume", "-d", "--keep", session.id(), &format!("say reply-{round}")]).exits(0);
    }
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let seen = bed.last_request();
    for round in 0..10 {
        let reply = format!(r#""text":"reply-{round}""#);
        assert!(seen.contains(&reply), "{reply} is not in {seen}");
    }
    bed.proves("stop at the end of a turn: saved every time");
}

#[test]
fn claude_stopped_in_the_middle_of_a_sentence_keeps_the_prompt() {
    let Some(bed) = Bed::new(Agent::Claude) else { return };
    let session = bed.detach(&[], Some("stream 100000 20"));
    session.until_printed("word5");
    bed.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().saved.as_str()), ("stopped", "verified"), "{shown:?}");
    bed.harness.run(&["resume", session.id(), "say next"]).exits(0);
    let seen = bed.seen();
    assert_eq!(
        (seen.first().map(String::as_str), seen.last().map(String::as_str)),
        (Some("stream 100000 20"), Some("say next"))
    );
    bed.proves("stop in the middle of a sentence: saved");
}

fn stopped_in_the_middle_of_a_tool(agent: Agent) {
    let Some(bed) = Bed::new(agent) else { return };
    let (tool, words) = bed.endless_tool();
    let prompt = format!("{tool} ; say never");
    let session = bed.detach(&[], Some(&prompt));
    let tool = bed.process(words);
    bed.harness.run(&["stop", session.id()]).exits(0);
    assert!(!tool.may_live(), "the tool is gone when stop returns");
    bed.harness.nothing_is_left();
    let shown = session.show();
    assert_eq!(shown.outcome().kind, "stopped", "{shown:?}");
    assert_ne!(shown.outcome().saved, "unverified");
    bed.harness.run(&["resume", session.id(), "say next"]).exits(0);
    assert_eq!(bed.seen().first(), Some(&prompt), "the prompt is not forgotten");
    assert!(bed.last_request().contains("gate"), "nor the call");
    bed.proves("stop in the middle of a tool: nothing left running");
}

for_every_agent!(stopped_in_the_middle_of_a_tool:
    claude_stopped_in_the_middle_of_a_tool_leaves_none Claude,
    codex_stopped_in_the_middle_of_a_tool_leaves_none Codex,
    gemini_stopped_in_the_middle_of_a_tool_leaves_none Gemini,
    opencode_stopped_in_the_middle_of_a_tool_leaves_none Opencode,
);

fn a_message_that_waited_waits_on(agent: Agent) {
    let Some(bed) = Bed::new(agent) else { return };
    let (tool, words) = bed.endless_tool();
    let prompt = format!("{tool} ; say never");
    let session = bed.detach(&[], Some(&prompt));
    bed.process(words);
    bed.harness.run(&["send", session.id(), "say afterwards"]).exits(0);
    bed.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.queued), ("stopped", 1), "{shown:?}");
    assert_eq!(bed.seen(), [prompt], "nothing went out");
    let output = bed.harness.run(&["resume", session.id()]).exits(0);
    assert_eq!(output.stdout, "afterwards\n", "{output:?}");
    assert_eq!(session.show().queued, 0);
    assert_eq!(bed.seen().last().map(String::as_str), Some("say afterwards"));
    bed.proves("stop while a message waits: it waits on");
}

for_every_agent!(a_message_that_waited_waits_on:
    a_message_to_claude_that_waited_waits_on Claude,
    a_message_to_codex_that_waited_waits_on Codex,
    a_message_to_gemini_that_waited_waits_on Gemini,
    a_message_to_opencode_that_waited_waits_on Opencode,
);
