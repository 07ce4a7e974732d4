//! Run, follow, a tool, a further message, wait, logs, resume: the same for every agent.

use crate::fixture::{Fixture, for_every_agent, tokens_of};
use ostler_mock_llm::agents::Agent;

fn is_followed_and_resumed(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let script = format!("{} ; say all done", fixture.tool("echo ran > proof; echo told"));
    let output = fixture.follow(&script).exits(0);
    assert_eq!(output.stdout, "all done\n", "{output:?}");
    assert_eq!(fixture.written("proof"), "ran\n");
    let session = fixture.last();
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.source.as_str()), ("succeeded", "agent"), "{outcome:?}");
    assert_eq!((outcome.saved.as_str(), outcome.text.as_deref()), ("verified", Some("all done")), "{outcome:?}");
    assert_eq!((shown.turns, shown.cwd.as_str()), (1, fixture.work().to_str().unwrap()));
    assert_eq!(tokens_of(&fixture, &session), fixture.tokens());
    assert!(fixture.tokens().0 >= 2000, "a call, and the answer to its result");
    fixture.harness.run(&["wait", session.id()]).exits(0);

    let before = fixture.tokens();
    let again = fixture.harness.run(&["resume", session.id(), "say once more"]).exits(0);
    assert_eq!(again.stdout, "once more\n", "{again:?}");
    let shown = session.show();
    assert_eq!((shown.run, shown.turns, shown.outcome().saved.as_str()), (2, 2, "verified"));
    let after = fixture.tokens();
    assert_eq!(tokens_of(&fixture, &session), (after.0 - before.0, after.1 - before.1), "of this run");
    fixture.saw_once(&[&script, "say once more"]);
    let logs = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    for said in ["told", "all done", "say once more", "once more"] {
        assert!(logs.contains(said), "{said:?} is not in {logs}");
    }
    let live = std::fs::read_dir(fixture.work()).unwrap().count();
    assert_eq!(live, 1, "only what the tool wrote");
    fixture.proves("proof that a turn is saved");
    fixture.proves("run, follow, wait, logs");
    fixture.proves("tool call");
    fixture.proves("tokens as the model counted them");
    fixture.proves("resume after the end");
}

for_every_agent!(is_followed_and_resumed:
    claude_is_followed_and_resumed Claude,
    codex_is_followed_and_resumed Codex,
    gemini_is_followed_and_resumed Gemini,
    opencode_is_followed_and_resumed Opencode,
    qwen_is_followed_and_resumed Qwen,
);

fn takes_further_messages(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&["--keep"], Some("say one"));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.ended, shown.last.as_deref()), ("idle", false, Some("one")), "{shown:?}");
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.turns, shown.last.as_deref()), ("idle", 2, Some("two")), "{shown:?}");
    let stopped = fixture.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().saved.as_str()), ("succeeded", "verified"));
    assert!(shown.outcome().cause.starts_with("stopped by "), "{stopped:?} {shown:?}");
    if agent == Agent::Claude {
        // Claude has both turns in one run. The other agents have a process, and so a run, for each turn.
        assert_eq!(tokens_of(&fixture, &session), fixture.tokens());
    }
    fixture.saw_once(&["say one", "say two"]);
    fixture.proves("further messages");
}

for_every_agent!(takes_further_messages:
    claude_takes_further_messages Claude,
    codex_takes_further_messages Codex,
    gemini_takes_further_messages Gemini,
    opencode_takes_further_messages Opencode,
    qwen_takes_further_messages Qwen,
);
