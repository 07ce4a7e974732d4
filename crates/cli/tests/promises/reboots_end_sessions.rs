//! After a reboot no process of a record can be alive, even when another process has its pid and start time.

use crate::harness;
use ostler_testkit::{ProcessKind, Started};

#[test]
fn sessions_of_another_boot_are_ended_and_lost_and_nothing_is_signalled() {
    let harness = harness();
    let mut command = harness.command("sleep");
    command.arg("600");
    let foreign = Started::new(command, None);
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    session.kill(ProcessKind::Agent);
    // Everything but the boot id matches a living process.
    let another = serde_json::json!({
        "pid": foreign.process().pid(),
        "start": foreign.process().start(),
        "boot": "00000000-0000-4000-8000-000000000000",
    });
    for (file, field) in [("runs/1/run.json", true), ("holder.json", false), ("keeper.json", false)] {
        let path = session.path().join(file);
        let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        if field {
            record["agent"] = another.clone();
        } else {
            for name in ["pid", "start", "boot"] {
                record[name] = another[name].clone();
            }
        }
        std::fs::write(&path, record.to_string()).unwrap();
    }
    let listed = harness.ls();
    assert_eq!((listed[0].state.as_str(), listed[0].alive, listed[0].kept), ("ended", false, false));
    assert_eq!(listed[0].outcome().kind, "lost");
    assert!(!session.run_file("outcome.json").exists(), "`ls` writes no outcome");
    harness.run(&["wait", session.id(), "--poll", "20s"]).exits(124);
    harness.run(&["stop", session.id()]).exits(0);
    harness.run(&["wait", session.id()]).exits(5);
    assert!(session.run_file("outcome.json").exists());
    assert!(foreign.runs(), "the foreign process was signalled");
}
