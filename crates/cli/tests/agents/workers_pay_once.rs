//! Three workers with a real agent, while the branch moves and processes of all kinds are SIGKILLed at random.
//! According to the model's record each round was asked once, or it was reported as interrupted; and each worker takes
//! one round for each move.

use crate::fixture::Fixture;
use crate::groups_start_each_once::commit_all;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Killer, held, patience, times};
use serde_json::Value;

/// The steps that a worker has noted.
fn steps(fixture: &Fixture, id: &str) -> Vec<Value> {
    let record = fixture.harness.home().join("sessions").join(id).join("job.jsonl");
    let text = std::fs::read_to_string(record).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The rounds that a worker has finished, each as its result in words.
fn rounds(fixture: &Fixture, id: &str) -> Vec<String> {
    let words = |step: &Value| {
        step["key"].as_str()?.strip_prefix("round ")?.parse::<u64>().ok()?;
        Some(step["value"]["words"].as_str()?.to_owned())
    };
    steps(fixture, id).iter().filter_map(words).collect()
}

/// Waits until each worker has finished this many rounds. Workers whose processes were all killed at once are continued
/// with `recover`, as a person would do. Returns how often.
fn until_rounds(fixture: &Fixture, workers: &[String], count: usize) -> usize {
    let mut recovered = 0;
    let folders: Vec<_> = workers.iter().map(|id| fixture.harness.session(id).path()).collect();
    let watched: Vec<_> = folders.iter().map(|folder| folder.as_path()).collect();
    let instead = || {
        let one = |id: &String| {
            let view = fixture.harness.run(&["show", "--json", id]).stdout;
            let journal = std::fs::read_to_string(fixture.harness.session(id).path().join("journal.jsonl"));
            let journal = journal.unwrap_or_default();
            let newest: Vec<&str> = journal.lines().rev().take(12).collect();
            format!(
                "\n{id}: {:?}; {view}{newest:#?}\nlast steps: {:?}",
                rounds(fixture, id),
                steps(fixture, id).iter().rev().take(6).collect::<Vec<_>>()
            )
        };
        workers.iter().map(one).collect()
    };
    let found = || {
        if workers.iter().any(|id| fixture.harness.session(id).look().ended) {
            fixture.harness.run(&["recover"]).exits(0);
            recovered += 1;
        }
        workers.iter().all(|id| rounds(fixture, id).len() >= count).then_some(())
    };
    patience::until_or(&format!("{count} rounds of each"), &watched, found, instead);
    recovered
}

#[test]
fn each_round_of_a_worker_is_paid_once_whatever_is_killed() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let harness = &fixture.harness;
    // Its tool runs without a question.
    let settings = harness.root().join("home/.claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, r#"{"permissions":{"allow":["Bash"]}}"#).unwrap();
    commit_all(&fixture);
    let file = harness.root().join("note.md");
    let prompt = format!("{} ; say done", fixture.tool("echo done > round-$OSTLER_SESSION.txt"));
    std::fs::write(&file, format!("---\nagent: claude\n---\n{prompt}\n")).unwrap();
    let work = fixture.work();
    let mut command = harness.command(harness.program());
    command.current_dir(&work).args(["worker", "-n", "3", "--check", "true", "--agents", file.to_str().unwrap()]);
    let started = ostler_testkit::Started::new(command, None).finish().exits(0);
    let workers: Vec<String> = started.stdout.lines().map(str::to_owned).collect();
    assert_eq!(workers.len(), 3, "{started:?}");
    let (moves, count) = (times(2, 9), times(12, 50));
    let mut killer = Killer::new(0x776f_726b, 500);
    // The first round works on the branch as it is.
    let mut recovered = until_rounds(&fixture, &workers, 1);
    for number in 1..=moves {
        let git = ["commit", "--quiet", "--allow-empty", "--message", &format!("move {number}")];
        let moved = harness.command("git").current_dir(&work).args(git).output().unwrap();
        assert!(moved.status.success(), "{moved:?}");
        killer.kill_up_to(harness, count * number / moves, || false, |_| true);
        recovered += until_rounds(&fixture, &workers, number + 1);
    }
    assert_eq!(killer.killed().len(), count);
    let kills = killer.counted();
    let asked = fixture.server.requests().iter().filter_map(Request::turn).filter(|turn| turn.answers == 0).count();
    let (mut interrupted, mut landed) = (0, 0);
    for id in &workers {
        let rounds = rounds(&fixture, id);
        assert_eq!(rounds.len(), moves + 1, "{rounds:?}; {kills}");
        let lines = steps(&fixture, id);
        let lines = lines.iter().filter_map(|step| step["line"].as_str());
        let said = |number: usize| format!("round {number} agent 1: was interrupted and is continued");
        let lines: Vec<&str> = lines.collect();
        for (number, words) in (1..).zip(&rounds) {
            let more = lines.iter().filter(|line| **line == said(number)).count();
            interrupted += more;
            landed += usize::from(words.starts_with("landed"));
            // An interrupted agent is told to continue, in words that are not a script for this model. Then it has
            // changed nothing.
            let right = words.starts_with("landed 1 changed file as ") || (more > 0 && words == "nothing to land");
            assert!(right, "round {number} of {id}: {words}, interrupted {more} times; {kills}");
        }
    }
    let all = 3 * (moves + 1);
    assert!((all..=all + interrupted).contains(&asked), "asked {asked} times, {interrupted} interrupted; {kills}");
    for id in &workers {
        harness.run(&["stop", id]);
    }
    harness.nothing_is_left();
    let seen = format!(
        "seed {:#x}: {kills}; {asked} times asked, {interrupted} interrupted, {landed} of {all} rounds landed, {recovered} recovered",
        killer.seed()
    );
    held("SIGKILL of 3 workers over the moves of a branch", count, &seen);
    fixture.proves("three workers, killed at random: each round is paid once");
}
