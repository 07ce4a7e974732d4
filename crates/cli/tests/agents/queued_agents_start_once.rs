//! A queued agent gets its prompt when a slot is free, once, whatever was killed while it waited, and has its slot
//! until it ends.

use crate::fixture::{Fixture, for_every_agent};
use ostler_core::view::Phase;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::ProcessKind;

fn waits_and_starts_once(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let config = fixture.harness.root().join("home/.config/ostler");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[queues.q]\nslots = 1\n").unwrap();
    let blocker = fixture.harness.detach(&["--queue", "q", "--", "sleep", "600"]);
    let session = fixture.detach(&["--queue=q", "--keep"], Some("say one"));
    assert_eq!(session.look().state, Phase::Queued);
    // Both at once: the waiting process starts replacements, with the same pipes.
    let before = [ProcessKind::Holder, ProcessKind::Keeper].map(|who| session.living(who));
    session.orphan();
    session.replaced(ProcessKind::Holder, &before[0]);
    session.replaced(ProcessKind::Keeper, &before[1]);
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    let behind = fixture.harness.detach(&["--queue", "q", "--", "true"]);
    assert!(fixture.server.requests().is_empty(), "nothing has run");
    blocker.stop();
    session.until_look("both are answered", |view| view.turns == 2 && view.queued == 0 && view.state == Phase::Idle);
    assert_eq!(behind.look().state, Phase::Queued, "an idle session has its slot, with a process or without");
    fixture.harness.run(&["send", session.id(), "say three"]).exits(0);
    session.until_look("that one, too", |view| view.turns == 3 && view.state == Phase::Idle);
    assert_eq!(behind.look().state, Phase::Queued);
    session.stop();
    fixture.harness.run(&["wait", behind.id()]).exits(0);
    fixture.saw_once(&["say one", "say two", "say three"]);
}

for_every_agent!(waits_and_starts_once:
    claude_waits_and_starts_once Claude,
    codex_waits_and_starts_once Codex,
    gemini_waits_and_starts_once Gemini,
    opencode_waits_and_starts_once Opencode,
    qwen_waits_and_starts_once Qwen,
);
