//! What a subagent says and does is shown apart, and is never the session's own answer.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use serde_json::json;

#[test]
fn the_words_of_a_subagent_are_not_the_answer_and_its_tools_are_marked() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let below = format!("{} ; say from below", fixture.tool("touch made"));
    let task = json!({ "description": "d", "prompt": below, "subagent_type": "general-purpose" });
    let output = fixture.follow(&format!("tool Agent {task} ; say from above")).exits(0);
    assert!(fixture.work().join("made").exists(), "it did its work");
    assert_eq!(output.stdout.trim(), "from above");
    let session = fixture.last();
    let shown = session.show();
    assert_eq!((shown.outcome().text.as_deref(), shown.last.as_deref()), (Some("from above"), Some("from above")));
    assert_eq!((shown.turns, shown.outcome().saved.as_str()), (1, "verified"));
    let logs = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert!(logs.contains("│ ● Bash touch made"), "{logs}");
}
