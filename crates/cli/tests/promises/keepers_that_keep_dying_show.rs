//! A keeper that dies again and again is limited, shows in `ls`, and harms neither the agent nor the next who asks.

use crate::harness;
use ostler_sys::process::Pidfd;
use ostler_testkit::{Who, patience};
use rustix::process::Signal;

#[test]
fn a_crash_loop_shows_and_ends_when_its_cause_is_gone() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let agent = session.living(Who::Agent);
    session.living(Who::Keeper);
    // Nobody can keep a session whose journal is a folder.
    let (journal, aside) = (session.path().join("journal.jsonl"), session.path().join("aside"));
    session.until("its keeper writes a journal", || journal.exists().then_some(()));
    std::fs::rename(&journal, &aside).unwrap();
    std::fs::create_dir(&journal).unwrap();
    session.kill(Who::Keeper);
    session.until("the holder counts its keepers", || {
        let record = std::fs::read_to_string(session.path().join("holder.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        record["crashes"].as_u64().filter(|&crashes| crashes >= 6)
    });
    assert_eq!(session.recorded(Who::Agent), Some(agent.clone()));
    assert!(agent.may_live());

    // At once: a keeper that starts in between would begin another one.
    ostler_sys::rename::exchange(&aside, &journal).unwrap();
    std::fs::remove_dir(&aside).unwrap();
    let alarm = session.look();
    assert!(alarm.kept || alarm.alarm.is_some_and(|alarm| alarm.contains("keeper died")));
    session.stop();
    assert_eq!(session.show().outcome().kind, "stopped");
}

#[test]
fn a_keeper_that_was_killed_a_few_times_is_no_alarm() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    for _ in 0..4 {
        let before = session.kill(Who::Keeper);
        session.replaced(Who::Keeper, &before);
    }
    assert_eq!(session.show().alarm, None);
}

#[test]
fn a_session_that_nobody_can_keep_can_be_stopped_and_leaves_no_holder() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let (agent, holder) = (session.living(Who::Agent), session.living(Who::Holder));
    let journal = session.path().join("journal.jsonl");
    session.until("its keeper writes a journal", || journal.exists().then_some(()));
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    session.kill(Who::Keeper);
    session.until("keepers die", || {
        std::fs::read_to_string(session.path().join("holder.json")).ok()?.contains("\"crashes\"").then_some(())
    });
    Pidfd::open(&holder).unwrap().unwrap().signal(Signal::TERM).unwrap();
    patience::ended(&agent);
    patience::ended(&holder);
}
