//! A full disk: the agent blocks on its full pipe, no record is damaged, the commands still work and say what is wrong.
//! When there is room again everything continues, byte for byte.

use crate::{harness, root_for};
use ostler_testkit::misbehave::pattern;
use ostler_testkit::{Harness, ProcessKind, SmallDisk, Started};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A home on a disk of its own, which must be dropped after the harness. No space is kept free: these tests need a disk
/// that is really full.
fn harness_on(disk: &SmallDisk) -> Harness {
    let mut harness = harness();
    harness.keep_sessions_below(disk.path());
    harness.configure("min_free_space = \"off\"\n");
    harness
}

const WHAT: &str = "mounting a small disk";

#[test]
fn output_waits_for_room_and_continues_byte_for_byte() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("4m");
    let harness = harness_on(&disk);
    for terminal in [&[][..], &["-t"]] {
        disk.grow("4m");
        let misbehave = harness.misbehave();
        let session = harness.detach(&[terminal, &["--", &misbehave, "print=9000000", "say=end"]].concat());
        let alarm = session.until("the full disk is named", || session.show().alarm);
        assert!(alarm.contains("full"), "{alarm}");
        let agent = session.living(ProcessKind::Agent);

        // Commands that only read still work, and say what is wrong.
        let shown = session.show();
        assert_eq!((shown.alive, shown.state.as_str()), (true, "running"));
        let listed = harness.ls();
        assert!(listed.iter().any(|one| one.id == session.id() && one.alive));
        let refused = harness.run(&["run", "-d", "--", "true"]).exits(125);
        assert!(refused.complaint().contains("disk"), "{refused:?}");
        assert_eq!(harness.ls().len(), listed.len(), "something half-made is left");

        // Helpers may be killed in this state.
        let before = session.kill(ProcessKind::Keeper);
        session.until("another keeper", || session.recorded(ProcessKind::Keeper).filter(|now| *now != before));
        assert_eq!(session.recorded(ProcessKind::Agent), Some(agent));
        session.until("the new keeper names the full disk", || session.show().alarm);
        // Room for some records, and not for output.
        disk.grow("4196k");
        let size = session.run_file("out").metadata().unwrap().len();
        for look in [session.show(), harness.ls().into_iter().find(|one| one.id == session.id()).unwrap()] {
            assert!(look.alarm.is_some_and(|alarm| alarm.contains("full")), "it still waits");
        }
        assert_eq!(session.run_file("out").metadata().unwrap().len(), size);

        disk.grow("64m");
        harness.run(&["wait", session.id()]).exits(0);
        let mut wanted = pattern(9_000_000);
        wanted.extend(b"end\n");
        if !terminal.is_empty() {
            wanted = String::from_utf8(wanted).unwrap().replace('\n', "\r\n").into_bytes();
        }
        let found = std::fs::read(session.run_file("out")).unwrap();
        assert!(found == wanted, "{} bytes instead of {}", found.len(), wanted.len());
        // The disk can shrink only when no process has the file open.
        harness.nothing_is_left();
        std::fs::remove_dir_all(session.path()).unwrap();
    }
}

#[test]
fn a_holder_is_replaced_on_a_full_disk_and_the_journal_stays_whole() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("4m");
    let harness = harness_on(&disk);
    let session = harness.detach(&["--", &harness.misbehave(), "print=9000000"]);
    session.until("the full disk is named", || session.show().alarm);
    for _ in 0..3 {
        let before = session.kill(ProcessKind::Holder);
        session.replaced(ProcessKind::Holder, &before);
    }
    let alarm = session.show().alarm.unwrap();
    assert!(alarm.contains("full"), "{alarm}");
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let replaced = lines.filter(|line| line["what"] == "holder_replaced").count();
    assert!(replaced <= 3, "{replaced} replacements for three deaths");
    disk.grow("64m");
    harness.run(&["wait", session.id()]).exits(0);
}

#[test]
fn stop_works_on_a_full_disk_and_the_outcome_is_recorded() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("4m");
    let harness = harness_on(&disk);
    let command = harness.detach(&["--", "sleep", "600"]);
    let agent = harness.detach(&["--keep", "demo", "say before"]);
    harness.run(&["wait", "--until", "turn", agent.id()]).exits(0);
    let _ballast = disk.fill();
    for session in [command, agent] {
        let shown = session.show();
        assert!(shown.alive, "{shown:?}");
        harness.run(&["stop", session.id()]).exits(0);
        let shown = session.show();
        assert!(shown.ended && !shown.alive, "{shown:?}");
        assert!(session.run_file("outcome.json").exists());
    }
    assert_eq!(command.show().outcome().kind, "stopped");
    assert_eq!(agent.show().outcome().kind, "succeeded");
    harness.nothing_is_left();
}

#[test]
fn a_long_answer_does_not_keep_the_end_from_being_recorded() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("32m");
    let harness = harness_on(&disk);
    let session = harness.detach(&["--keep", "demo"]);
    let long = format!("say {}", "x".repeat(3_000_000));
    harness.run_with_input(&["send", session.id(), "-"], long.as_bytes()).exits(0);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let _ballast = disk.fill();
    harness.run(&["stop", session.id()]).exits(0);
    let outcome = harness.run(&["show", "--json", session.id()]).exits(0).json()["outcome"].clone();
    assert_eq!((&outcome["kind"], &outcome["saved"]), (&"succeeded".into(), &"verified".into()), "{outcome}");
    let text = outcome["text"].as_str().unwrap();
    assert!(text.starts_with("xxxx") && text.ends_with("x…") && text.len() < 2000, "{} bytes", text.len());
    let logs = harness.run(&["logs", session.id()]).exits(0).stdout;
    assert!(logs.contains(&"x".repeat(3_000_000)), "all of it is in the log");
    harness.nothing_is_left();
}

#[test]
fn a_message_that_does_not_fit_is_refused_and_a_later_one_arrives() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("4m");
    let harness = harness_on(&disk);
    let session = harness.detach(&["--keep", "demo"]);
    let ballast = disk.fill();
    let long = format!("say {}", "x".repeat(200_000));
    let refused = harness.run_with_input(&["send", session.id(), "-"], long.as_bytes()).exits(125);
    assert!(refused.complaint().contains("disk"), "{refused:?}");
    std::fs::remove_file(ballast).unwrap();
    harness.run(&["send", session.id(), "say fits"]).exits(0);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.turns, shown.last.as_deref()), (1, Some("fits")));
    session.stop();
}

#[test]
fn a_launch_warns_when_disk_space_is_low() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("8m");
    let harness = harness_on(&disk);
    let output = harness.run(&["run", "-d", "--", "sleep", "600"]).exits(0);
    assert!(output.complaint().contains("of disk space left"), "{output:?}");
    assert_eq!(output.stdout.lines().count(), 1, "the id is alone on stdout");
    harness.session(output.stdout.trim_end()).stop();
    disk.grow("512m");
    let output = harness.run(&["run", "-d", "--", "true"]).exits(0);
    assert_eq!(output.stderr, "");
    harness.run(&["wait", output.stdout.trim_end()]).exits(0);
}

#[test]
fn a_launch_at_any_amount_of_room_is_whole_or_nothing() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("1m");
    let harness = harness_on(&disk);
    let sessions = harness.home().join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    // Leaves a little more room each time, from none at all to enough.
    for pages in [0, 1, 2, 4, 8, 12, 16, 17, 18, 19, 20, 24, 28] {
        let ballast = disk.fill();
        let file = std::fs::File::options().write(true).open(&ballast).unwrap();
        file.set_len(file.metadata().unwrap().len().saturating_sub(pages * 4096)).unwrap();
        let output = Started::new(
            {
                let mut command = harness.command(harness.program());
                command.args(["run", "-d", "--", "true"]);
                command
            },
            None,
        )
        .finish();
        let left: Vec<_> = std::fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path()).collect();
        if output.code == Some(0) {
            let session = harness.session(output.stdout.trim_end());
            assert_eq!(left, [session.path()], "{pages} pages");
            harness.run(&["wait", session.id()]).exits(0);
            harness.nothing_is_left();
            remove(&session.path());
        } else {
            assert!(output.stderr.lines().last().unwrap().starts_with("ostler: "), "{output:?}");
            assert!(left.is_empty(), "{pages} pages: {left:?} left by {output:?}");
        }
        std::fs::remove_file(ballast).unwrap();
    }
}

fn remove(folder: &Path) {
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_endless_writer_is_stopped_on_a_full_disk_and_the_loss_is_reported() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("8m");
    let harness = harness_on(&disk);
    let session = harness.detach(&["--", "sh", "-c", "yes"]);
    session.until_look("a full disk", |view| view.alarm.as_deref().is_some_and(|alarm| alarm.contains("full")));
    harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!(shown.outcome().kind, "stopped");
    assert!(shown.alarm.is_some_and(|alarm| alarm.contains("lost")));
    harness.nothing_is_left();
}

#[test]
fn a_test_that_fails_leaves_no_process_on_its_disk() {
    if !root_for(WHAT) {
        return;
    }
    let disk = SmallDisk::mount("4m");
    let started = Mutex::new(Vec::new());
    let failed = std::thread::scope(|scope| {
        let test = scope.spawn(|| {
            let harness = harness_on(&disk);
            let session = harness.detach(&["--", &harness.misbehave(), "print=9000000"]);
            session.until("the full disk is named", || session.show().alarm);
            *started.lock().unwrap() =
                [ProcessKind::Agent, ProcessKind::Holder, ProcessKind::Keeper].map(|who| session.living(who)).to_vec();
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        test.join().is_err()
    });
    let started = started.into_inner().unwrap_or_else(PoisonError::into_inner);
    let alive: Vec<_> = started.iter().filter(|process| process.may_live()).collect();
    assert!(failed && started.len() == 3 && alive.is_empty(), "started {started:?}, still alive {alive:?}");
}
