//! Claude is told about the end of its background tasks, and begins a turn about it. A user who ends the session
//! ends those tasks too, and must not have the model asked, and paid, for a turn that nobody sees.

use crate::fixture::Fixture;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Session, held, times};

/// The task reads one pipe and then waits for another. The second call returns when the task runs.
const PROMPT: &str = r#"tool Bash {"command":"cat begun never","run_in_background":true} ; tool Bash {"command":"echo > begun"} ; say done"#;

fn with_pipes() -> Option<Fixture> {
    let fixture = Fixture::new(Agent::Claude)?;
    let made = fixture.harness.command("mkfifo").args(["begun", "never"]).current_dir(fixture.work()).status();
    assert!(made.unwrap().success());
    Some(fixture)
}

/// Three answers, the calls and the words, and nothing else; the words are the answer, and saved; the task is gone and named.
#[track_caller]
fn ended_with_its_turn(fixture: &Fixture, session: &Session<'_>, turns: usize) {
    fixture.harness.nothing_is_left();
    let asked = fixture.server.requests().iter().filter_map(Request::turn).count();
    assert_eq!(asked, 3 * turns, "the model is asked for nothing after the end of the turn");
    let shown = session.show();
    let outcome = shown.outcome();
    let told = (outcome.kind.as_str(), outcome.saved.as_str(), outcome.text.as_deref());
    assert_eq!(told, ("succeeded", "verified", Some("done")), "{outcome:?}");
    assert!(outcome.left.iter().any(|process| process.ends_with(" cat begun never")), "{outcome:?}");
}

#[test]
fn claude_that_is_stopped_hears_nothing_of_the_end_of_its_tasks() {
    let Some(fixture) = with_pipes() else { return };
    let rounds = times(3, 20);
    for round in 1..=rounds {
        let session = fixture.detach(&["--keep"], Some(PROMPT));
        fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
        fixture.harness.run(&["stop", session.id()]).exits(0);
        ended_with_its_turn(&fixture, &session, round);
    }
    let last = fixture.last();
    fixture.harness.run(&["resume", last.id(), "say after"]).exits(0);
    assert!(fixture.last_request().contains(r#""text":"done""#), "the conversation goes on where it ended");
    fixture.proves("stop while a task runs in the background: no further turn");
    held("`stop` with a task in the background", rounds, "no further request to the model, the reply saved");
}

#[test]
fn claude_that_is_done_hears_nothing_of_the_end_of_its_tasks() {
    let Some(fixture) = with_pipes() else { return };
    let rounds = times(2, 10);
    for round in 1..=rounds {
        let output = fixture.follow(PROMPT).exits(0);
        assert_eq!(output.stdout, "done\n", "{output:?}");
        ended_with_its_turn(&fixture, &fixture.last(), round);
    }
    held("the end of `run` with a task in the background", rounds, "no further request to the model, the reply saved");
}

/// While it is kept, it may begin turns of its own: they are seen like any other.
#[test]
fn claude_that_is_kept_answers_to_the_end_of_its_tasks_in_a_turn_that_is_seen() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let prompt = r#"tool Bash {"command":"mkfifo gate; cat gate","run_in_background":true} ; say done"#;
    let session = fixture.detach(&["--keep"], Some(prompt));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    fixture.process("cat gate");
    std::fs::write(fixture.work().join("gate"), "over").unwrap();
    session.until_look("a turn about it", |view| view.turns == 2);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");
}
