//! A driver is killed in the middle of a step, at every point of the step. Started again, it takes the step once.

use crate::{children, count, file, harness, start, steps};
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::command_line;
use ostler_testkit::{ProcessKind, patience};

/// The points that a driver passes when it reserves an id, launches a session and notes the result, and at which
/// passing it is killed there.
const POINTS: [(Role, Point, usize); 19] = [
    (Role::Client, Point::InboxLocked, 1),
    (Role::Client, Point::InboxWritten, 1),
    (Role::Client, Point::InboxSynced, 1),
    (Role::Client, Point::InboxLocked, 3),
    (Role::Client, Point::InboxWritten, 3),
    (Role::Client, Point::InboxSynced, 3),
    (Role::Client, Point::InboxWritten, 4),
    (Role::Client, Point::InboxSynced, 5),
    (Role::Client, Point::FolderMade, 1),
    (Role::Client, Point::SessionWritten, 1),
    (Role::Client, Point::PromptKept, 1),
    (Role::Client, Point::CopyMade, 1),
    (Role::Client, Point::FolderMade, 2),
    (Role::Beginner, Point::HolderNoted, 1),
    (Role::Beginner, Point::AgentNoted, 1),
    (Role::Beginner, Point::AgentShown, 1),
    (Role::Beginner, Point::AgentStarted, 1),
    (Role::Beginner, Point::KeeperStarted, 1),
    (Role::Beginner, Point::LauncherTold, 1),
];

#[test]
fn a_driver_that_is_killed_in_any_step_takes_it_once() {
    for (role, point, passings) in POINTS {
        let mut harness = harness();
        let pauses = harness.root().join("pauses");
        std::fs::create_dir(&pauses).unwrap();
        harness.set(pause_points::VARIABLE, &pauses);
        // The first check waits until the trap is set.
        let (log, gate) = (file(&harness, "checks"), file(&harness, "gate"));
        assert!(harness.command("mkfifo").arg(&gate).status().unwrap().success());
        let (log_name, gate_name) = (log.display(), gate.display());
        let check =
            format!("test -e {log_name} || cat {gate_name}; echo ran >> {log_name}; test $(wc -l < {log_name}) -ge 2");
        let job = start(&harness, &["demo", "say more", "--until", &check]);
        let session = harness.session(&job);
        // The launch of the check is over when the process that began it is its holder. That launch passes no point any
        // more.
        patience::until("the first check runs", &[&session.path()], || {
            let first = children(&harness, &job, "check 1").first().cloned()?;
            let holder = harness.session(&first).recorded_if_there(ProcessKind::Holder)?;
            command_line(holder.pid()).iter().any(|word| word == "__holder").then_some(())
        });
        let trap = pauses.join(format!("{}.kill", pause_points::token(role, point)));
        std::fs::write(&trap, "1".repeat(passings)).unwrap();
        std::fs::write(&gate, "go\n").unwrap();
        let waited = harness.run(&["wait", &job]);
        let said = std::fs::read_to_string(session.run_file("err")).unwrap_or_default();
        assert_eq!(waited.code, Some(0), "{role:?} at {point:?}, passing {passings}: {said}");
        assert!(!trap.exists(), "{point:?} was not passed");
        let what = format!("{role:?} at {point:?}, passing {passings}: {:#?}", steps(&harness, &job));
        let interrupted = steps(&harness, &job).iter().filter(|step| step["value"]["killed"] == true).count();
        assert_eq!(children(&harness, &job, "turn").len(), 2 + interrupted, "{what}");
        assert_eq!(count(&log), 2, "{what}");
        let agents = harness.ls().into_iter().filter(|one| one.agent == "demo").count();
        assert!(agents <= 2 + interrupted, "{what}");
        let hidden = std::fs::read_dir(harness.home().join("sessions")).unwrap().flatten();
        let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with(".new-"));
        assert_eq!(hidden.count(), 0, "{what}");
    }
}
