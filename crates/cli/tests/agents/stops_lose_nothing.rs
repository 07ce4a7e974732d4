//! Whenever a session is stopped, what was accepted before is in the agent's transcript, no tool keeps running, and
//! nothing new begins.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Session, held, times};
use serde_json::Value;

#[test]
fn claude_stopped_at_the_end_of_its_turn_has_saved_it_every_time() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let rounds = times(10, 300);
    let session = fixture.detach(&["--keep"], Some("say reply-0."));
    let mut gone_after = Vec::new();
    for round in 0..rounds {
        // `wait` returns when the keeper has read the end of the turn, which is before claude has written it down.
        fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
        fixture.harness.run(&["stop", session.id()]).exits(0);
        let shown = session.show();
        assert_eq!(shown.outcome().saved, "verified", "round {round}");
        assert_eq!(shown.outcome().kind, "succeeded", "round {round}");
        let transcript = std::fs::read_to_string(shown.transcript.unwrap()).unwrap();
        assert!(transcript.contains(&reply(round)), "round {round}");
        gone_after.push(turn_end_to_session_end(&session));
        fixture.harness.run(&["resume", "-d", "--keep", session.id(), &format!("say reply-{}.", round + 1)]).exits(0);
        fixture.asked_for(round + 2);
        let seen = fixture.last_request();
        for earlier in 0..=round {
            assert!(seen.contains(&reply(earlier)), "round {round}: {} is not in {seen}", reply(earlier));
        }
    }
    fixture.proves("stop at the end of a turn: saved every time");
    gone_after.sort_unstable();
    let (median, longest) = (gone_after[rounds / 2], gone_after[rounds - 1]);
    held(
        "`stop` at the end-of-turn event: `verified`, the reply in the transcript and in each later request",
        rounds,
        &format!("from the end of the turn to gone and proven: median {median} ms, at most {longest} ms"),
    );
}

fn reply(round: usize) -> String {
    format!(r#""text":"reply-{round}.""#)
}

/// In milliseconds, by the journal: from reading the turn's end until the process has exited and the proof is
/// published.
fn turn_end_to_session_end(session: &Session<'_>) -> u64 {
    // The keeper publishes the outcome first, and notes the end after that.
    session.until("its end is noted", || {
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
        let events: Vec<Value> = journal.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let last = |what: &str| events.iter().rfind(|event| event["what"] == what)?["ms"].as_u64();
        last("ended")?.checked_sub(last("turn_ended")?)
    })
}

fn stopped_in_the_middle_of_a_sentence(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let rounds = if agent == Agent::Claude { times(3, 100) } else { 2 };
    let prompts: Vec<String> = (0..rounds).map(|round| format!("stream 100000 20 ; say never-{round}")).collect();
    let session = fixture.detach(&[], Some(&prompts[0]));
    for (round, next) in prompts.iter().skip(1).map(String::as_str).chain(["say next"]).enumerate() {
        // Each time at another word.
        session.until_printed(&format!("word{}", 1 + round * 37 % 50));
        fixture.harness.run(&["stop", session.id()]).exits(0);
        let shown = session.show();
        let outcome = (shown.outcome().kind.as_str(), shown.outcome().saved.as_str());
        assert_eq!(outcome, ("stopped", "verified"), "round {round}: {shown:?}");
        fixture.harness.run(&["resume", "-d", session.id(), next]).exits(0);
    }
    fixture.harness.run(&["wait", session.id()]).exits(0);
    reached_the_model_once(&fixture, prompts.into_iter().chain(["say next".to_owned()]).collect());
    fixture.proves("stop in the middle of a sentence: saved");
    if agent == Agent::Claude {
        held("`stop` in the middle of a streaming turn", rounds, "every prompt reached the model once and in order");
    }
}

for_every_agent!(stopped_in_the_middle_of_a_sentence:
    claude_stopped_in_the_middle_of_a_sentence_keeps_the_prompt Claude,
    gemini_stopped_in_the_middle_of_a_sentence_keeps_the_prompt Gemini,
);

/// In this order. Agents and repairs add messages of their own in between.
#[track_caller]
fn reached_the_model_once(fixture: &Fixture, prompts: Vec<String>) {
    let mut seen = fixture.seen();
    seen.retain(|message| prompts.contains(message));
    assert_eq!(seen, prompts);
}

fn stopped_in_the_middle_of_a_tool(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let rounds = if agent == Agent::Claude { times(2, 100) } else { 1 };
    let prompt =
        |round: usize| format!("{} ; say never", fixture.tool(&format!("mkfifo gate-{round}; cat gate-{round}")));
    let session = fixture.detach(&[], Some(&prompt(0)));
    for round in 0..rounds {
        let tool = fixture.process(&format!("cat gate-{round}"));
        fixture.harness.run(&["stop", session.id()]).exits(0);
        assert!(!tool.may_live(), "the tool is gone when stop returns");
        fixture.harness.nothing_is_left();
        let shown = session.show();
        assert_eq!(shown.outcome().kind, "stopped", "round {round}: {shown:?}");
        assert_ne!(shown.outcome().saved, "unverified", "round {round}: {shown:?}");
        let next = if round + 1 < rounds { prompt(round + 1) } else { "say next".to_owned() };
        fixture.harness.run(&["resume", "-d", session.id(), &next]).exits(0);
    }
    fixture.harness.run(&["wait", session.id()]).exits(0);
    reached_the_model_once(&fixture, (0..rounds).map(prompt).chain(["say next".to_owned()]).collect());
    let seen = fixture.last_request();
    for round in 0..rounds {
        assert!(seen.contains(&format!("mkfifo gate-{round};")), "the call of round {round} is not in {seen}");
    }
    fixture.proves("stop in the middle of a tool: nothing left running");
    if agent == Agent::Claude {
        held(
            "`stop` in the middle of a tool",
            rounds,
            "every prompt and call reached the model, no tool process alive",
        );
    }
}

for_every_agent!(stopped_in_the_middle_of_a_tool:
    claude_stopped_in_the_middle_of_a_tool_leaves_none_running Claude,
    codex_stopped_in_the_middle_of_a_tool_leaves_none_running Codex,
    gemini_stopped_in_the_middle_of_a_tool_leaves_none_running Gemini,
    opencode_stopped_in_the_middle_of_a_tool_leaves_none_running Opencode,
);

fn a_waiting_message_still_waits_after_a_stop(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (tool, words) = fixture.endless_tool();
    let prompt = format!("{tool} ; say never");
    let session = fixture.detach(&[], Some(&prompt));
    fixture.process(words);
    fixture.harness.run(&["send", session.id(), "say afterwards"]).exits(0);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.queued), ("stopped", 1), "{shown:?}");
    assert_eq!(fixture.seen(), [prompt], "nothing was sent");
    let output = fixture.harness.run(&["resume", session.id()]).exits(0);
    assert_eq!(output.stdout, "afterwards\n", "{output:?}");
    assert_eq!(session.show().queued, 0);
    assert_eq!(fixture.seen().last().map(String::as_str), Some("say afterwards"));
    fixture.proves("stop while a message waits: it waits on");
}

for_every_agent!(a_waiting_message_still_waits_after_a_stop:
    a_waiting_message_to_claude_still_waits_after_a_stop Claude,
    a_waiting_message_to_codex_still_waits_after_a_stop Codex,
    a_waiting_message_to_gemini_still_waits_after_a_stop Gemini,
    a_waiting_message_to_opencode_still_waits_after_a_stop Opencode,
);
