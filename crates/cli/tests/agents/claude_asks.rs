//! Claude asks for permission to use a tool: the question stays open when a process is killed meanwhile, it is answered
//! once, and the answer takes effect.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::ProcessKind;
use rustix::process::Signal;

const TWICE: &str = r#"ask twice Bash {"command":"touch once"} ; say asked"#;

#[test]
fn a_denied_tool_does_not_run_an_allowed_one_does_and_a_question_survives_the_keeper() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach_strict(&["--keep"], TWICE);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let first = session.show().asking.unwrap();
    assert_eq!((&first["tool"], &first["input"]["command"]), (&"Bash".into(), &"touch once".into()));
    fixture.harness.run(&["answer", session.id(), "--deny", "--text", "not yet"]).exits(0);

    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    assert!(!fixture.work().join("once").exists(), "a denied tool did not run");
    let before = session.kill(ProcessKind::Keeper);
    let alone = session.show();
    assert_eq!((alone.state.as_str(), alone.alive), ("asking", true), "{alone:?}");
    assert_ne!(alone.asking.as_ref().map(|ask| &ask["request"]), Some(&first["request"]), "it is the second question");
    session.replaced(ProcessKind::Keeper, &before);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);

    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert!(fixture.work().join("once").exists(), "an allowed tool ran");
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.last.as_deref()), ("idle", Some("asked")));
    assert!(fixture.last_request().contains("not yet"), "the model was told why");
    session.stop();
    fixture.saw_once(&[TWICE]);
    fixture.proves("permission: asked, denied, allowed");
}

#[test]
fn of_two_answers_at_once_one_counts_and_the_other_is_refused() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach_strict(&[], r#"tool Bash {"command":"touch once"} ; say asked"#);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    // The keeper is stopped for a moment, so that both answers are in the inbox before it reads either of them.
    session.signal(ProcessKind::Keeper, Signal::STOP);
    let answers = [
        fixture.harness.start(&["answer", session.id(), "--allow"]),
        fixture.harness.start(&["answer", session.id(), "--deny"]),
    ];
    session.until("both have answered", || {
        let inbox = std::fs::read_to_string(session.path().join("inbox.jsonl")).unwrap();
        (inbox.lines().count() == 3).then_some(())
    });
    session.signal(ProcessKind::Keeper, Signal::CONT);
    let answers = answers.map(ostler_testkit::Started::finish);
    let (heard, late): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.code == Some(0));
    assert_eq!((heard.len(), late.len()), (1, 1), "{answers:?}");
    assert!(late[0].complaint().contains("already answered by"), "{late:?}");
    fixture.harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(fixture.work().join("once").exists(), heard[0].stdout.contains("allowed"), "{heard:?}");
    fixture.proves("permission: of two answers one counts");
}

#[test]
fn a_run_without_a_terminal_says_how_to_answer_and_keeps_the_question_open() {
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
fn a_text_instead_of_a_permission_denies_with_that_reason() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach_strict(&["--keep"], r#"tool Bash {"command":"touch once"} ; say done"#);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    fixture.harness.run(&["answer", session.id()]).exits(2);
    fixture.harness.run(&["answer", session.id(), "--allow", "--text", "use b"]).exits(2);
    fixture.harness.run(&["answer", session.id(), "--text", "use b instead"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert!(!fixture.work().join("once").exists(), "it was not allowed");
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
    // Once as an option of the question, and once as the answer.
    assert!(told.matches("Blue").count() > 1 && !told.contains("did not answer"), "{told}");
    session.stop();
    fixture.proves("question: answered in words");
}
