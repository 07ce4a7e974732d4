//! A fork with each agent's own means: the model knows what was said before, and the original's transcript is not
//! changed.

use crate::fixture::{Fixture, for_every_agent, tokens_of};
use ostler_mock_llm::agents::Agent;

fn a_fork_knows_what_was_said(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    fixture.follow("say one").exits(0);
    let original = fixture.last();
    let before = original.show();
    // opencode's database contains the copy as well, so it changes.
    let file = before.transcript.as_deref().filter(|_| agent != Agent::Opencode);
    let said = file.map(|file| std::fs::read(file).unwrap());
    let fork = fixture.harness.run(&["fork", "-d", original.id(), "say two"]).exits(0);
    let fork = fixture.harness.session(fork.stdout.trim_end());
    fixture.harness.run(&["wait", fork.id()]).exits(0);
    let shown = fork.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.last.as_deref()), ("succeeded", Some("two")), "{shown:?}");
    assert_ne!(shown.outcome().saved, "unverified");
    assert!(shown.native_id.is_some() && shown.native_id != before.native_id, "{shown:?}");
    if agent != Agent::Gemini {
        // The tokens of the original do not count for the copy. Gemini also counts its requests on the side.
        assert_eq!(tokens_of(&fixture, &fork), (ostler_mock_llm::INPUT_TOKENS, ostler_mock_llm::OUTPUT_TOKENS));
    }
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");
    // The copy and the original continue independently.
    fixture.harness.run(&["resume", fork.id(), "say three"]).exits(0);
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two") && told.contains("say three"), "{told}");
    assert!(said == file.map(|file| std::fs::read(file).unwrap()), "the original's transcript was written to");
    fixture.harness.run(&["resume", original.id(), "say four"]).exits(0);
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say four"), "{told}");
    assert!(!told.contains("say two") && !told.contains("say three"), "{told}");
    fixture.proves("fork: knows what was said, leaves the original alone");
}

for_every_agent!(a_fork_knows_what_was_said:
    a_fork_of_claude_knows_what_was_said Claude,
    a_fork_of_codex_knows_what_was_said Codex,
    a_fork_of_gemini_knows_what_was_said Gemini,
    a_fork_of_opencode_knows_what_was_said Opencode,
);

/// A new conversation is on disk only some tens of milliseconds after the end of its first turn.
#[test]
fn a_conversation_can_be_copied_right_after_its_first_turn() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let original = fixture.detach(&["--keep"], Some("say one"));
    fixture.harness.run(&["wait", original.id(), "--until", "turn"]).exits(0);
    let fork = fixture.harness.run(&["fork", original.id(), "say two"]).exits(0);
    assert_eq!(fork.stdout, "two\n", "{fork:?}");
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");

    let shown = original.show();
    let native_id = shown.native_id.as_deref().unwrap();
    let who = fixture.harness.run(&["who", &native_id[..8]]).exits(0).stdout;
    assert!(who.contains(&shown.pid.unwrap().to_string()) && who.contains(original.id()), "{who}");
    fixture.proves("fork right after the first turn");
}
