//! An agent behind the Agent Client Protocol asks for leave to use a tool: the answer does what it says, the question
//! outlives the keeper, and one that nobody will answer is withdrawn.

use crate::acp::{detach, follow};
use crate::bed::Bed;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Who;

#[test]
fn denied_is_not_done_allowed_is_and_a_question_outlives_the_keeper() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    let prompt = r#"ask twice run_shell_command {"command":"echo done >> proof"} ; say asked"#;
    let session = detach(&bed, &["--keep"], Some(prompt));
    bed.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let first = session.show().asking.unwrap();
    assert_eq!((&first["tool"], &first["text"]), (&"execute".into(), &"echo done >> proof".into()));
    assert!(first["suggestions"].as_array().is_some_and(|options| options.len() >= 2), "{first}");
    let words = bed.harness.run(&["answer", session.id(), "--deny", "--text", "not yet"]).exits(1);
    assert!(words.complaint().contains("use --allow or --deny alone"), "{words:?}");
    bed.harness.run(&["answer", session.id(), "--deny"]).exits(0);

    bed.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    assert!(!bed.work().join("proof").exists(), "denied is denied");
    let before = session.kill(Who::Keeper);
    let alone = session.show();
    assert_eq!((alone.state.as_str(), alone.alive), ("asking", true), "{alone:?}");
    assert_ne!(alone.asking.as_ref().map(|ask| &ask["request"]), Some(&first["request"]), "it is the second question");
    session.replaced(Who::Keeper, &before);
    bed.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!(bed.written("proof"), "done\n", "allowed is done, once");
    assert_eq!(session.show().last.as_deref(), Some("asked"));
    session.stop();
    bed.saw_once(&[prompt]);
    bed.proves("acp: permission: asked, denied, allowed");
}

#[test]
fn a_run_that_nobody_can_answer_says_how() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    let output = follow(&bed, &format!("{} ; say asked", bed.tool("echo done > proof"))).exits(4);
    let session = bed.last();
    assert!(output.stderr.contains(&format!("ostler answer {} --allow", session.id())), "{output:?}");
    bed.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    bed.harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(bed.written("proof"), "done\n");
}

#[test]
fn an_interrupt_withdraws_the_question_and_the_next_message_works() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    let session = detach(&bed, &["--keep"], Some(&format!("{} ; say never", bed.tool("echo done > proof"))));
    bed.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    bed.harness.run(&["interrupt", session.id()]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    assert_eq!(session.show().asking, None);
    bed.harness.run(&["answer", session.id(), "--allow"]).exits(1);
    bed.harness.run(&["send", session.id(), "say again"]).exits(0);
    bed.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!(session.show().last.as_deref(), Some("again"));
    session.stop();
    assert!(!bed.work().join("proof").exists());
    bed.harness.nothing_is_left();
}
