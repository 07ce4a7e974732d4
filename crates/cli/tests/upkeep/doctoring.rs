//! `doctor` names what is wrong and what to do about it, and changes nothing.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind, patience};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

/// The problems that need attention, as (what, what to do).
#[track_caller]
fn problems(harness: &Harness) -> Vec<(String, String)> {
    let output = harness.run(&["doctor", "--json"]);
    let found: Vec<(String, String)> = output
        .json()
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["level"] == "problem")
        .map(|finding| (finding["what"].as_str().unwrap().to_owned(), finding["do"].as_str().unwrap().to_owned()))
        // Problems of the machine that runs the tests do not count.
        .filter(|(what, _)| !what.contains("is in memory") && !what.contains("too little") && !what.contains("logout"))
        .collect();
    if !found.is_empty() {
        output.exits(1);
    }
    found
}

#[test]
fn a_healthy_home_has_no_problems() {
    let harness = harness();
    assert_eq!(problems(&harness), []);
    let (live, ended) = (harness.detach(&["--", "sleep", "600"]), harness.detach(&["--", "true"]));
    harness.run(&["wait", ended.id()]).exits(0);
    live.living(ProcessKind::Keeper);
    assert_eq!(problems(&harness), []);
}

#[test]
fn a_damaged_folder_is_named_with_what_is_wrong_and_stops_nothing_else() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    std::fs::write(session.path().join("session.json"), b"{\"schema\":\xff").unwrap();
    let found = problems(&harness);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0.contains(session.id()) && found[0].0.contains("session.json"));
    assert!(found[0].1.contains(&format!("ostler purge {}", session.id())));
}

#[test]
fn a_copy_in_the_archive_is_named_and_nothing_is_written_into_it() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.living(ProcessKind::Keeper);
    let archive = harness.home().join("archive/2026-11");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&archive).unwrap();
    let copy = archive.join(session.id());
    harness.copy(&session.path(), &copy);
    for doctor in [&["doctor"][..], &["doctor", "--fix"]] {
        harness.run(doctor);
        let found = problems(&harness);
        let [(what, _)] = &found[..] else { panic!("{found:?}") };
        assert!([&session.path(), &copy].iter().all(|path| what.contains(path.to_str().unwrap())), "{what}");
        assert!(!copy.join("runs/1/outcome.json").exists());
    }
    std::fs::remove_dir_all(&copy).unwrap();
    assert_eq!(problems(&harness), []);
}

#[test]
fn a_renamed_folder_is_not_taken_for_a_copy() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    let renamed = session.path().with_file_name("abcd2345");
    std::fs::rename(session.path(), &renamed).unwrap();
    let found = problems(&harness);
    let [(what, remedy)] = &found[..] else { panic!("{found:?}") };
    assert!(what.contains(session.id()) && !remedy.contains("purge"), "{found:?}");
    assert!(harness.command("sh").args(["-c", remedy]).status().unwrap().success());
    assert_eq!(problems(&harness), []);
    harness.run(&["show", session.id()]).exits(0);
}

#[test]
fn an_exit_that_was_not_observed_is_reported_and_recorded_by_the_named_command() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    let found = problems(&harness);
    assert!(found.len() == 1 && found[0].0.contains("without a keeper"), "{found:?}");
    session.kill(ProcessKind::Agent);
    let found = problems(&harness);
    assert!(found.len() == 1 && found[0].1.starts_with(&format!("ostler wait {}", session.id())), "{found:?}");
    assert!(!session.run_file("outcome.json").exists(), "`doctor` writes nothing");
    harness.run(&["wait", session.id()]).exits(5);
    assert_eq!(problems(&harness), []);
}

#[test]
fn a_process_that_outlives_a_lost_session_is_ended_by_the_named_command_and_not_from_a_copy_of_the_home() {
    let harness = harness();
    let session = harness.detach(&["--", "sh", "-c", "sleep 600 & echo started; wait"]);
    let agent = session.living(ProcessKind::Agent);
    session.until("its child", || std::fs::read(session.run_file("out")).ok()?.starts_with(b"started").then_some(()));
    let record = std::fs::read_to_string(session.run_file("run.json")).unwrap();
    if !record.contains("\"cgroup\":\"") {
        return;
    }
    let child = ostler_sys::tree::Processes::look().unwrap().below(&[agent.pid()], |_| false).remove(0);
    session.orphan();
    session.kill(ProcessKind::Agent);
    let other = harness.root().join("other");
    harness.copy(&harness.home(), &other);
    let named =
        |found: &[(String, String)]| found.iter().any(|(_, remedy)| remedy == &format!("ostler stop {}", session.id()));
    assert!(named(&problems(&harness)));
    let mut copy = harness.command(harness.program());
    let output = copy.args(["stop", session.id()]).env("OSTLER_HOME", &other).output().unwrap();
    assert!(output.status.success() && child.may_live(), "{output:?}");
    harness.run(&["stop", session.id()]).exits(0);
    assert!(!child.may_live());
    assert_eq!(problems(&harness), []);
}

#[test]
fn an_agent_without_helpers_gets_a_keeper_from_the_named_command() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    let (_, remedy) = problems(&harness).remove(0);
    assert!(remedy.starts_with(&format!("ostler upgrade {}", session.id())), "{remedy}");
    harness.run(&["upgrade", session.id()]).exits(0);
    assert_eq!(problems(&harness), []);
    session.stop();
}

#[test]
fn helpers_whose_folder_was_deleted_are_named_and_the_named_command_ends_them() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let processes = [ProcessKind::Keeper, ProcessKind::Holder, ProcessKind::Agent].map(|who| session.living(who));
    // A fork of the launcher is recorded as the holder already before it executes the holder's program.
    let is_holder = || ostler_sys::process::command_line(processes[1].pid()).iter().any(|word| word == "__holder");
    session.until("it is loaded as a holder", || is_holder().then_some(()));
    // A keeper that starts reads from the record which process is its holder. Its last step then is to create the next
    // spare folder.
    let spare = harness.home().join("spare/ready");
    session.until("its keeper has begun", || spare.exists().then_some(()));
    // A process that writes to the folder at the same time may create it again once.
    session.until("its folder is gone", || {
        let _ = std::fs::remove_dir_all(session.path());
        (!session.path().exists()).then_some(())
    });
    let found = problems(&harness);
    assert_eq!(found.len(), 2, "{found:?}");
    let (_, remedy) = found.into_iter().find(|(what, _)| what.contains("the holder")).unwrap();
    // The holder may have ended one of them before its turn, and then `kill` fails for that one.
    harness.command("sh").args(["-c", &remedy]).status().unwrap();
    for process in &processes {
        patience::ended(process);
    }
    assert_eq!(problems(&harness), []);
}

#[test]
fn folders_that_others_may_enter_are_named_with_the_command_that_closes_them() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    std::fs::set_permissions(session.path(), std::fs::Permissions::from_mode(0o750)).unwrap();
    let (_, remedy) = problems(&harness).remove(0);
    assert!(harness.command("sh").args(["-c", &remedy]).status().unwrap().success());
    assert_eq!(problems(&harness), []);
}
