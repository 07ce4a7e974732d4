//! An agent in a terminal of its own: it opens with its prompt, takes what is sent, and a client that attaches sees its
//! screen.

use crate::fixture::{Fixture, for_every_agent};
use crate::person::Person;
use ostler_mock_llm::agents::Agent;
use ostler_mock_llm::{Ending, Request, Turn};

fn in_a_terminal(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let session = fixture.detach(&["-t"], None);
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees(ready(agent));
    fixture.harness.run(&["send", session.id(), "stream 3 1"]).exits(0);
    person.sees("word1 word2 word3");
    assert_eq!(fixture.seen(), ["stream 3 1"]);
    // These agents do not report their turns in a terminal.
    if matches!(agent, Agent::Codex | Agent::Gemini | Agent::Qwen) {
        assert_eq!(session.show().state, "running");
        let refused = fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(2);
        assert!(refused.complaint().contains("does not report its turns in a terminal"), "{refused:?}");
        fixture.proves_impossible("terminal: `wait --until turn`", no_turns(agent));
    }
    person.types(b"\x1c");
    person.is_left_with(0);
    assert!(session.show().alive, "it keeps running without a client");

    let mut again = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    again.sees("word1 word2 word3");
    again.types(b"\x1c");
    again.is_left_with(0);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    fixture.harness.nothing_is_left();
    fixture.proves("terminal: attach, send, detach");
}

fn interrupted_in_a_terminal(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let session = fixture.detach(&["-t"], None);
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees(ready(agent));
    fixture.harness.run(&["send", session.id(), "stream 100000 20"]).exits(0);
    person.sees("word7 ");
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    let hung_up = |request: &Request| request.turn().is_some() && request.ending == Ending::ClosedEarly;
    fixture.server.wait_for(|requests| requests.iter().any(hung_up)).unwrap();
    fixture.harness.run(&["send", session.id(), "say afterwards"]).exits(0);
    // The screen shows the prompt as well, and a turn without a word of an answer is not in the transcript when it is
    // stopped.
    let answered = |request: &Request| {
        let asks = |turn: &Turn| turn.user_messages.last().is_some_and(|last| last.contains("say afterwards"));
        request.turn().is_some_and(asks) && matches!(request.ending, Ending::Answered(_))
    };
    fixture.server.wait_for(|requests| requests.iter().any(answered)).unwrap();
    person.sees("afterwards");
    assert!(session.show().alive, "the session is kept");
    person.types(b"\x1c");
    person.is_left_with(0);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    fixture.proves("terminal: interrupt ends the turn, and the next message works");
}

for_every_agent!(interrupted_in_a_terminal:
    claude_is_interrupted_in_a_terminal Claude,
    codex_is_interrupted_in_a_terminal Codex,
    gemini_is_interrupted_in_a_terminal Gemini,
    opencode_is_interrupted_in_a_terminal Opencode,
    qwen_is_interrupted_in_a_terminal Qwen,
);

/// Why its turns are not known.
fn no_turns(agent: Agent) -> &'static str {
    match agent {
        Agent::Codex | Agent::CodexAcp => {
            "It draws. Its hooks would tell, but it shows a dialog about hooks that the person has not allowed yet."
        }
        Agent::Claude | Agent::ClaudeAcp | Agent::Gemini | Agent::Opencode | Agent::Qwen => {
            "It draws, and tells nothing else."
        }
    }
}

/// What its prompt looks like when it takes input.
pub fn ready(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude | Agent::ClaudeAcp => "for shortcuts",
        Agent::Codex | Agent::CodexAcp => "›",
        Agent::Gemini | Agent::Qwen => "Type your message",
        Agent::Opencode => "Ask anything",
    }
}

for_every_agent!(in_a_terminal:
    claude_works_in_a_terminal Claude,
    codex_works_in_a_terminal Codex,
    gemini_works_in_a_terminal Gemini,
    opencode_works_in_a_terminal Opencode,
    qwen_works_in_a_terminal Qwen,
);
