//! Agents behind the Agent Client Protocol: run, follow, further message, logs, wait, resume. What is told again of the
//! earlier turns when a conversation is loaded is not taken for an answer.

use crate::acp::{detach, follow};
use crate::bed::{Bed, for_every_agent, tokens_of};
use ostler_mock_llm::agents::Agent;
use ostler_mock_llm::{INPUT_TOKENS, OUTPUT_TOKENS};
use ostler_testkit::Who;

#[test]
fn gemini_is_followed_and_its_text_tokens_and_logs_are_right() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    let output = follow(&bed, "stream 3 10").exits(0);
    assert_eq!(output.stdout, "word1 word2 word3\n", "{output:?}");
    let session = bed.last();
    let shown = session.show();
    assert_eq!((shown.agent.as_str(), shown.turns, shown.state.as_str()), ("acp", 1, "ended"));
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.source.as_str()), ("succeeded", "agent"), "{outcome:?}");
    assert_eq!((outcome.text.as_deref(), outcome.saved.as_str()), (Some("word1 word2 word3"), "not_applicable"));
    // Of what it asks the model on the side it says nothing here.
    assert_eq!(tokens_of(&bed, &session), (INPUT_TOKENS, OUTPUT_TOKENS));
    let logs = bed.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert!(logs.contains("stream 3 10") && logs.contains("word1 word2 word3"), "{logs}");
    bed.harness.run(&["wait", session.id()]).exits(0);
    bed.saw_once(&["stream 3 10"]);
    bed.harness.nothing_is_left();
    bed.proves("acp: tokens as the model counted them");
}

fn takes_further_messages_and_is_resumed(agent: Agent) {
    let Some(bed) = Bed::new(agent) else { return };
    let session = detach(&bed, &["--keep"], Some("say one"));
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let first = session.recorded(Who::Agent).map(|agent| agent.pid());
    bed.harness.run(&["send", session.id(), "say two"]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let idle = session.show();
    assert_eq!((idle.state.as_str(), idle.turns, idle.pid), ("idle", 2, first), "{idle:?}");
    session.stop();
    assert_eq!(session.show().outcome().kind, "succeeded");
    bed.harness.nothing_is_left();

    let output = bed.harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(output.stdout.ends_with("three\n") && !output.stdout.contains("two"), "only what is new: {output:?}");
    let shown = session.show();
    assert_eq!((shown.turns, shown.run), (3, 2), "{shown:?}");
    let text = shown.outcome().text.clone().unwrap_or_default();
    assert!(text.ends_with("three") && !text.contains("two"), "{text:?}");
    bed.saw_once(&["say one", "say two", "say three"]);
    let logs = bed.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert_eq!(logs.matches("say two").count(), 1, "nothing is told twice: {logs}");
    bed.harness.nothing_is_left();
    bed.proves("acp: run, follow, wait, logs");
    bed.proves("acp: further messages");
    bed.proves("acp: resume after the end");
}

for_every_agent!(takes_further_messages_and_is_resumed:
    gemini_takes_further_messages_and_is_resumed Gemini,
    opencode_takes_further_messages_and_is_resumed Opencode,
    the_adapter_of_claude_takes_further_messages_and_is_resumed ClaudeAcp,
    the_adapter_of_codex_takes_further_messages_and_is_resumed CodexAcp,
);

#[test]
fn messages_that_come_while_the_conversation_opens_wait_and_arrive_once_though_the_keeper_dies() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    let session = detach(&bed, &["--keep"], Some("say one"));
    let mut killed = session.kill(Who::Keeper);
    for _ in 0..3 {
        session.replaced(Who::Keeper, &killed);
        assert_eq!(session.show().state, "starting");
        killed = session.kill(Who::Keeper);
    }
    bed.harness.run(&["send", session.id(), "say two"]).exits(0);
    session.until_look("both are answered", |view| view.turns == 2 && view.queued == 0);
    session.stop();
    bed.saw_once(&["say one", "say two"]);
}
