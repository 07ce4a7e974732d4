//! What is particular to Qwen Code: it asks before it uses a tool, an interrupt ends its process, and it cannot copy a
//! conversation.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;

#[test]
fn qwen_asks_and_the_answer_takes_effect() {
    let Some(fixture) = Fixture::new(Agent::Qwen) else { return };
    let script = r#"ask twice run_shell_command {"command":"touch once"} ; say asked"#;
    let session = fixture.detach_strict(&["--keep"], script);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let first = session.show().asking.unwrap();
    assert_eq!((&first["tool"], &first["input"]["command"]), (&"run_shell_command".into(), &"touch once".into()));
    fixture.harness.run(&["answer", session.id(), "--deny", "--text", "not yet"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    assert!(!fixture.work().join("once").exists(), "a denied tool did not run");
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert!(fixture.work().join("once").exists(), "an allowed tool ran");
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.last.as_deref()), ("idle", Some("asked")));
    assert!(fixture.last_request().contains("not yet"), "the model was told why");
    session.stop();
    fixture.saw_once(&[script]);
    fixture.proves("permission: asked, denied, allowed");
}

#[test]
fn an_interrupt_ends_turn_and_process_of_qwen_and_the_conversation_can_be_resumed() {
    let Some(fixture) = Fixture::new(Agent::Qwen) else { return };
    let session = fixture.detach(&["--keep"], Some("stream 1000 300"));
    fixture.asked_for(1);
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id()]).exits(6);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.turns), ("interrupted", 1), "{shown:?}");
    // Only the agent itself could copy its conversation, and qwen cannot.
    let refused = fixture.harness.run(&["fork", session.id(), "say copied"]).exits(2);
    assert!(refused.complaint().contains("qwen cannot copy a conversation"), "{refused:?}");
    let again = fixture.harness.run(&["resume", session.id(), "say on"]).exits(0);
    assert_eq!(again.stdout, "on\n", "{again:?}");
    assert!(fixture.last_request().contains("stream 1000 300"), "the same conversation");
    fixture.proves("interrupted: goes on in the same conversation");
    fixture.proves_impossible("fork: knows what was said, leaves the original alone", "It makes no copies.");
}
