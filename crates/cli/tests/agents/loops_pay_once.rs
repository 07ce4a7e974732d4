//! A loop of ten turns of a real agent, with its driver, keepers, holders and agents SIGKILLed fifty times at random.
//! According to the model's record every prompt reached it once per turn, or the turn was reported as interrupted and
//! not counted.

use crate::fixture::Fixture;
use crate::paid::{by_word, interrupted};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Killer, alone, held, patience, times};

/// Prints the prompt of the next turn, by the files that the test has made.
const PROMPT: &str = "n=1; while test -e open-$n; do n=$((n+1)); done; echo \"say worked-$n (held $n)\"";

/// Notes that it ran. If it is killed and run again, the result is the same.
const CHECK: &str = "echo ran >> checks; test -e open-10";

#[test]
fn each_turn_of_a_loop_is_paid_once_whatever_is_killed() {
    let _alone = alone();
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    pays_once(&fixture, &[], 5);
    fixture.proves("a loop of ten turns, killed at random: each turn is paid once");
}

/// One process per turn, and one conversation: the next process starts by itself while its helpers are killed.
#[test]
fn each_turn_of_a_loop_in_one_conversation_is_paid_once_whatever_is_killed() {
    let Some(fixture) = Fixture::new(Agent::Codex) else { return };
    pays_once(&fixture, &["--same"], times(2, 5));
    fixture.proves("a loop of ten turns, killed at random: each turn is paid once");
}

/// Ten turns, with this many kills in each.
fn pays_once(fixture: &Fixture, more: &[&str], kills_per_turn: usize) {
    let harness = &fixture.harness;
    let work = fixture.work().display().to_string();
    let agent = fixture.agent.name();
    let words = ["loop", "--cwd", &work, agent, "--prompt-command", PROMPT, "--until", CHECK];
    let words = [&words[..], more].concat();
    // The command that follows the job continues it after all its processes were killed at once.
    let follower = harness.start(&words);
    let job = patience::until("the job is there", &[&harness.home()], || {
        Some(harness.ls().into_iter().find(|one| one.agent == "job")?.id)
    });
    let record = harness.session(&job).path().join("job.jsonl");
    let mut killer = Killer::new(0x7061_7921, 350);
    for turn in 1..=10 {
        patience::until(&format!("turn {turn} has begun"), &[&harness.session(&job).path()], || {
            let begun = std::fs::read_to_string(&record).unwrap_or_default().contains(&format!("\"turn {turn}.1"));
            assert!(
                begun || follower.runs(),
                "it has ended before turn {turn}: {}; {}",
                killer.counted(),
                std::fs::read_to_string(&record).unwrap()
            );
            begun.then_some(())
        });
        // Some of the kills come at the end of the turn, during its check, or at the beginning of the next turn.
        let after = if turn < 10 { killer.below(kills_per_turn as u64) as usize } else { 0 };
        killer.kill_up_to(harness, kills_per_turn * turn - after, || !follower.runs(), |_| true);
        std::fs::write(fixture.work().join(format!("open-{turn}")), "").unwrap();
        fixture.server.release(turn as u64);
        killer.kill_up_to(harness, kills_per_turn * turn, || !follower.runs(), |_| true);
    }
    assert_eq!(killer.killed().len(), 10 * kills_per_turn);
    let output = follower.finish().exits(0);
    let said: Vec<&str> = output.stdout.lines().collect();
    let kills = killer.counted();
    assert!(said.last().unwrap().starts_with("the check passes after 10 turns"), "{said:?}");
    let (paid, interrupted) = (by_word(&fixture.server), interrupted(&said));
    assert_eq!(paid.len(), 10, "{paid:?}; {kills}; {said:?}");
    for turn in 1..=10 {
        let more = interrupted.get(&format!("turn {turn}")).copied().unwrap_or(0);
        let paid = paid[&format!("worked-{turn}")];
        assert!(
            (1..=1 + more).contains(&paid.first) && paid.again == 0,
            "turn {turn} was paid {paid:?}, interrupted {more} times: {kills}; {said:?}"
        );
    }
    // A check whose process was killed is run again; no check is skipped.
    assert!(fixture.written("checks").lines().count() >= 10);
    assert_eq!(said.iter().filter(|line| line.contains(" of 20, check")).count(), 10, "{said:?}");
    harness.nothing_is_left();
    let asked: usize = paid.values().map(|paid| paid.first).sum();
    let seen = format!(
        "seed {:#x}: {kills}; {asked} times asked, {} interrupted",
        killer.seed(),
        interrupted.values().sum::<usize>()
    );
    held(
        &format!("SIGKILL in a loop of 10 turns, {}", [&[agent], more].concat().join(" ")),
        10 * kills_per_turn,
        &seen,
    );
}
