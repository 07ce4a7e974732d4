//! Whichever process is killed, each queued program runs once.

use crate::{block, harness, log, queue_word, release, said, wait_for, with_queue};
use ostler_core::view::Phase;
use ostler_sys::pause_points::{Point, Role, VARIABLE, token};
use ostler_testkit::{ProcessKind, Session, patience};

/// Pseudo-random numbers, the same in each test run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[test]
fn helpers_of_waiting_and_running_sessions_are_killed_at_random_and_each_program_runs_once() {
    const SESSIONS: usize = 24;
    let harness = with_queue(2);
    let blockers = [block(&harness), block(&harness)];
    let sessions: Vec<Session<'_>> =
        (0..SESSIONS).map(|number| queue_word(&harness, &[], &number.to_string())).collect();
    let mut dice = Dice(7);
    let mut kill = |session: &Session<'_>| {
        let killed: &[ProcessKind] = match dice.roll(5) {
            0 | 1 => &[ProcessKind::Keeper],
            2 | 3 => &[ProcessKind::Holder],
            _ => &[ProcessKind::Holder, ProcessKind::Keeper],
        };
        for who in killed {
            session.kill_if_alive(*who);
        }
    };
    let mut order = Dice(11);
    for _ in 0..SESSIONS {
        kill(&sessions[order.roll(SESSIONS)]);
    }
    blockers.iter().for_each(&mut kill);
    let _gate = release(&harness);
    let mut rounds = 0;
    patience::until("all have run", &[], || {
        rounds += 1;
        if rounds < 60 {
            let session = &sessions[order.roll(SESSIONS)];
            if !session.look().ended {
                kill(session);
            }
        }
        (said(&harness).len() >= SESSIONS).then_some(())
    });
    wait_for(&harness, &sessions);
    wait_for(&harness, &blockers);
    let mut said: Vec<usize> = said(&harness).iter().map(|word| word.parse().unwrap()).collect();
    said.sort_unstable();
    assert_eq!(said, (0..SESSIONS).collect::<Vec<_>>());
}

#[test]
fn a_queued_session_that_loses_both_helpers_gets_new_ones_and_is_withdrawn_or_runs_once() {
    let harness = with_queue(1);
    let _blocker = block(&harness);
    let [spoken_to, withdrawn, forgotten] = [
        harness.detach(&["--queue", "q", "demo", "say first"]),
        queue_word(&harness, &[], "withdrawn"),
        queue_word(&harness, &[], "forgotten"),
    ];
    for session in [&spoken_to, &withdrawn, &forgotten] {
        let before = [ProcessKind::Holder, ProcessKind::Keeper].map(|who| session.living(who));
        session.orphan();
        session.replaced(ProcessKind::Holder, &before[0]);
        session.replaced(ProcessKind::Keeper, &before[1]);
        assert_eq!(session.look().state, Phase::Queued);
    }
    harness.run(&["send", spoken_to.id(), "say second"]).exits(0);
    harness.run(&["stop", withdrawn.id()]).exits(0);
    assert_eq!(withdrawn.show().outcome().kind, "stopped");
    let _gate = release(&harness);
    wait_for(&harness, &[spoken_to, forgotten]);
    assert_eq!(said(&harness), ["forgotten"]);
    assert_eq!(spoken_to.show().turns, 2);
}

#[test]
fn a_keeper_killed_while_it_withdraws_or_notes_the_start_is_replaced_by_one_that_continues() {
    for point in [Point::ProgramWithdrawn, Point::BeginNoted] {
        let mut harness = harness();
        harness.configure("[queues.q]\nslots = 1\n");
        let pauses = harness.root().join("pauses");
        std::fs::create_dir(&pauses).unwrap();
        harness.set(VARIABLE, pauses.clone());
        let blocker = block(&harness);
        let file = pauses.join(format!("{}.kill", token(Role::Keeper, point)));
        std::fs::write(&file, "1").unwrap();
        let session = queue_word(&harness, &[], "ran");
        if point == Point::ProgramWithdrawn {
            harness.run(&["stop", session.id()]).exits(0);
            assert_eq!(session.show().outcome().kind, "stopped");
        }
        let _gate = release(&harness);
        wait_for(&harness, &[session, blocker]);
        assert!(!file.exists(), "{} was not passed", point.name());
        let wanted: &[&str] = if point == Point::ProgramWithdrawn { &[] } else { &["ran"] };
        assert_eq!(said(&harness), wanted);
    }
}

#[test]
fn a_slot_is_not_lost_with_the_keeper_that_has_just_received_it() {
    let mut harness = harness();
    harness.configure("[queues.q]\nslots = 1\n");
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(VARIABLE, pauses.clone());
    let blocker = block(&harness);
    let file = pauses.join(format!("{}.kill", token(Role::Keeper, Point::SlotReceived)));
    std::fs::write(&file, "1").unwrap();
    // The slot is descriptor 29. The process of the second run gets it from the holder.
    let log = log(&harness);
    let script =
        "test -e /proc/$$/fd/29 && echo slot >> \"$1\"; echo again >> \"$1\"; test $(grep -c again \"$1\") -ge 2";
    let command = ["--restart", "on-failure:1", "--", "sh", "-c", script, "sh", log.to_str().unwrap()];
    let again = harness.detach(&[&["--queue", "q"], &command[..]].concat());
    let other = queue_word(&harness, &[], "other");
    let _gate = release(&harness);
    wait_for(&harness, &[again, other, blocker]);
    assert!(!file.exists(), "no keeper was killed");
    assert_eq!(said(&harness), ["slot", "again", "slot", "again", "other"]);
}

#[test]
fn a_waiting_process_that_is_killed_has_run_nothing_and_later_ones_move_up() {
    let harness = with_queue(1);
    let blocker = block(&harness);
    let sessions: Vec<Session<'_>> = ["a", "b", "c"].iter().map(|word| queue_word(&harness, &[], word)).collect();
    sessions[0].kill(ProcessKind::Agent);
    harness.run(&["wait", sessions[0].id()]).exits(1);
    let shown = sessions[0].show();
    let outcome = shown.outcome();
    assert_eq!(outcome.kind, "failed", "{outcome:?}");
    assert!(outcome.cause.contains("killed by SIGKILL; it was queued, and nothing ran"), "{outcome:?}");
    let _gate = release(&harness);
    wait_for(&harness, &[sessions[1], sessions[2], blocker]);
    assert_eq!(said(&harness), ["b", "c"]);
}
