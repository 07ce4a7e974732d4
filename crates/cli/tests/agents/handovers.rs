//! One agent continues what another has begun: what was said and done reaches the second agent's model, and the first
//! conversation stays as it was. Copies of a conversation send their results back to it, once.

use crate::fixture::{Fixture, for_every_agent};
use crate::paid::interrupted;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, patience};

/// The first message that the session got.
fn told(fixture: &Fixture, id: &str) -> String {
    let log = fixture.harness.run(&["logs", "--json", id]).exits(0).stdout;
    let mut items = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    items.find(|item| item["kind"] == "told").unwrap()["text"].as_str().unwrap().to_owned()
}

fn work_goes_from_one_agent_to_another(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    // From this agent to the demo.
    fixture.follow(&format!("{} ; say the tool has run", fixture.tool("echo one > made.txt"))).exits(0);
    let from = fixture.last();
    let before = from.show();
    let id = fixture.harness.run(&["handover", from.id(), "--to", "demo", "-d", "say more"]).exits(0).stdout;
    fixture.harness.run(&["wait", id.trim()]).exits(0);
    let prompt = told(&fixture, id.trim());
    assert!(prompt.contains("[agent]\nthe tool has run"), "{prompt}");
    assert!(prompt.lines().any(|line| line.starts_with("[tool] ") && line.contains("echo one > made.txt")), "{prompt}");
    let after = from.show();
    assert_eq!((after.native_id, after.turns), (before.native_id, before.turns));

    // From the demo to this agent.
    fixture
        .harness
        .run(&["run", "--name", "first", "--cwd", fixture.work().to_str().unwrap(), "demo", "say hello there"])
        .exits(0);
    let to = fixture.harness.run(&["handover", "first", "--to", agent.name(), "-d", "finish it"]).exits(0).stdout;
    fixture.harness.run(&["wait", to.trim()]).exits(0);
    let request = fixture.last_request();
    assert!(request.contains("[agent]\\nhello there") && request.contains("finish it"), "{request}");
    let shown = fixture.harness.run(&["show", "--json", to.trim()]).exits(0).json();
    assert_eq!((shown["origin"].as_str(), shown["outcome"]["kind"].as_str()), (Some("handover"), Some("succeeded")));
    fixture.proves("handover: from it and to it");
}

for_every_agent!(work_goes_from_one_agent_to_another:
    work_goes_from_claude_to_another_and_back Claude,
    work_goes_from_codex_to_another_and_back Codex,
    work_goes_from_gemini_to_another_and_back Gemini,
    work_goes_from_opencode_to_another_and_back Opencode,
    work_goes_from_qwen_to_another_and_back Qwen,
);

#[test]
fn five_copies_of_claude_send_their_results_once_whatever_is_killed() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    fixture.follow("say the beginning").exits(0);
    let original = fixture.last();
    let prompts: Vec<String> = (1..=5).map(|n| format!("stream {} 20", n + 20)).collect();
    let words: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let job =
        fixture.harness.run(&[&["fan", "-d", original.id()], &words[..]].concat()).exits(0).stdout.trim().to_owned();
    let driver = fixture.harness.session(&job);
    let record = fixture.harness.home().join("sessions").join(&job).join("job.jsonl");
    let (mut round, mut kills, mut size) = (0, 0, 0);
    patience::until("the job has ended", &[record.parent().unwrap()], || {
        let now = std::fs::metadata(&record).map_or(0, |file| file.len());
        let shown = fixture.harness.run(&["show", "--json", &job]).exits(0).json();
        // Only when everything that was killed before has been replaced.
        if now > size && shown["alive"] == true && shown["kept"] == true {
            size = now;
            // A driver that is killed repeatedly is started again after growing pauses, so it is killed only in some
            // rounds.
            let who = [ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder, ProcessKind::Keeper][round % 4];
            kills += usize::from(driver.kill_if_alive(who));
            // And the helpers and agents of the copies, in turn.
            let text = std::fs::read_to_string(&record).unwrap_or_default();
            let steps = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            let copies: Vec<String> = steps.filter_map(|step| step["session"].as_str().map(str::to_owned)).collect();
            if let Some(copy) = copies.get(round % copies.len().max(1))
                && fixture.harness.home().join("sessions").join(copy).exists()
            {
                let who = [ProcessKind::Keeper, ProcessKind::Holder, ProcessKind::Agent][round % 3];
                kills += usize::from(fixture.harness.session(copy).kill_if_alive(who));
            }
            round += 1;
        }
        (shown["ended"] == true).then_some(())
    });
    assert!(kills >= 5, "{kills} kills");
    fixture.harness.run(&["wait", &job]).exits(0);
    let requests = fixture.server.requests();
    let brought: Vec<&String> = requests
        .iter()
        .filter_map(Request::turn)
        .filter(|turn| turn.answers == 0)
        .filter_map(|turn| turn.user_messages.last())
        .collect();
    let (results, brought): (Vec<&String>, Vec<&String>) =
        brought.into_iter().partition(|message| message.starts_with("5 copies of this conversation"));
    let logs = fixture.harness.run(&["logs", &job]).exits(0).stdout;
    let interrupted = interrupted(&logs.lines().collect::<Vec<_>>());
    for (number, prompt) in (1..).zip(&prompts) {
        let more = interrupted.get(&format!("copy {number}")).copied().unwrap_or(0);
        let asked = brought.iter().filter(|message| message.contains(prompt)).count();
        assert!((1..=1 + more).contains(&asked), "{prompt}, interrupted {more} times: {brought:?}\n{logs}");
    }
    assert_eq!(results.len(), 1, "{brought:?}");
    for n in 1..=5 {
        assert!(results[0].contains(&format!("number=\"{n}\"")), "{}", results[0]);
    }
    fixture.proves("fan: copies and results exactly once");
}
