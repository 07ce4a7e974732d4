//! `stop --kill` in the middle of a turn: with every agent the session was stopped, and has not failed.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_sys::process::Pidfd;
use ostler_testkit::ProcessKind;
use rustix::process::Signal;

fn killed_in_a_turn(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (tool, words) = fixture.endless_tool();
    let session = fixture.detach(&[], Some(&format!("{tool} ; say never")));
    let tool = fixture.process(words);
    let output = fixture.harness.run(&["stop", "--kill", session.id()]);
    assert!([Some(0), Some(8)].contains(&output.code), "{output:?}");
    assert!(!tool.may_live(), "the tool is gone when stop returns");
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.signal), ("stopped", Some(9)), "{outcome:?}");
    assert!(outcome.cause.starts_with("stopped by "), "{outcome:?}");
    fixture.harness.run(&["wait", session.id()]).exits(6);
    fixture.proves("stop --kill in the middle of a tool: stopped");
}

for_every_agent!(killed_in_a_turn:
    claude_killed_in_a_turn_is_stopped Claude,
    codex_killed_in_a_turn_is_stopped Codex,
    gemini_killed_in_a_turn_is_stopped Gemini,
    opencode_killed_in_a_turn_is_stopped Opencode,
    qwen_killed_in_a_turn_is_stopped Qwen,
);

/// The kernel takes a moment to end a process of hundreds of megabytes. A resume in that moment waits for the exit.
#[test]
fn claude_is_resumed_while_the_kernel_still_ends_it() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    fixture.follow("say one").exits(0);
    let session = fixture.last();
    for _ in 0..3 {
        fixture.harness.run(&["resume", "-d", "--keep", session.id(), "say more"]).exits(0);
        fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
        session.until_look("it is kept", |view| view.alive && view.kept && view.holder_pid.is_some());
        let all = [ProcessKind::Keeper, ProcessKind::Holder, ProcessKind::Agent].map(|who| session.living(who));
        let pidfds = all.map(|process| Pidfd::open(&process).unwrap().unwrap());
        // All are stopped first, so that none of them replaces another one that was just killed.
        for signal in [Signal::STOP, Signal::KILL] {
            for pidfd in &pidfds {
                pidfd.signal(signal).unwrap();
            }
        }
        fixture.harness.run(&["resume", "-d", session.id(), "say on"]).exits(0);
        fixture.harness.run(&["wait", session.id()]).exits(0);
    }
    fixture.proves("resume right after SIGKILL");
}
