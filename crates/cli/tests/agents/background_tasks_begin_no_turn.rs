//! Claude is notified when its background tasks end, and begins a turn about that. A user who ends the session ends
//! those tasks too. The model must not be asked, and paid, for a turn that no user sees.

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

/// For each turn the model gave three answers, the two calls and the text, and no more. The text is the answer and is
/// saved; the task has ended and is named in the outcome.
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
fn no_turn_begins_when_a_stop_ends_the_background_tasks_of_claude() {
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
    assert!(fixture.last_request().contains(r#""text":"done""#), "the conversation continues where it ended");
    fixture.proves("stop while a task runs in the background: no further turn");
    held("`stop` with a task in the background", rounds, "no further request to the model, the reply saved");
}

#[test]
fn no_turn_begins_when_the_end_of_run_ends_the_background_tasks_of_claude() {
    let Some(fixture) = with_pipes() else { return };
    let rounds = times(2, 10);
    for round in 1..=rounds {
        let output = fixture.follow(PROMPT).exits(0);
        assert_eq!(output.stdout, "done\n", "{output:?}");
        ended_with_its_turn(&fixture, &fixture.last(), round);
    }
    held("the end of `run` with a task in the background", rounds, "no further request to the model, the reply saved");
}

/// While the session is kept, claude may begin turns by itself. They are shown like any other turn.
#[test]
fn a_kept_claude_begins_a_visible_turn_when_its_background_task_ends() {
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
