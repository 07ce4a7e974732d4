//! An agent that is killed in the middle of a tool: when it is resumed, the model knows that the tool may have run.

use crate::bed::{Bed, for_every_agent};
use crate::conversation::is_well_formed;
use ostler_model::agents::Agent;
use ostler_testkit::Who;

fn killed_in_the_middle_of_a_tool(agent: Agent) {
    let Some(bed) = Bed::new(agent) else { return };
    let (tool, words) = bed.endless_tool();
    let session = bed.detach(&[], Some(&format!("{tool} ; say never")));
    bed.process(words);
    session.kill(Who::Agent);
    bed.harness.run(&["wait", session.id()]);
    let output = bed.harness.run(&["resume", session.id(), "say next"]).exits(0);
    let seen = is_well_formed(&bed);
    assert!(seen.contains("mkfifo gate"), "the prompt is there: {seen}");
    // Codex says it in its own word, and is left to it.
    let told = if agent == Agent::Codex { "aborted" } else { "may have run in part or in full" };
    assert!(seen.contains(told), "{seen}");
    assert_eq!(output.stderr.contains("ostler: mended: "), agent != Agent::Codex, "{output:?}");
    if agent != Agent::Codex {
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
        assert!(journal.contains(r#""what":"mended""#), "{journal}");
    }
    let again = bed.harness.run(&["repair", session.id()]).exits(0);
    assert!(again.stdout.contains("nothing to mend"), "{again:?}");
}

#[test]
fn claude_killed_together_with_both_helpers_is_told() {
    let Some(bed) = Bed::new(Agent::Claude) else { return };
    let (tool, words) = bed.endless_tool();
    let session = bed.detach(&[], Some(&format!("{tool} ; say never")));
    let left = bed.process(words);
    session.orphan();
    session.kill(Who::Agent);
    let output = bed.harness.run(&["resume", session.id(), "say next"]).exits(0);
    assert!(output.stderr.contains("a call of Bash has no result"), "{output:?}");
    let seen = is_well_formed(&bed);
    assert!(seen.contains("may have run in part or in full"), "{seen}");
    if left.may_live() {
        // Whoever ends it, the command that nobody waits for any more ends when its pipe is opened.
        std::fs::write(bed.work().join("gate"), "").unwrap();
    }
}

for_every_agent!(killed_in_the_middle_of_a_tool:
    claude_killed_in_the_middle_of_a_tool_is_told Claude,
    codex_killed_in_the_middle_of_a_tool_is_told Codex,
    gemini_killed_in_the_middle_of_a_tool_is_told Gemini,
);
