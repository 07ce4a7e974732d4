//! Twelve jobs of a file in a diamond, each with a real agent, while processes of all kinds are SIGKILLed at random.
//! According to the model's record each job was asked once, or it was reported as interrupted.

use crate::fixture::Fixture;
use crate::paid::{Paid, by_word, interrupted, said_once};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Killer, ProcessKind, Started, held, times};

/// One job, then ten, then one.
fn diamond() -> (String, Vec<String>) {
    let middle: Vec<String> = (1..=10).map(|n| format!("middle-{n}")).collect();
    let mut text = "[defaults]\nagent = \"claude\"\n[job.top]\nprompt = \"say top (held 1)\"\n".to_owned();
    for name in &middle {
        text.push_str(&format!("[job.{name}]\nneeds = [\"top\"]\nprompt = \"say {name} (held 2)\"\n"));
    }
    text.push_str(&format!("[job.bottom]\nneeds = {middle:?}\nprompt = \"say bottom (held 3)\"\n"));
    (text, [&["top".to_owned()][..], &middle, &["bottom".to_owned()]].concat())
}

#[test]
fn each_job_of_a_file_is_paid_once_whatever_is_killed() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let harness = &fixture.harness;
    let (file, jobs) = diamond();
    std::fs::write(fixture.work().join("ostler.toml"), file).unwrap();
    let mut command = harness.command(harness.program());
    command.current_dir(fixture.work()).arg("up");
    let follower = Started::new(command, None);
    let count = times(15, 50);
    let mut killer = Killer::new(0x6469_616d, 350);
    // Kills while the first job works, then the ten, then the last.
    for (layer, share) in [(1, count / 5), (2, count * 4 / 5), (3, count)] {
        let held = format!("(held {layer})");
        let begun = |requests: &[ostler_mock_llm::Request]| {
            let of_layer =
                |turn: &ostler_mock_llm::Turn| turn.user_messages.last().is_some_and(|said| said.contains(&held));
            requests.iter().filter_map(ostler_mock_llm::Request::turn).any(of_layer)
        };
        if layer > 1 {
            fixture.server.wait_for(begun).unwrap();
        }
        killer.kill_up_to(harness, share, || !follower.runs(), |_| true);
        fixture.server.release(layer);
    }
    assert_eq!(killer.killed().len(), count);
    let output = follower.finish().exits(0);
    let said: Vec<&str> = output.stdout.lines().collect();
    let kills = killer.counted();
    assert_eq!(said.last(), Some(&"12 jobs succeeded"), "{said:?}");
    said_once(&said);
    let (paid, interrupted) = (by_word(&fixture.server), interrupted(&said));
    for job in &jobs {
        let more = interrupted.get(job).copied().unwrap_or(0);
        let paid = paid.get(job).copied().unwrap_or_default();
        assert!(
            (1..=1 + more).contains(&(paid.first + paid.again)),
            "{job} was paid {paid:?}, interrupted {more} times: {kills}; {said:?}"
        );
    }
    assert_eq!(paid.len(), 12, "{paid:?}");
    harness.nothing_is_left();
    let asked: usize = paid.values().map(|paid| paid.first + paid.again).sum();
    let seen = format!(
        "seed {:#x}: {kills}; {asked} times asked, {} interrupted",
        killer.seed(),
        interrupted.values().sum::<usize>()
    );
    held("SIGKILL in `up` with 12 jobs in a diamond", count, &seen);
    fixture.proves("up with 12 jobs, killed at random: each job is paid once");
}

/// Claude asks the model before it has stored the prompt. When it is killed in between, the prompt waits again, so the
/// job must not continue with a message that repeats the task. On a busy machine claude has stored it by then.
#[test]
fn a_job_that_is_killed_before_its_prompt_is_stored_gets_its_task_once() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let harness = &fixture.harness;
    std::fs::write(
        fixture.work().join("ostler.toml"),
        "[defaults]\nagent = \"claude\"\n[job.only]\nprompt = \"say only (held 1)\"\n",
    )
    .unwrap();
    let mut command = harness.command(harness.program());
    command.current_dir(fixture.work()).arg("up");
    let follower = Started::new(command, None);
    fixture.asked_for(1);
    let only = harness.run(&["show", "--json", "only"]).exits(0).json();
    harness.session(only["id"].as_str().unwrap()).kill(ProcessKind::Agent);
    fixture.server.release(1);
    let output = follower.finish().exits(0);
    let said: Vec<&str> = output.stdout.lines().collect();
    assert!(said.contains(&"only: was interrupted and is continued"), "{said:?}");
    let paid = by_word(&fixture.server)["only"];
    assert!([Paid { first: 2, again: 0 }, Paid { first: 1, again: 1 }].contains(&paid), "{paid:?}: {said:?}");
    harness.nothing_is_left();
}
