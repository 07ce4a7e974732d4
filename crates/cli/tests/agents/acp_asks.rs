//! An agent behind the Agent Client Protocol asks for leave to use a tool: the answer does what it says, the question
//! outlives the keeper, and one that nobody will answer is withdrawn.

use crate::acp::{detach, follow};
use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Who;

#[test]
fn denied_is_not_done_allowed_is_and_a_question_outlives_the_keeper() {
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
    assert!(!fixture.work().join("proof").exists(), "denied is denied");
    let before = session.kill(Who::Keeper);
    let alone = session.show();
    assert_eq!((alone.state.as_str(), alone.alive), ("asking", true), "{alone:?}");
    assert_ne!(alone.asking.as_ref().map(|ask| &ask["request"]), Some(&first["request"]), "it is the second question");
    session.replaced(Who::Keeper, &before);
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!(fixture.written("proof"), "done\n", "allowed is done, once");
    assert_eq!(session.show().last.as_deref(), Some("asked"));
    session.stop();
    fixture.saw_once(&[prompt]);
    fixture.proves("acp: permission: asked, denied, allowed");
}

#[test]
fn a_run_that_nobody_can_answer_says_how() {
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
