//! Agents behind the Agent Client Protocol: run, follow, further message, logs, wait, resume. When a conversation is
//! loaded, the agent repeats the earlier turns; that text does not count as an answer.

use crate::acp::{detach, follow};
use crate::fixture::{Fixture, for_every_agent, tokens_of};
use ostler_mock_llm::agents::Agent;
use ostler_mock_llm::{INPUT_TOKENS, OUTPUT_TOKENS};
use ostler_testkit::ProcessKind;
use rustix::process::Signal;

#[test]
fn gemini_is_followed_and_its_text_tokens_and_logs_are_right() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let output = follow(&fixture, "stream 3 10").exits(0);
    assert_eq!(output.stdout, "word1 word2 word3\n", "{output:?}");
    let session = fixture.last();
    let shown = session.show();
    assert_eq!((shown.agent.as_str(), shown.turns, shown.state.as_str()), ("acp", 1, "ended"));
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.source.as_str()), ("succeeded", "agent"), "{outcome:?}");
    assert_eq!((outcome.text.as_deref(), outcome.saved.as_str()), (Some("word1 word2 word3"), "not_applicable"));
    // Gemini does not report here the tokens of its other requests to the model.
    assert_eq!(tokens_of(&fixture, &session), (INPUT_TOKENS, OUTPUT_TOKENS));
    let logs = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert!(logs.contains("stream 3 10") && logs.contains("word1 word2 word3"), "{logs}");
    fixture.harness.run(&["wait", session.id()]).exits(0);
    fixture.saw_once(&["stream 3 10"]);
    fixture.harness.nothing_is_left();
    fixture.proves("acp: tokens as the model counted them");
}

fn takes_further_messages_and_is_resumed(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = detach(&fixture, &["--keep"], Some("say one"));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let first = session.recorded(ProcessKind::Agent).map(|agent| agent.pid());
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let idle = session.show();
    assert_eq!((idle.state.as_str(), idle.turns, idle.pid), ("idle", 2, first), "{idle:?}");
    session.stop();
    assert_eq!(session.show().outcome().kind, "succeeded");
    fixture.harness.nothing_is_left();

    let output = fixture.harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(output.stdout.ends_with("three\n") && !output.stdout.contains("two"), "only what is new: {output:?}");
    let shown = session.show();
    assert_eq!((shown.turns, shown.run), (3, 2), "{shown:?}");
    let text = shown.outcome().text.clone().unwrap_or_default();
    assert!(text.ends_with("three") && !text.contains("two"), "{text:?}");
    fixture.saw_once(&["say one", "say two", "say three"]);
    let logs = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert_eq!(logs.matches("say two").count(), 1, "nothing is shown twice: {logs}");
    fixture.harness.nothing_is_left();
    fixture.proves("acp: run, follow, wait, logs");
    fixture.proves("acp: further messages");
    fixture.proves("acp: resume after the end");
}

for_every_agent!(takes_further_messages_and_is_resumed:
    gemini_takes_further_messages_and_is_resumed Gemini,
    opencode_takes_further_messages_and_is_resumed Opencode,
    the_adapter_of_claude_takes_further_messages_and_is_resumed ClaudeAcp,
    the_adapter_of_codex_takes_further_messages_and_is_resumed CodexAcp,
);

#[test]
fn messages_sent_while_the_conversation_opens_arrive_once_although_keepers_are_killed() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let session = detach(&fixture, &["--keep"], Some("say one"));
    // The agent is stopped, so that it cannot open the conversation before the keepers are killed, however slow they
    // are.
    session.signal(ProcessKind::Agent, Signal::STOP);
    let mut killed = session.kill(ProcessKind::Keeper);
    for _ in 0..3 {
        session.replaced(ProcessKind::Keeper, &killed);
        assert_eq!(session.show().state, "starting");
        killed = session.kill(ProcessKind::Keeper);
    }
    session.signal(ProcessKind::Agent, Signal::CONT);
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    session.until_look("both are answered", |view| view.turns == 2 && view.queued == 0);
    session.stop();
    fixture.saw_once(&["say one", "say two"]);
}
