//! Odd files in the home, or helpers that were stopped or lost their files: no command hangs or acts on the wrong
//! session, and everything that can continue does.

use crate::harness;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::{ProcessKind, patience};
use rustix::process::Signal;

#[test]
fn a_pipe_in_place_of_a_record_counts_as_damaged_and_no_command_hangs() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    let odd = harness.session("zzzzzzz0").path();
    std::fs::create_dir(&odd).unwrap();
    assert!(harness.command("mkfifo").arg(odd.join("session.json")).status().unwrap().success());
    let listed = harness.run(&["ls", "--json"]).exits(0).json();
    let states: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["damaged", "ended"]);
    harness.run(&["show", &session.id()[..4]]).exits(0);
}

#[test]
fn a_copied_folder_is_not_acted_on() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.until_look("a keeper", |view| view.kept);
    let copy = harness.session("zzzzzzz0");
    harness.copy(&session.path(), &copy.path());
    let complaint = harness.run(&["stop", copy.id()]).exits(125);
    assert!(complaint.complaint().contains(session.id()), "{}", complaint.complaint());
    assert!(session.show().alive);
    std::fs::remove_dir_all(copy.path()).unwrap();
}

#[test]
fn of_many_simultaneous_launches_with_one_name_one_succeeds() {
    let harness = harness();
    let wanting: Vec<_> =
        (0..10).map(|_| harness.start(&["run", "-d", "--name", "same", "--", "sleep", "600"])).collect();
    let codes: Vec<_> = wanting.into_iter().map(|one| one.finish().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some(2)).count(), 9, "{codes:?}");
}

#[test]
fn a_helper_that_was_stopped_is_continued() {
    let harness = harness();
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let session = harness.detach(&["--keep", "demo", "say hello"]);
        harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
        session.signal(who, Signal::STOP);
        session.until_look("the alarm", |view| view.alarm.is_some());
        harness.run(&["stop", session.id()]).exits(0);
        assert!(session.show().ended);
    }
}

#[test]
fn a_removed_socket_is_created_again() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo"]);
    session.until_look("a keeper", |view| view.kept);
    std::fs::remove_file(session.path().join("sock")).unwrap();
    harness.run(&["send", session.id(), "say still here"]).exits(0);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    assert_eq!(session.show().last.as_deref(), Some("still here"));
}

#[test]
fn many_resumes_and_waiters_at_once_leave_one_run_and_no_wrong_outcome() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say hello"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    harness.run(&["stop", session.id()]).exits(0);
    for _ in 0..10 {
        let resumes: Vec<_> = (0..4).map(|_| harness.start(&["resume", session.id(), "--keep", "-d"])).collect();
        let waiters: Vec<_> = (0..3).map(|_| harness.start(&["wait", session.id(), "--timeout", "0s"])).collect();
        let outputs: Vec<_> = resumes.into_iter().map(|one| one.finish()).collect();
        let mut codes: Vec<_> = outputs.iter().map(|output| output.code).collect();
        codes.sort_unstable();
        assert_eq!(codes, [0, 7, 7, 7].map(Some), "{outputs:?}");
        for waiter in waiters {
            let code = waiter.finish().code;
            // The outcome of the previous run, or a timeout: never lost, never failed.
            assert!([Some(0), Some(6), Some(124)].contains(&code), "a living session was called {code:?}");
        }
        let shown = session.show();
        assert!(shown.alive && !shown.ended, "{shown:?}");
        harness.run(&["stop", session.id()]).exits(0);
    }
}

#[test]
fn a_full_standard_output_is_reported_as_an_error() {
    let harness = harness();
    let into_full = |arguments: &[&str]| {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = harness.command(harness.program()).args(arguments).stdout(full).output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {words}");
        assert!(words.contains("standard output"), "{arguments:?}: {words}");
        words
    };
    let words = into_full(&["run", "-d", "--", "sleep", "600"]);
    assert!(words.contains(&harness.ls()[0].id), "{words}");
    for arguments in [&["ls"][..], &["ls", "--json"], &["doctor"], &["events"], &["--help"], &["--version"]] {
        into_full(arguments);
    }
}

#[test]
fn a_damaged_record_of_a_helper_is_reported_and_the_session_can_be_stopped() {
    let harness = harness();
    for file in ["holder.json", "keeper.json"] {
        let session = harness.detach(&["--keep", "demo", "say hello"]);
        harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
        std::fs::write(session.path().join(file), "garbage").unwrap();
        let shown = session.show();
        assert!(shown.alive && shown.alarm.as_ref().is_some_and(|alarm| alarm.contains(file)), "{shown:?}");
        session.stop();
        assert!(session.show().ended);
    }
}

#[test]
fn a_spare_folder_that_was_changed_is_not_used() {
    let harness = harness();
    let spare = harness.home().join("spare");
    let (ready, misbehave) = (spare.join("ready"), harness.misbehave());
    let run = || harness.run(&["run", "--", &misbehave, "say=real", "exit=3"]).exits(1);
    let prepared = || patience::until("the next folder is made", &[&spare], || ready.exists().then_some(()));
    run();
    prepared();
    std::fs::write(ready.join("runs/1/out"), "old and long output").unwrap();
    std::fs::write(ready.join("runs/1/outcome.json"), "{}").unwrap();
    assert_eq!(run().stdout, "real\n");
    // The next spare folder may be in the making until the helpers have exited.
    harness.nothing_is_left();
    std::fs::remove_dir_all(&spare).unwrap();
    std::fs::write(&spare, "a file").unwrap();
    assert_eq!(run().stdout, "real\n");
    harness.nothing_is_left();
    let sessions = std::fs::read_dir(harness.home().join("sessions")).unwrap();
    let hidden = sessions.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "nothing half-made stays");
}

#[test]
fn a_running_session_with_damaged_records_is_shown_as_alive_and_can_be_stopped() {
    let harness = harness();
    for file in ["session.json", "runs/1/run.json"] {
        for command in [&["--keep", "demo", "say hello"][..], &["--", "sleep", "600"]] {
            let session = harness.detach(command);
            let agent = session.living(ProcessKind::Agent);
            session.until_look("it is kept", |view| view.kept);
            std::fs::write(session.path().join(file), "").unwrap();
            let listed = harness.run(&["ls", "--json"]).exits(0).json();
            let damaged = listed.as_array().unwrap().iter().find(|one| one["id"] == session.id()).unwrap();
            assert_eq!(
                (damaged["state"].as_str(), damaged["alive"].as_bool()),
                (Some("damaged"), Some(true)),
                "{file}"
            );
            harness.run(&["stop", session.id()]).exits(8);
            assert!(!agent.may_live(), "{file}");
            std::fs::remove_dir_all(session.path()).unwrap();
        }
    }
    harness.nothing_is_left();
}

/// Every keeper that starts then fails, so the holder has to end the agent by itself, also when the signal to stop goes
/// to a keeper that has just started.
#[test]
fn a_session_with_damaged_records_can_be_stopped_although_no_keeper_can_start() {
    let mut harness = harness();
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(pause_points::VARIABLE, &pauses);
    for file in ["session.json", "runs/1/run.json"] {
        let session = harness.detach(&["--", "sleep", "600"]);
        let agent = session.living(ProcessKind::Agent);
        session.until_look("it is kept", |view| view.kept);
        std::fs::write(pauses.join(format!("{}.stop", pause_points::token(Role::Keeper, Point::KeeperSigned))), "1")
            .unwrap();
        let killed = session.kill(ProcessKind::Keeper);
        let beginning = session.replaced(ProcessKind::Keeper, &killed);
        std::fs::write(session.path().join(file), "").unwrap();
        let stop = harness.start(&["stop", session.id()]);
        patience::until("it has the signal", &[], || sigterm_is_pending(beginning.pid()).then_some(()));
        session.signal(ProcessKind::Keeper, Signal::CONT);
        stop.finish().exits(8);
        assert!(!agent.may_live(), "{file}");
        std::fs::remove_dir_all(session.path()).unwrap();
    }
    harness.nothing_is_left();
}

/// Whether SIGTERM is pending for a stopped process of ours.
fn sigterm_is_pending(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap().trim();
    u64::from_str_radix(pending, 16).unwrap() & (1 << (Signal::TERM.as_raw() - 1)) != 0
}

#[test]
fn a_copy_from_another_machine_is_stopped_without_harm_to_the_original() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.until_look("a keeper", |view| view.kept);
    let other = harness.root().join("other");
    harness.copy(&harness.home(), &other);
    let copy = other.join("sessions").join(session.id());
    for file in ["holder.json", "keeper.json", "runs/1/run.json"] {
        let mut record = std::fs::read_to_string(copy.join(file)).unwrap();
        let (before, boot) = record.split_once("\"boot\":\"").unwrap();
        let rest = boot.split_once('"').unwrap().1;
        record = format!("{before}\"boot\":\"another\"{rest}");
        std::fs::write(copy.join(file), record).unwrap();
    }
    let mut stop = harness.command(harness.program());
    let output = stop.args(["stop", session.id()]).env("OSTLER_HOME", &other).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("lost"), "{output:?}");
    assert!(session.show().alive, "{output:?}");
}

/// Without its helpers a session is ended by any command that reads its record, so the record has to name the folder.
#[test]
fn a_copy_of_the_home_is_stopped_without_harm_to_the_original() {
    let harness = harness();
    let other = harness.root().join("other");
    for orphaned in [false, true] {
        let session = harness.detach(&["--", "sleep", "600"]);
        session.until_look("a keeper", |view| view.kept);
        if orphaned {
            session.orphan();
        }
        harness.copy(&harness.home(), &other);
        let in_copy = |arguments: &[&str]| {
            let mut command = harness.command(harness.program());
            let output = command.args(arguments).env("OSTLER_HOME", &other).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let shown: serde_json::Value = serde_json::from_str(&in_copy(&["show", "--json", session.id()])).unwrap();
        assert_eq!((&shown["status"], &shown["alive"]), (&"lost".into(), &false.into()), "{shown}");
        assert!(in_copy(&["stop", session.id()]).contains("lost"));
        in_copy(&["purge", session.id()]);
        assert!(session.show().alive);
        session.stop();
        std::fs::remove_dir_all(&other).unwrap();
    }
    harness.nothing_is_left();
}

#[test]
fn a_session_in_another_home_is_named_by_its_folder_and_taken_over() {
    let harness = harness();
    let other = harness.root().join("other");
    let session = harness.detach(&["--keep", "demo", "say hello"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    harness.copy(&harness.home(), &other);
    let in_copy = |arguments: &[&str]| {
        let mut command = harness.command(harness.program());
        command.args(arguments).env("OSTLER_HOME", &other).output().unwrap()
    };
    let refused = in_copy(&["resume", "-d", session.id(), "say more"]);
    assert_eq!(refused.status.code(), Some(7), "{refused:?}");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains(&session.path().display().to_string()), "{words}");
    let taken = in_copy(&["resume", "--takeover", "-d", "--keep", session.id(), "say more"]);
    assert_eq!(taken.status.code(), Some(0), "{taken:?}");
    assert!(session.show().ended);
    assert_eq!(in_copy(&["wait", "--until", "turn", session.id()]).status.code(), Some(0));
    assert_eq!(in_copy(&["stop", session.id()]).status.code(), Some(0));
    harness.nothing_is_left();
}

#[test]
fn a_copy_under_another_id_does_not_take_the_name_of_its_session() {
    let harness = harness();
    let session = harness.detach(&["--name", "orig", "--", "sleep", "600"]);
    session.until_look("a keeper", |view| view.kept);
    let copy = session.path().with_file_name("cpy23456");
    for ended in [false, true] {
        harness.copy(&session.path(), &copy);
        let shown = harness.run(&["show", "orig", "--json"]).exits(0);
        assert!(shown.stdout.contains(&format!("\"id\": \"{}\"", session.id())), "{shown:?}");
        let last = harness.run(&["show", "@last", "--json"]).exits(0);
        assert!(last.stdout.contains(&format!("\"id\": \"{}\"", session.id())), "{last:?}");
        std::fs::remove_dir_all(&copy).unwrap();
        if !ended {
            harness.run(&["stop", "orig"]).exits(0);
        }
    }
}
