//! Five copies of a real conversation and the message with their results, while processes of all kinds are SIGKILLed at
//! random. According to the model's record each prompt was asked once, or its copy was reported as interrupted; and the
//! results were sent once.

use crate::fixture::Fixture;
use crate::paid::{by_word, interrupted, said_once};
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Killer, held, times};

const WORDS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// The beginning of the message with the results.
const RESULTS: &str = "5 copies of this conversation worked on a prompt each.";

#[test]
fn each_copy_of_a_fan_is_paid_once_whatever_is_killed() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let harness = &fixture.harness;
    let work = fixture.work().display().to_string();
    harness.run(&["run", "--cwd", &work, "--name", "origin", "claude", "say the beginning"]).exits(0);
    fixture.server.hold(RESULTS, 2);
    let prompts = WORDS.map(|word| format!("say {word} (held 1)"));
    let mut words = vec!["fan", "origin"];
    words.extend(prompts.iter().map(String::as_str));
    let follower = harness.start(&words);
    let count = times(15, 50);
    let mut killer = Killer::new(0x6661_6e21, 350);
    let results = |requests: &[Request]| {
        let of_results = |said: &String| said.starts_with(RESULTS);
        let turns = requests.iter().filter_map(Request::turn);
        turns.filter(|turn| turn.answers == 0 && turn.user_messages.last().is_some_and(of_results)).count()
    };
    killer.kill_up_to(harness, count * 4 / 5, || !follower.runs(), |_| true);
    fixture.server.release(1);
    // The message with the results is a turn of the original conversation. From here on no process of that session is
    // killed.
    let origin = harness.ls().into_iter().find(|one| one.name.as_deref() == Some("origin")).unwrap().id;
    let spares_origin = |one: &ostler_testkit::Killed| one.id != origin;
    fixture.server.wait_for(|requests| results(requests) > 0).unwrap();
    killer.kill_up_to(harness, count, || !follower.runs(), spares_origin);
    fixture.server.release(2);
    assert_eq!(killer.killed().len(), count);
    let output = follower.finish().exits(0);
    let said: Vec<&str> = output.stdout.lines().collect();
    let kills = killer.counted();
    assert_eq!(said.last(), Some(&format!("5 of 5 copies succeeded, {origin} has replied").as_str()), "{said:?}");
    said_once(&said);
    let (paid, interrupted) = (by_word(&fixture.server), interrupted(&said));
    for (number, word) in (1..).zip(WORDS) {
        let more = interrupted.get(&format!("copy {number}")).copied().unwrap_or(0);
        let paid = paid.get(word).copied().unwrap_or_default();
        assert!(
            (1..=1 + more).contains(&(paid.first + paid.again)),
            "copy {number} was paid {paid:?}, interrupted {more} times: {kills}; {said:?}"
        );
    }
    assert_eq!(results(&fixture.server.requests()), 1, "the results were told once: {kills}");
    harness.nothing_is_left();
    let asked: usize = WORDS.iter().filter_map(|word| paid.get(*word)).map(|paid| paid.first + paid.again).sum();
    let seen = format!(
        "seed {:#x}: {kills}; {asked} times asked, {} interrupted, the results told once",
        killer.seed(),
        interrupted.values().sum::<usize>()
    );
    held("SIGKILL in `fan` with 5 copies", count, &seen);
    fixture.proves("fan with 5 copies, killed at random: each copy is paid once");
}
