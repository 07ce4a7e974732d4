//! An agent behind the Agent Client Protocol asks for permission to use a tool: the answer takes effect, the question
//! survives the keeper, and an interrupt withdraws it.

use crate::acp::{detach, follow};
use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::ProcessKind;

#[test]
fn a_denied_tool_does_not_run_an_allowed_one_does_and_a_question_survives_the_keeper() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let prompt = r#"ask twice run_shell_command {"command":"echo done >> proof"} ; say asked"#;
    let session = detach(&fixture, &["--keep"], Some(prompt));
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let first = session.show().asking.unwrap();
    assert_eq!((&first["tool"], &first["text"]), (&"execute".into(), &"echo done >> proof".into()));
    assert!(first["suggestions"].as_array().is_some_and(|options| options.len() >= 2), "{first}");
    let words = fixture.harness.run(&["answer", session.id(), "--deny", "--text", "not yet"]).exits(1);
    assert!(words.complaint().contains("use --allow or --deny alone"), "{words:?}");
    fixture.harness.run(&["answer", session.id(), "--deny"]).exits(0);

    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    assert!(!fixture.work().join("proof").exists(), "a denied tool did not run");
    let before = session.kill(ProcessKind::Keeper);
    let alone = session.show();
    assert_eq!((alone.state.as_str(), alone.alive), ("asking", true), "{alone:?}");
    assert_ne!(alone.asking.as_ref().map(|ask| &ask["request"]), Some(&first["request"]), "it is the second question");
    session.replaced(ProcessKind::Keeper, &before);
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!(fixture.written("proof"), "done\n", "an allowed tool ran once");
    assert_eq!(session.show().last.as_deref(), Some("asked"));
    session.stop();
    fixture.saw_once(&[prompt]);
    fixture.proves("acp: permission: asked, denied, allowed");
}

#[test]
fn a_run_without_a_terminal_says_how_to_answer() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let output = follow(&fixture, &format!("{} ; say asked", fixture.tool("echo done > proof"))).exits(4);
    let session = fixture.last();
    assert!(output.stderr.contains(&format!("ostler answer {} --allow", session.id())), "{output:?}");
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(fixture.written("proof"), "done\n");
}

#[test]
fn an_interrupt_withdraws_the_question_and_the_next_message_works() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let session = detach(&fixture, &["--keep"], Some(&format!("{} ; say never", fixture.tool("echo done > proof"))));
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    assert_eq!(session.show().asking, None);
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(1);
    fixture.harness.run(&["send", session.id(), "say again"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!(session.show().last.as_deref(), Some("again"));
    session.stop();
    assert!(!fixture.work().join("proof").exists());
    fixture.harness.nothing_is_left();
}
