//! `doctor --fix` repairs what can be repaired safely, prints each repair, and changes nothing else.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The repairs that it reports.
#[track_caller]
fn repaired(harness: &Harness) -> Vec<String> {
    let found = harness.run(&["doctor", "--fix", "--json"]).json();
    let repaired = found.as_array().unwrap().iter().filter(|finding| finding["level"] == "repaired");
    let words = repaired.map(|finding| finding["what"].as_str().unwrap().to_owned());
    // Other tests on this machine leave cgroups, too.
    words.filter(|words| !words.contains("cgroup")).collect()
}

fn make_old(path: &Path) {
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn an_exit_that_was_not_observed_is_recorded_and_its_socket_is_removed() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    assert_eq!(repaired(&harness), [""; 0], "a living agent needs no repair");
    session.kill(ProcessKind::Agent);
    assert_eq!(repaired(&harness), [format!("recorded how {} ended: lost", session.id())]);
    assert!(session.run_file("outcome.json").exists() && !session.path().join("sock").exists());
    assert_eq!(repaired(&harness), [""; 0], "there is nothing left to do");
}

#[test]
fn half_made_folders_are_removed_and_foreign_files_stay() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    let sessions = harness.home().join("sessions");
    let [gone, old, young, strange] =
        [".gone-abcdefgh", ".new-abcdefgh", ".new-hgfedcba", "notes"].map(|name| sessions.join(name));
    for folder in [&gone, &old, &young, &strange] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("file"), "x").unwrap();
    }
    make_old(&old);
    let registry = harness.root().join("home/.claude/sessions");
    std::fs::create_dir_all(&registry).unwrap();
    let stale = registry.join("4.json");
    std::fs::write(&stale, r#"{"pid": 4, "procStart": "1", "sessionId": "s"}"#).unwrap();

    let said = repaired(&harness);
    assert_eq!(said, [&gone, &old].map(|folder| format!("removed {}", folder.display())));
    let there = [&gone, &old, &young, &strange, &stale].map(|path: &PathBuf| path.exists());
    assert_eq!(there, [false, false, true, true, true]);
    let doctor = harness.run(&["doctor"]).stdout;
    assert!(doctor.contains(&format!("rm {}", stale.display())), "the command is named: {doctor}");
    assert!(session.path().exists());
}

#[test]
fn an_empty_cgroup_without_an_owner_is_removed_and_one_in_use_stays() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let record = std::fs::read(session.run_file("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let Some(group) = record["cgroup"].as_str().map(PathBuf::from) else {
        return eprintln!("left out: no cgroup can be made here");
    };
    let left = group.with_file_name(format!("ostler-0aqx73sx-1-{}", std::process::id()));
    std::fs::create_dir(&left).unwrap();
    harness.run(&["doctor", "--fix"]);
    assert!(left.exists(), "the process that has just created it may be about to enter it");
    make_old(&left);
    make_old(&group);
    let said = harness.run(&["doctor", "--fix"]).stdout;
    // Cgroups are shared by the whole machine: a `doctor --fix` of another test may have removed this one before, and
    // then nothing is printed.
    assert!(!left.exists(), "{said}");
    assert!(group.exists());
    session.stop();
}

#[test]
fn processes_left_by_a_killed_session_are_named_with_the_command_that_ends_them() {
    let harness = harness();
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "scatter=2", "forever"]);
    session.until_printed("scattered 2");
    if !std::fs::read_to_string(session.run_file("run.json")).unwrap().contains("ostler-") {
        return eprintln!("left out: without a cgroup the owner of a process is not known");
    }
    session.orphan();
    session.kill(ProcessKind::Agent);
    let said = harness.run(&["doctor", "--fix"]).exits(1).stdout;
    let line = said.lines().find(|line| line.contains(&format!("2 processes of {} left in", session.id()))).unwrap();
    assert_eq!(harness.alive().len(), 2, "`doctor --fix` sends no signal");
    let (_, remedy) = line.rsplit_once("; ").unwrap();
    let words: Vec<&str> = remedy.split(' ').collect();
    assert_eq!(words[0], "ostler", "{line}");
    harness.run(&words[1..]).exits(0);
    harness.nothing_is_left();
}

#[test]
fn the_orphaned_tool_of_a_claude_that_is_gone_is_named_and_only_named() {
    let mut harness = harness();
    harness.set("TMPDIR", harness.root().to_owned());
    let uid = rustix::process::geteuid().as_raw();
    let tasks = harness.root().join(format!("claude-{uid}/work/0f-conversation/tasks"));
    std::fs::create_dir_all(&tasks).unwrap();
    let script = format!("setsid sleep 600 > {}/a.output 2>&1 & echo $!", tasks.display());
    let output = harness.command("sh").args(["-c", &script]).output().unwrap();
    let pid = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    // The process may not have opened its output yet.
    let line = ostler_testkit::patience::until("`doctor` names it", &[&tasks], || {
        let found = harness.run(&["doctor"]).stdout;
        found.lines().find(|line| line.contains("0f-conversation")).map(str::to_owned)
    });
    assert!(
        line.contains(&format!("process {pid} ")) && line.ends_with(&format!("kill -- -{pid} || kill {pid}")),
        "{line}"
    );
    harness.run(&["doctor", "--fix"]).exits(1);
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "`doctor --fix` sends no signal");
    let ended = harness.command("sh").args(["-c", &format!("kill -- -{pid} || kill {pid}")]).status().unwrap();
    assert!(ended.success());
}
