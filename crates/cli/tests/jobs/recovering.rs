//! After a reboot, what was meant to continue is continued, and nothing else.

use crate::{children, file, harness, lines, passes_at, start};
use ostler_testkit::{Harness, ProcessKind, Session, patience};
use serde_json::Value;

/// Ends a session as a power cut does, and makes its records those of another boot.
fn cut_power(session: &Session<'_>) {
    session.kill_together(&[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]);
    change_boot(session);
}

/// Makes the records of a session whose processes are gone those of another boot.
fn change_boot(session: &Session<'_>) {
    let run = session.run_file("run.json");
    for path in [run, session.path().join("holder.json"), session.path().join("keeper.json")] {
        let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let holder = if record.get("agent").is_some() { &mut record["agent"] } else { &mut record };
        holder["boot"] = "00000000-0000-4000-8000-000000000000".into();
        std::fs::write(&path, record.to_string()).unwrap();
    }
}

/// Makes the journal that of a machine that had been up for ten hours more.
fn lengthen_uptime(session: &Session<'_>) {
    let path = session.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let shifted = text.lines().map(|line| {
        let mut entry: Value = serde_json::from_str(line).unwrap();
        entry["ms"] = (entry["ms"].as_u64().unwrap() + 36_000_000).into();
        format!("{entry}\n")
    });
    std::fs::write(&path, shifted.collect::<String>()).unwrap();
}

/// The child that runs a turn of a loop.
fn running_turn(harness: &Harness, job: &str) -> String {
    let folder = harness.home().join("sessions");
    patience::until("a turn runs", &[&folder, &folder.join(job)], || {
        let child = children(harness, job, "turn").pop()?;
        let session = harness.session(&child);
        (session.path().exists() && session.look().status == "working").then_some(child)
    })
}

#[test]
fn a_loop_is_continued_where_its_record_says() {
    let mut harness = harness();
    let log = file(&harness, "checks");
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(&harness, &["demo", "say more", "--until", &passes_at(&log, 2)]);
    let child = running_turn(&harness, &job);
    cut_power(&harness.session(&job));
    cut_power(&harness.session(&child));
    harness.set("OSTLER_DEMO_PACE", "0");
    let said = harness.run(&["recover", "--dry-run"]).exits(0);
    assert!(said.stdout.contains(&format!("{job}: would be continued (a job)")), "{said:?}");
    assert!(!said.stdout.contains(&child), "{said:?}");
    harness.run(&["recover"]).exits(0);
    harness.run(&["wait", &job]).exits(0);
    let said = lines(&harness, &job);
    assert_eq!(said[0], "turn 1 was interrupted and is not counted");
    assert!(said.last().unwrap().starts_with("the check passes after 2 turns"), "{said:?}");
    assert_eq!(children(&harness, &job, "turn").len(), 3);
    assert!(harness.run(&["recover"]).exits(0).stdout.is_empty(), "it has ended by itself");
}

#[test]
fn sessions_without_a_rule_and_what_a_person_has_stopped_stay_ended() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "100000");
    let plain = harness.detach(&["--", "sleep", "600"]);
    let restarts = harness.detach(&["--restart", "on-failure", "--", "sleep", "600"]);
    let stopped = harness.detach(&["--restart", "on-failure", "--", "sleep", "600"]);
    stopped.stop();
    let job = start(&harness, &["demo", "say more"]);
    running_turn(&harness, &job);
    harness.run(&["stop", &job]).exits(0);
    cut_power(&plain);
    cut_power(&restarts);
    let said = harness.run(&["recover"]).exits(0);
    assert_eq!(said.stdout, format!("{}: continued (started with --restart)\n", restarts.id()));
    let view = restarts.look();
    assert_eq!((view.run, view.alive), (2, true));
    assert!(plain.look().ended && stopped.look().ended && harness.session(&job).look().ended);
    assert!(harness.run(&["recover"]).exits(0).stdout.is_empty());
}

#[test]
fn a_session_that_lost_its_helpers_in_a_restart_pause_continues_also_after_a_reboot() {
    for rebooted in [false, true] {
        let harness = harness();
        let marker = file(&harness, "marker");
        let script = format!("test -e {} && exec sleep 600; exit 1", marker.display());
        let session = harness.detach(&["--restart", "on-failure:9", "--", "sh", "-c", &script]);
        // The third pause is a long one.
        session.until_look("it pauses", |view| view.run == 3 && view.status == "waiting");
        session.orphan();
        std::fs::write(&marker, "").unwrap();
        if rebooted {
            change_boot(&session);
            lengthen_uptime(&session);
        }
        let said = harness.run(&["recover", "--dry-run"]).exits(0).stdout;
        assert_eq!(said, format!("{}: would be continued (started with --restart)\n", session.id()));
        let said = harness.run(&["recover"]).exits(0).stdout;
        assert_eq!(said, format!("{}: continued (started with --restart)\n", session.id()));
        session.until_look("it runs again", |view| view.run == 4 && view.alive);
        assert!(harness.run(&["recover"]).exits(0).stdout.is_empty(), "it runs");
        session.stop();
    }
}

#[test]
fn several_recover_commands_at_once_continue_a_session_only_once() {
    let harness = harness();
    let log = file(&harness, "runs");
    let once_more = format!("echo run >> {0}; [ $(wc -l < {0}) -gt 1 ] || sleep 600", log.display());
    let session = harness.detach(&["--restart", "on-failure", "--", "sh", "-c", &once_more]);
    patience::until("it runs", &[log.parent().unwrap()], || log.exists().then_some(()));
    cut_power(&session);
    let all: Vec<_> = (0..8).map(|_| harness.start(&["recover"])).collect();
    let said: Vec<String> = all.into_iter().map(|one| one.finish().exits(0).stdout).collect();
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "run\nrun\n", "{said:?}");
    assert_eq!(said.concat(), format!("{}: continued (started with --restart)\n", session.id()));
}

#[test]
fn the_systemd_unit_is_written_and_removed() {
    let harness = harness();
    let said = harness.run(&["install-service"]).exits(0);
    let path = harness.root().join("config/systemd/user/ostler-recover.service");
    assert!(said.stdout.contains(&path.display().to_string()), "{said:?}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(" recover\n") && text.contains("WantedBy=default.target"), "{text}");
    assert!(text.contains(&format!("OSTLER_HOME={}", harness.home().display())), "{text}");
    harness.run(&["install-service"]).exits(0);
    harness.run(&["install-service", "--uninstall"]).exits(0);
    assert!(!path.exists());
    assert_eq!(harness.run(&["install-service", "--uninstall"]).exits(0).stdout, "it was not installed\n");
}
