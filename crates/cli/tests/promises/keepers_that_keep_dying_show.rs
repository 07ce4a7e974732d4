//! Keepers that die again and again are started at a limited rate and shown by `ls`. The agent keeps running, and later
//! commands work.

use crate::harness;
use ostler_sys::process::Pidfd;
use ostler_testkit::{ProcessKind, patience};
use rustix::process::Signal;

#[test]
fn a_crash_loop_shows_and_ends_when_its_cause_is_gone() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let agent = session.living(ProcessKind::Agent);
    session.living(ProcessKind::Keeper);
    // No keeper can work with a journal that is a folder.
    let (journal, aside) = (session.path().join("journal.jsonl"), session.path().join("aside"));
    session.until("its keeper writes a journal", || journal.exists().then_some(()));
    std::fs::rename(&journal, &aside).unwrap();
    std::fs::create_dir(&journal).unwrap();
    session.kill(ProcessKind::Keeper);
    // After that many crashes the holder waits 2.5 s before it starts the next keeper.
    session.until("the holder has counted thirteen crashes", || {
        let record = std::fs::read_to_string(session.path().join("holder.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        record["crashes"].as_u64().filter(|&crashes| crashes >= 13)
    });
    assert_eq!(session.recorded(ProcessKind::Agent), Some(agent.clone()));
    assert!(agent.may_live());

    // Exchanged in one step: a keeper that starts in between would create a new journal.
    ostler_sys::rename::exchange(&aside, &journal).unwrap();
    std::fs::remove_dir(&aside).unwrap();
    let shown = harness.ls().remove(0);
    let alarm = shown.alarm.as_deref().unwrap_or_default();
    assert!(alarm.starts_with("the keeper died ") && alarm.contains(" times in a row"), "{shown:?}");
    session.until_look("a keeper lives, and there is no alarm", |view| view.kept && view.alarm.is_none());
    session.stop();
    assert_eq!(session.show().outcome().kind, "stopped");
}

#[test]
fn a_keeper_that_was_killed_a_few_times_raises_no_alarm() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    for _ in 0..4 {
        let before = session.kill(ProcessKind::Keeper);
        session.replaced(ProcessKind::Keeper, &before);
    }
    assert_eq!(session.show().alarm, None);
}

#[test]
fn a_session_whose_keepers_all_crash_can_be_stopped_and_leaves_no_holder() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let (agent, holder) = (session.living(ProcessKind::Agent), session.living(ProcessKind::Holder));
    let journal = session.path().join("journal.jsonl");
    session.until("its keeper writes a journal", || journal.exists().then_some(()));
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    session.kill(ProcessKind::Keeper);
    session.until("keepers die", || {
        std::fs::read_to_string(session.path().join("holder.json")).ok()?.contains("\"crashes\"").then_some(())
    });
    Pidfd::open(&holder).unwrap().unwrap().signal(Signal::TERM).unwrap();
    patience::ended(&agent);
    patience::ended(&holder);
}
