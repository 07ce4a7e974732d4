//! Many live sessions of one user with many waiters: no limit of the system is hit.

use crate::harness;
use ostler_testkit::{Started, alone};

/// The promise is 300 sessions and 100 waiters; `OSTLER_TEST_SESSIONS=300` runs it in full.
fn count() -> usize {
    std::env::var("OSTLER_TEST_SESSIONS").ok().map_or(60, |count| count.parse().unwrap())
}

#[test]
fn many_live_sessions_and_waiters_all_work_and_all_end() {
    let _alone = alone();
    let harness = harness();
    let started: Vec<_> = (0..count())
        .map(|number| match number % 3 {
            0 => harness.start(&["run", "-d", "--keep", "demo"]),
            1 => harness.start(&["run", "-d", "-t", "--", "sleep", "600"]),
            _ => harness.start(&["run", "-d", "--", "sleep", "600"]),
        })
        .collect();
    let ids: Vec<String> = started.into_iter().map(|one| one.finish().exits(0).stdout.trim_end().to_owned()).collect();
    let listed = harness.ls();
    assert_eq!(listed.len(), count());
    for shown in &listed {
        assert!(shown.alive && ["running", "idle"].contains(&shown.state.as_str()), "{shown:?}");
    }
    let words: Vec<&str> = ids.iter().map(String::as_str).collect();
    let waiters: Vec<_> = (0..count() / 3)
        .map(|number| match number % 2 {
            0 => harness.start(&["wait", words[number]]),
            _ => harness.start(&[&["wait"], &words[..]].concat()),
        })
        .collect();
    harness.run(&[&["stop", "--kill"], &words[..]].concat()).exits(0);
    for waiter in waiters {
        let code = waiter.finish().code;
        assert!(code == Some(6), "{code:?}");
    }
    assert!(harness.ls().iter().all(|shown| shown.ended));
    harness.nothing_is_left();
}

#[test]
fn wait_works_for_more_sessions_than_files_may_be_open() {
    let harness = harness();
    let started: Vec<_> = (0..80).map(|_| harness.start(&["run", "-d", "--", "true"])).collect();
    let words: Vec<String> =
        started.into_iter().map(|one| one.finish().exits(0).stdout.trim_end().to_owned()).collect();
    let mut command = harness.command("sh");
    command.args(["-c", "ulimit -Sn 64; exec \"$@\"", "sh"]).arg(harness.program()).arg("wait").args(&words);
    let waited = Started::new(command, None).finish().exits(0);
    assert_eq!(waited.stdout.lines().count(), words.len());
}
