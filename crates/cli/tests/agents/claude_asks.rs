//! Claude asks for leave to use a tool: the question waits, no matter which process dies meanwhile, is answered once, and the answer does
//! what it says.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Who;
use rustix::process::Signal;

const TWICE: &str = r#"ask twice Bash {"command":"touch once"} ; say asked"#;

#[test]
fn denied_is_not_done_allowed_is_and_a_question_outlives_the_keeper() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach_strict(&["--keep"], TWICE);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let first = session.show().asking.unwrap();
    assert_eq!((&first["tool"], &first["input"]["command"]), (&"Bash".into(), &"touch once".into()));
    fixture.harness.run(&["answer", session.id(), "--deny", "--text", "not yet"]).exits(0);

    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    assert!(!fixture.work().join("once").exists(), "denied is denied");
    let before = session.kill(Who::Keeper);
    let alone = session.show();
    assert_eq!((alone.state.as_str(), alone.alive), ("asking", true), "{alone:?}");
    assert_ne!(alone.asking.as_ref().map(|ask| &ask["request"]), Some(&first["request"]), "it is the second question");
    session.replaced(Who::Keeper, &before);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);

    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert!(fixture.work().join("once").exists(), "allowed is done");
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.last.as_deref()), ("idle", Some("asked")));
    assert!(fixture.last_request().contains("not yet"), "the model was told why");
    session.stop();
    fixture.saw_once(&[TWICE]);
    fixture.proves("permission: asked, denied, allowed");
}

#[test]
fn of_two_answers_at_once_one_counts_and_the_other_is_told_whose() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach_strict(&[], r#"tool Bash {"command":"touch once"} ; say asked"#);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    // A keeper that does not listen for a moment makes sure that both have answered before either is heard.
    session.signal(Who::Keeper, Signal::STOP);
    let answers = [
        fixture.harness.start(&["answer", session.id(), "--allow"]),
        fixture.harness.start(&["answer", session.id(), "--deny"]),
    ];
    session.until("both have answered", || {
        let inbox = std::fs::read_to_string(session.path().join("inbox.jsonl")).unwrap();
        (inbox.lines().count() == 3).then_some(())
    });
    session.signal(Who::Keeper, Signal::CONT);
    let answers = answers.map(ostler_testkit::Started::finish);
    let (heard, late): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.code == Some(0));
    assert_eq!((heard.len(), late.len()), (1, 1), "{answers:?}");
    assert!(late[0].complaint().contains("already answered by"), "{late:?}");
    fixture.harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(fixture.work().join("once").exists(), heard[0].stdout.contains("allowed"), "{heard:?}");
    fixture.proves("permission: of two answers one counts");
}

#[test]
fn a_run_that_nobody_can_answer_says_how_and_leaves_the_question_standing() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let work = fixture.work();
    let prompt = r#"tool Bash {"command":"touch once"} ; say asked"#;
    let output = fixture.harness.run(&["run", "--cwd", work.to_str().unwrap(), "claude", prompt]).exits(4);
    let session = fixture.last();
    assert!(output.stderr.contains(&format!("ostler answer {} --allow", session.id())), "{output:?}");
    assert_eq!(session.show().state, "asking");
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    assert!(fixture.work().join("once").exists());
}

#[test]
fn words_instead_of_a_permission_are_a_no_with_its_reason() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach_strict(&["--keep"], r#"tool Bash {"command":"touch once"} ; say done"#);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    fixture.harness.run(&["answer", session.id()]).exits(2);
    fixture.harness.run(&["answer", session.id(), "--allow", "--text", "use b"]).exits(2);
    fixture.harness.run(&["answer", session.id(), "--text", "use b instead"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert!(!fixture.work().join("once").exists(), "nobody has allowed it");
    assert!(fixture.last_request().contains("use b instead"), "the model was told");
    session.stop();
}

#[test]
fn a_question_shows_its_choices_and_its_answer_reaches_the_model() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let question = r#"tool AskUserQuestion {"questions":[{"question":"Which colour?","header":"Colour","options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}],"multiSelect":false}]} ; say chosen"#;
    let session = fixture.detach_strict(&["--keep"], question);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let shown = fixture.harness.run(&["show", session.id()]).exits(0).stdout;
    assert!(shown.contains("Red | Blue") && shown.contains("--text"), "{shown}");
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(2);
    fixture.harness.run(&["answer", session.id(), "--text", "Blue"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let told = fixture.last_request();
    // Once as a choice, and once as what was chosen.
    assert!(told.matches("Blue").count() > 1 && !told.contains("did not answer"), "{told}");
    session.stop();
    fixture.proves("question: answered in words");
}
