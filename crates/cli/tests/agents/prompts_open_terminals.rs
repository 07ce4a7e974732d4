//! `run -t AGENT PROMPT`: the prompt is the first message of the agent in its terminal. The same holds for the message
//! of `resume` at a terminal, and for the message of `fork`.

use crate::fixture::{Fixture, for_every_agent};
use crate::person::Person;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Session;

/// The user's messages in the last request to the model.
fn last_seen(fixture: &Fixture) -> Vec<String> {
    fixture.server.requests().iter().filter_map(Request::turn).next_back().unwrap().user_messages.clone()
}

/// The message has arrived, and the session can be stopped without losing it.
fn arrives_and_stops(fixture: &Fixture, session: &Session<'_>) {
    session.until_look("all that was sent has arrived", |view| view.queued == 0);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().saved, "verified");
}

fn gets_its_prompt_in_a_terminal(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let session = fixture.detach(&["-t"], Some("say from the start"));
    fixture.asked_for(1);
    assert_eq!(fixture.seen(), ["say from the start"]);
    session.until_printed("from the start");
    arrives_and_stops(&fixture, &session);

    let mut person = Person::runs(&fixture.harness, (40, 120), &["resume", session.id(), "say once more"]);
    fixture.asked_for(2);
    person.sees("once more");
    person.types(b"\x1c");
    person.is_left_with(0);
    arrives_and_stops(&fixture, &session);
    assert_eq!(last_seen(&fixture), ["say from the start", "say once more"]);

    let forked = fixture.harness.run(&["fork", "-d", session.id(), "say another way"]).exits(0);
    let forked = fixture.harness.session(forked.stdout.trim_end());
    fixture.asked_for(3);
    assert_eq!(last_seen(&fixture), ["say from the start", "say once more", "say another way"]);
    forked.until_look("it has arrived", |view| view.queued == 0);
    fixture.harness.run(&["stop", forked.id()]).exits(0);
    fixture.proves("terminal: a prompt is the first message, also of resume and fork");
}

for_every_agent!(gets_its_prompt_in_a_terminal:
    claude_gets_its_prompt_in_a_terminal Claude,
    codex_gets_its_prompt_in_a_terminal Codex,
    gemini_gets_its_prompt_in_a_terminal Gemini,
    opencode_gets_its_prompt_in_a_terminal Opencode,
);
