//! A driver that is killed is started again and takes no step twice.

use crate::{children, count, file, gated, harness, lines, open, passes_at, start};
use ostler_testkit::{Killer, ProcessKind, patience};

#[test]
fn a_killed_driver_continues_where_its_record_says() {
    let harness = harness();
    let log = file(&harness, "checks");
    let job = start(&harness, &["demo", &gated(&harness), "--until", &passes_at(&log, 3)]);
    let session = harness.session(&job);
    for turn in 1..=3 {
        patience::until("a turn has begun", &[&session.path()], || {
            (children(&harness, &job, "turn").len() >= turn).then_some(())
        });
        let before = session.kill(ProcessKind::Agent);
        session.replaced(ProcessKind::Agent, &before);
        // Not earlier: the next driver must take a step before it is killed.
        open(&harness, turn);
    }
    harness.run(&["wait", &job]).exits(0);
    assert_eq!((children(&harness, &job, "turn").len(), count(&log)), (3, 3));
    assert_eq!(lines(&harness, &job).len(), 4);
    assert_eq!(session.look().run, 4);
    // Each driver has taken a step before it was killed, so there is no reason for a pause.
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    let exits: Vec<&str> = journal.lines().filter(|line| line.contains(r#""what":"exited""#)).collect();
    assert!(exits.len() == 4 && exits.iter().all(|line| line.contains(r#""progress":true"#)), "{exits:#?}");
}

/// How many processes are killed in each turn.
const KILLS: usize = 5;

#[test]
fn random_kills_do_not_change_what_is_done() {
    let harness = harness();
    let log = file(&harness, "checks");
    // Each turn lasts until there is a file with its number. What a loop adds to its prompt is not run.
    let gate = file(&harness, "gate-").display().to_string();
    let prompt = format!(
        "n=1; while test -e {gate}$n; do n=$((n+1)); done\n\
         echo \"run-command until test -e {gate}$n; do sleep 0.05; done; exit 0\""
    );
    // The check has the same result when it is killed at any moment and run again.
    let check = format!("echo ran >> {}; test -e {gate}10", log.display());
    // The command that follows the job continues it when its driver, holder and keeper were killed together.
    let follower = harness.start(&["loop", "demo", "--prompt-command", &prompt, "--until", &check]);
    let mut killer = Killer::new(0x6a6f_6273, 120);
    let job = patience::until("the job is there", &[&harness.home().join("sessions")], || {
        Some(harness.ls().into_iter().find(|one| one.agent == "job")?.id)
    });
    for turn in 1..=10 {
        patience::until("the turn has begun", &[&harness.session(&job).path()], || {
            (!children(&harness, &job, &format!("turn {turn}.")).is_empty()).then_some(())
        });
        // Some kills are left for the end of the turn, its check, and what follows.
        let after = if turn < 10 { killer.below(KILLS as u64) as usize } else { 0 };
        killer.kill_up_to(&harness, KILLS * turn - after, || !follower.runs(), |_| true);
        std::fs::write(format!("{gate}{turn}"), "").unwrap();
        killer.kill_up_to(&harness, KILLS * turn, || !follower.runs(), |_| true);
    }
    let output = follower.finish().exits(0);
    let kills = killer.counted();
    assert_eq!(killer.killed().len(), 50);
    let said = lines(&harness, &job);
    assert_eq!(output.stdout.lines().collect::<Vec<_>>(), said);
    let interrupted = said.iter().filter(|line| line.ends_with("was interrupted and is not counted")).count();
    let turns: Vec<String> = children(&harness, &job, "turn");
    assert_eq!(turns.len(), 10 + interrupted, "after {kills}: {said:?}");
    assert_eq!(said.iter().filter(|line| line.starts_with("turn") && line.contains("check")).count(), 10, "{said:?}");
    assert!(said.last().unwrap().starts_with("the check passes after 10 turns"), "{said:?}");
    // A check whose process was killed is run again; none is left out.
    assert!(count(&log) >= 10, "{}", count(&log));
    for turn in turns {
        let inbox = std::fs::read_to_string(harness.session(&turn).path().join("inbox.jsonl")).unwrap();
        assert_eq!(inbox.lines().count(), 1, "{inbox}");
    }
    harness.nothing_is_left();
}
