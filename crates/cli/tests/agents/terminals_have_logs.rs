//! `logs` of an agent in a terminal: the conversation from its transcript, not what remains of its screen.

use crate::fixture::{Fixture, for_every_agent};
use crate::person::Person;
use crate::terminals_show_their_screen::ready;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, patience};
use serde_json::Value;

fn logs_show_the_conversation(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let session = fixture.detach(&["-t"], None);
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees(ready(agent));
    let logs = |arguments: &[&str]| fixture.harness.run(&[&["logs", session.id()], arguments].concat()).exits(0);
    let before = logs(&[]);
    assert!(before.stderr.contains("has not written its transcript yet; this is the text of its screen"), "{before:?}");
    assert!(before.stdout.contains(ready(agent)), "{before:?}");
    let follower = fixture.harness.start(&["logs", "-f", "--json", session.id()]);

    let prompt = format!("{} ; stream 4 1", fixture.tool("echo from the tool"));
    fixture.harness.run(&["send", session.id(), &prompt]).exits(0);
    person.sees("word1 word2 word3 word4");
    person.types(b"\x1c");
    person.is_left_with(0);
    // Agents write to the transcript a moment after they have drawn.
    let text = patience::until("the conversation is in the log", &[&fixture.work()], || {
        Some(logs(&[]).stdout).filter(|text| text.ends_with("word1 word2 word3 word4\n"))
    });
    let places = [format!("› {prompt}"), "● ".to_owned(), "  from the tool".to_owned()];
    // On a loaded machine gemini itself loses the output of a command that ends at once (measured). Its transcript then
    // has an empty output.
    let lost = agent == Agent::Gemini && text.contains("Output: (empty)");
    let places = match agent {
        Agent::Gemini if lost => [&places[0][..], &places[1], "Output: (empty)"],
        Agent::Gemini => [&places[0][..], &places[1], "Output: from the tool"],
        Agent::Claude | Agent::Codex | Agent::Opencode | Agent::Qwen | Agent::ClaudeAcp | Agent::CodexAcp => {
            places.each_ref().map(String::as_str)
        }
    };
    let found: Vec<Option<usize>> = places.iter().map(|words| text.find(words)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} in {text}");
    let times = if lost { 2 } else { 3 };
    assert_eq!(
        text.matches("from the tool").count(),
        times,
        "the prompt, the call and what came back, each once: {text}"
    );
    assert_eq!(logs(&["-n", "1"]).stdout, "word1 word2 word3 word4\n");
    assert_eq!(logs(&["--grep", "WORD1 ", "-i", "--since", "1h"]).stdout, "word1 word2 word3 word4\n");
    assert_eq!(logs(&["--since", "now"]).stdout, "");
    let screen = logs(&["--screen"]);
    assert!(screen.stdout.contains("word1 word2 word3 word4") && screen.stdout != text, "{screen:?}");
    session.until("the last message is in the list", || {
        let ls: Value = fixture.harness.run(&["ls", "--json"]).exits(0).json();
        (ls[0]["last"] == "word1 word2 word3 word4").then_some(())
    });

    fixture.harness.run(&["send", session.id(), "say and the end"]).exits(0);
    patience::until("the second answer is in the log", &[&fixture.work()], || {
        logs(&[]).stdout.ends_with("› say and the end\nand the end\n").then_some(())
    });
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let followed: Vec<Value> =
        follower.finish().exits(0).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<&str> =
        followed.iter().filter(|item| item["kind"] == "told").filter_map(|item| item["text"].as_str()).collect();
    assert_eq!(told, [prompt.as_str(), "say and the end"], "{followed:?}");
    let kinds: Vec<&str> =
        followed.iter().filter_map(|item| item["kind"].as_str()).filter(|kind| *kind != "thought").collect();
    assert_eq!(kinds, ["told", "tool_called", "tool_returned", "said", "told", "said"], "{followed:?}");
    let timed = |item: &Value| item["at"].as_str().is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok());
    assert!(followed.iter().all(timed), "{followed:?}");
    fixture.proves("terminal: logs show the conversation, -f follows it");
}

for_every_agent!(logs_show_the_conversation:
    claude_in_a_terminal_has_a_log Claude,
    codex_in_a_terminal_has_a_log Codex,
    gemini_in_a_terminal_has_a_log Gemini,
    opencode_in_a_terminal_has_a_log Opencode,
);

/// An agent that is killed in the middle of a turn cannot report its end.
fn a_killed_turn_is_marked(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (tool, words) = fixture.endless_tool();
    let prompt = format!("{tool} ; say never");
    let behind_acp = agent == Agent::CodexAcp;
    let session =
        if behind_acp { crate::acp::detach(&fixture, &[], Some(&prompt)) } else { fixture.detach(&[], Some(&prompt)) };
    fixture.process(words);
    session.kill(ProcessKind::Agent);
    // Processes that its tools leave behind get a moment to end. For that long it is `stopping`, and nothing else.
    let mut states: Vec<&str> = Vec::new();
    session.until_look("it has ended", |view| {
        if states.last() != Some(&view.status) {
            states.push(view.status);
        }
        view.ended
    });
    assert!(states == ["stopping", "failed"] || states == ["failed"], "{states:?}");
    let logs = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    let last = logs.lines().last().unwrap_or_default();
    assert!(
        last.ends_with("the agent was killed by SIGKILL") || last == "the agent was killed in the middle of its turn",
        "{logs}"
    );
    let mode = if behind_acp { "acp: " } else { "" };
    fixture.proves(&format!("{mode}SIGKILL in the middle of a turn: the log says that it was cut off"));
}

for_every_agent!(a_killed_turn_is_marked:
    a_killed_turn_of_claude_is_marked Claude,
    a_killed_turn_of_codex_is_marked Codex,
    a_killed_turn_of_gemini_is_marked Gemini,
    a_killed_turn_of_opencode_is_marked Opencode,
    a_killed_turn_through_the_adapter_of_codex_is_marked CodexAcp,
);
