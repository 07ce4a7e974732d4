//! The order of a queue, and how many run at once.

use crate::{block, harness, log, queue_word, release, said, wait_for, with_queue};
use ostler_core::view::Phase;
use ostler_sys::process::Identity;
use ostler_testkit::{ProcessKind, Session, patience};
use std::time::Duration;

/// How often the process has gone to sleep since its start.
fn sleeps(process: &Identity) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn with_one_slot_everything_runs_in_the_order_of_priority_and_arrival() {
    let harness = with_queue(1);
    let blocker = block(&harness);
    let priorities = [0, 0, 5, -3, 0, 5, 7, -3, 0, 5, 0, 2];
    let mut sessions = Vec::new();
    let mut wanted: Vec<(i32, usize)> = Vec::new();
    for (number, priority) in priorities.into_iter().enumerate() {
        let options = ["--priority", &priority.to_string()];
        sessions.push(queue_word(&harness, &options, &number.to_string()));
        wanted.push((-priority, number));
    }
    wanted.sort_unstable();
    let wanted: Vec<String> = wanted.into_iter().map(|(_, number)| number.to_string()).collect();
    // `ls` shows the same order beforehand.
    let shown = harness.run(&["ls", "--json"]).exits(0).json();
    let place = |session: &Session<'_>| {
        let one = shown.as_array().unwrap().iter().find(|one| one["id"] == session.id()).unwrap();
        assert_eq!((one["state"].as_str(), one["waits"]["queue"]["name"].as_str()), (Some("queued"), Some("q")));
        one["waits"]["place"].as_u64().unwrap()
    };
    let mut places: Vec<(u64, String)> =
        sessions.iter().enumerate().map(|(number, session)| (place(session), number.to_string())).collect();
    places.sort_unstable();
    assert_eq!(places.iter().map(|(_, number)| number.clone()).collect::<Vec<_>>(), wanted);
    assert_eq!(places.iter().map(|(place, _)| *place).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    assert!(said(&harness).is_empty());
    let text = harness.run(&["ls"]).exits(0).stdout;
    assert!(text.contains("number 12 in queue q"), "{text}");
    let _gate = release(&harness);
    sessions.push(blocker);
    wait_for(&harness, &sessions);
    assert_eq!(said(&harness), wanted);
    assert!(sessions.iter().all(|session| session.show().outcome().kind == "succeeded"));
}

#[test]
fn never_more_run_at_once_than_there_are_slots_and_no_process_wakes_while_all_are_taken() {
    const SLOTS: usize = 3;
    const SESSIONS: usize = 60;
    let harness = with_queue(u32::try_from(SLOTS).unwrap());
    let blockers: Vec<Session<'_>> = (0..SLOTS).map(|_| block(&harness)).collect();
    // Each program takes one of as many locks as there are slots, and holds it until it has exited. A program that
    // finds no free lock proves that too many run at once.
    let script = "for n in 1 2 3; do exec 9> \"$1.$n\"; if flock -n 9; then echo \"$2\" >> \"$1\"; exit 0; fi; done; \
                  echo \"too many: $2\" >> \"$1\"; exit 1";
    let file = log(&harness);
    let queued: Vec<Session<'_>> = (0..SESSIONS)
        .map(|number| {
            let number = number.to_string();
            let command = ["--", "sh", "-c", script, "sh", file.to_str().unwrap(), &number];
            harness.detach(&[&["--queue", "q"], &command[..]].concat())
        })
        .collect();
    let waiting: Vec<Identity> = queued
        .iter()
        .flat_map(|session| {
            [ProcessKind::Agent, ProcessKind::Holder, ProcessKind::Keeper].map(|who| session.living(who))
        })
        .collect();
    let all = || waiting.iter().map(sleeps).collect::<Vec<u64>>();
    let mut before = all();
    patience::until("all processes are idle", &[], || {
        assert!(!patience::ends_within(&waiting[0], Duration::from_secs(2)));
        let last = std::mem::replace(&mut before, all());
        (last == before).then_some(())
    });
    assert!(!patience::ends_within(&waiting[0], Duration::from_secs(10)));
    assert_eq!(all(), before, "a process woke up");
    assert!(queued.iter().all(|session| session.look().state == Phase::Queued));
    let _gate = release(&harness);
    let everything: Vec<Session<'_>> = queued.into_iter().chain(blockers).collect();
    wait_for(&harness, &everything);
    let said = said(&harness);
    assert_eq!(said.len(), SESSIONS, "{said:?}");
    for (place, word) in said.iter().enumerate() {
        let number: Result<usize, _> = word.parse();
        assert!(number.is_ok(), "{word}");
        let number = number.unwrap();
        // A program with a slot may be slow to write its word, while other slots are used. But it can only be overtaken
        // by programs that had a slot at the same time.
        assert!(number < place + SLOTS, "{number} came {place}th: {said:?}");
    }
    assert!(everything.iter().all(|session| session.show().outcome().kind == "succeeded"));
}

#[test]
fn queued_sessions_wait_while_the_machine_is_too_busy_and_then_start_in_order() {
    let harness = harness();
    let configured = |most: &str| harness.configure(&format!("[queues.q]\nslots = 1\n{most}\n"));
    configured("min_free_memory = '4000000GiB'");
    let first = queue_word(&harness, &[], "first");
    let second = queue_word(&harness, &[], "second");
    assert_eq!((first.show().state.as_str(), second.show().state.as_str()), ("queued", "queued"));
    configured("max_load = 1000000.0");
    let third = queue_word(&harness, &[], "third");
    wait_for(&harness, &[first, second, third]);
    assert_eq!(said(&harness), ["first", "second", "third"]);
}

#[test]
fn the_default_queue_needs_no_configuration_and_an_unknown_queue_is_refused() {
    let harness = harness();
    let session = harness.detach(&["--queue", "--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    for (arguments, words) in [
        (["run", "-d", "--queue=nosuch", "--", "true"].as_slice(), "there is no queue \"nosuch\"; add [queues.nosuch]"),
        (&["run", "-d", "--queue", "--", "no-such-program"], "no-such-program: program not found"),
        (&["run", "-d", "--queue", "--", "./no-such-program"], "program not found"),
        (&["run", "-d", "--priority", "3", "--", "true"], "--queue"),
        (&["run", "-d", "--at", "teatime", "--", "true"], "\"teatime\" is not a time"),
        (&["run", "-d", "--after", "unknown", "--", "true"], "no session \"unknown\""),
        (&["run", "-d", "--after", "unknown=fine", "--", "true"], "\"fine\" is not an outcome"),
    ] {
        let output = harness.run(arguments);
        assert!(output.stderr.contains(words) && output.stderr.lines().count() == 1, "{arguments:?}: {output:?}");
        assert_ne!(output.code, Some(0), "{arguments:?}");
    }
    assert_eq!(harness.ls().len(), 1, "nothing is left of what was refused");
}
