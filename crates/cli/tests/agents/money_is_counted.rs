//! Tokens and money, per turn, run and session, are what the model has counted: over two turns of one session, each in
//! a process of its own or both in one, and over a resume.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::patience;
use serde_json::Value;

/// (read, written)
fn tokens(value: &Value) -> (u64, u64) {
    (value["input"].as_u64().unwrap_or(0), value["output"].as_u64().unwrap_or(0))
}

fn dollars(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// Sums of the turns that `which` picks.
fn sum(shown: &Value, which: impl Fn(&Value) -> bool) -> ((u64, u64), f64) {
    let mut total = ((0, 0), 0.0);
    for turn in shown["spent"].as_array().unwrap().iter().filter(|turn| which(turn)) {
        let (read, written) = tokens(&turn["tokens"]);
        total = ((total.0.0 + read, total.0.1 + written), total.1 + dollars(&turn["cost_usd"]));
    }
    total
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

fn is_counted(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&["--keep"], Some("say one"));
    let show = || fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let first = fixture.tokens();
    assert_eq!(tokens(&show()["tokens"]), first, "of the session, while it lives");
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let second = fixture.tokens();
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let stopped = show();
    assert_eq!(tokens(&stopped["tokens"]), second, "of the session: {stopped}");
    let runs = stopped["run"].as_u64().unwrap();
    let before = sum(&stopped, |_| true);
    assert_eq!(before.0, second, "the turns add up");
    assert_eq!(tokens(&stopped["spent"][0]["tokens"]), first, "of the first turn");

    let output = fixture.harness.run(&["resume", session.id(), "say three"]).exits(0);
    let third = fixture.tokens();
    let of_run = (third.0 - second.0, third.1 - second.1);
    let resumed = show();
    assert_eq!(resumed["run"].as_u64().unwrap(), runs + 1);
    assert_eq!(resumed["spent"].as_array().unwrap().len(), 3, "{resumed}");
    assert_eq!(tokens(&resumed["outcome"]["tokens"]), of_run, "of the run");
    assert_eq!(tokens(&resumed["tokens"]), third, "of the session, over its runs");
    assert_eq!(sum(&resumed, |_| true).0, third);
    assert_eq!(sum(&resumed, |turn| turn["run"] == runs + 1).0, of_run);
    let last_line = format!("{} tokens", of_run.0 + of_run.1);
    let session_line = format!("session: {} tokens", third.0 + third.1);
    assert!(output.stderr.contains(&last_line) && output.stderr.contains(&session_line), "{output:?}");
    let listed = fixture.harness.run(&["ls", "--json"]).exits(0).json();
    assert_eq!((&listed[0]["tokens"], &listed[0]["cost_usd"]), (&resumed["tokens"], &resumed["cost_usd"]));

    match agent {
        Agent::Claude => {
            // Claude reports what its process has cost so far. Each turn was one answer of the same length.
            let each = dollars(&resumed["spent"][0]["cost_usd"]);
            assert!(each > 0.0, "{resumed}");
            for turn in resumed["spent"].as_array().unwrap() {
                assert!(same(dollars(&turn["cost_usd"]), each), "{resumed}");
            }
            assert!(same(dollars(&stopped["outcome"]["cost_usd"]), 2.0 * each), "both turns of the first run");
            assert!(same(dollars(&resumed["outcome"]["cost_usd"]), each), "of the run");
            assert!(same(dollars(&resumed["cost_usd"]), 3.0 * each), "of the session");
        }
        Agent::Codex | Agent::Gemini | Agent::Qwen | Agent::ClaudeAcp | Agent::CodexAcp => {
            assert_eq!(resumed["cost_usd"], Value::Null)
        }
        // It has no price for this model.
        Agent::Opencode => assert!(same(dollars(&resumed["cost_usd"]), 0.0)),
    }
}

/// In a terminal claude does not report tokens and cost. Its transcript and its own records contain them.
#[test]
fn what_claude_uses_in_a_terminal_is_counted() {
    const ANSWER: (u64, u64) = (ostler_mock_llm::INPUT_TOKENS, ostler_mock_llm::OUTPUT_TOKENS);
    let answers = |count: u64| (count * ANSWER.0, count * ANSWER.1);
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    fixture.agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let session = fixture.detach(&["-t"], None);
    let show = || fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
    // A turn is counted when it begins, and is listed in `spent` when it has ended.
    let spent = || ostler_view::look::spent(&session.place().open().unwrap()).unwrap();
    let sends = |text: &str| {
        let before = spent().len();
        fixture.harness.run(&["send", session.id(), text]).exits(0);
        session.until_look("the turn is counted", |_| {
            let turns = spent();
            turns.len() > before && turns.iter().all(|turn| turn.tokens.is_some())
        });
    };
    sends("say one");
    let below = serde_json::json!({ "description": "d", "prompt": "say below", "subagent_type": "general-purpose" });
    sends(&format!("{} ; tool Agent {below} ; say two", fixture.tool("echo ran")));
    let shown = show();
    let turns: Vec<_> = shown["spent"].as_array().unwrap().iter().map(|turn| tokens(&turn["tokens"])).collect();
    assert_eq!(turns, [answers(1), answers(3)], "the subagent's is not the turn's");
    assert_eq!(tokens(&shown["tokens"]), answers(4), "of the session, while it lives");

    fixture.harness.run(&["stop", session.id()]).exits(0);
    let stopped = show();
    let cost = dollars(&stopped["outcome"]["cost_usd"]);
    assert!(cost > 0.0, "{stopped}");
    assert_eq!(tokens(&stopped["outcome"]["tokens"]), answers(4));
    fixture.harness.run(&["resume", "-d", session.id()]).exits(0);
    sends("say three");
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let resumed = show();
    assert_eq!(
        (tokens(&resumed["outcome"]["tokens"]), tokens(&resumed["tokens"])),
        (answers(1), answers(5)),
        "{resumed}"
    );
    let (run, all) = (dollars(&resumed["outcome"]["cost_usd"]), dollars(&resumed["cost_usd"]));
    // The first run had five answers, one of them the subagent's, and perhaps a title. Claude continues to count when
    // it is resumed.
    assert!(run > 0.0 && cost > 4.5 * run && same(all, cost + run), "{resumed}");
    fixture.proves("terminal: tokens as the model counted them");
}

/// After `/clear` claude continues to count, after `/resume` it begins at zero. The run has cost the sum.
#[test]
fn what_claude_costs_in_a_terminal_is_counted_over_all_its_conversations() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = fixture.detach(&["-t"], None);
    let answered = |text: &str| {
        fixture.harness.run(&["send", session.id(), text]).exits(0);
        fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    };
    let changes_conversation = |command: &str| {
        let before = session.look().native_id.unwrap();
        fixture.harness.run(&["send", session.id(), command]).exits(0);
        session.until_look("another conversation", |view| view.native_id.as_ref() != Some(&before));
        before
    };
    answered("say one");
    let first = changes_conversation("/clear");
    answered("say two");
    changes_conversation(&format!("/resume {first}"));
    let journal = session.place().path.join("journal.jsonl");
    // The first record of the cost is from the beginning of the run, so the test waits for the one with `left`.
    patience::until("the cost of what was left is noted", &[&session.place().path], || {
        std::fs::read_to_string(&journal).unwrap().contains(r#""left":true"#).then_some(())
    });
    answered("say three");
    session.stop();
    let shown = fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
    let cost = dollars(&shown["outcome"]["cost_usd"]);
    let each = cost / 3.0;
    let last = std::fs::read_to_string(&journal).unwrap();
    let last = last.lines().rfind(|line| line.contains(r#""what":"cost""#)).unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(each > 0.0 && same(dollars(&last["usd"]), each), "three answers of the same length: {cost}, {last}");
    fixture.proves("terminal: cost over all conversations of a run");
}

for_every_agent!(is_counted:
    what_claude_uses_is_counted Claude,
    what_codex_uses_is_counted Codex,
    what_gemini_uses_is_counted Gemini,
    what_opencode_uses_is_counted Opencode,
);
