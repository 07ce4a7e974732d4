//! An archived session is not listed any more, can still be read, and is restored as it was.

use crate::harness;
use ostler_core::view::Phase;
use ostler_testkit::{Harness, ProcessKind, Session};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where an archived session is.
fn away(harness: &Harness, id: &str) -> PathBuf {
    let mut entries = std::fs::read_dir(harness.home().join("archive")).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.is_dir()).unwrap().join(id)
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(
                files(&path).into_iter().map(|(name, bytes)| (Path::new(&path.file_name().unwrap()).join(name), bytes)),
            );
        } else {
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn an_archived_session_is_readable_and_is_restored_as_it_was() {
    let harness = harness();
    let session = harness.detach(&["--name", "greeter", "--", "echo", "good morning"]);
    harness.run(&["wait", session.id()]).exits(0);
    // Its helpers exit a moment later, and remove their records.
    session.until("only records are left", || (!session.path().join("holder.json").exists()).then_some(()));
    let before = files(&session.path());
    harness.run(&["archive", "greeter"]).exits(0);
    assert!(!session.path().exists());
    assert!(harness.ls().is_empty());
    let listed = harness.run(&["ls", "-a", "--json"]).exits(0).json();
    assert_eq!((&listed[0]["id"], &listed[0]["archived"]), (&session.id().into(), &true.into()));
    assert_eq!(harness.run(&["logs", session.id()]).exits(0).stdout, "good morning\n");
    assert_eq!(session.show().outcome().kind, "succeeded");

    harness.run(&["restore", session.id()]).exits(0);
    let mut back = files(&session.path());
    assert!(back.remove(Path::new("archived.json")).is_some());
    assert_eq!(before, back);
    assert_eq!(harness.ls().len(), 1);
    assert_eq!(harness.run(&["logs", session.id()]).exits(0).stdout, "good morning\n");
}

/// What a session uses on the disk: how many names, and the bytes of their blocks.
fn takes(path: &Path) -> (usize, u64) {
    let stat = std::fs::symlink_metadata(path).unwrap();
    let mut sum = (1, stat.blocks() * 512);
    for entry in stat.is_dir().then(|| std::fs::read_dir(path).unwrap()).into_iter().flatten() {
        let (names, bytes) = takes(&entry.unwrap().path());
        sum = (sum.0 + names, sum.1 + bytes);
    }
    // A file with two names is counted once.
    let doubled = path.join("outcome.json");
    if path.join("session.json").exists() && doubled.exists() {
        sum.1 -= std::fs::metadata(doubled).unwrap().blocks() * 512;
    }
    sum
}

#[test]
fn an_ended_session_takes_ten_names_and_an_archived_one_a_single_file_that_every_command_reads() {
    let harness = harness();
    // It ends only when its helpers are known.
    let flag = harness.root().join("flag");
    let until = format!("until={}", flag.display());
    let session = harness.detach(&["--name", "small", "--", &harness.misbehave(), &until]);
    let helpers = [ProcessKind::Holder, ProcessKind::Keeper].map(|who| session.living(who));
    std::fs::write(&flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    session.until("its helpers have exited", || helpers.iter().all(|helper| !helper.may_live()).then_some(()));
    let (names, bytes) = takes(&session.path());
    assert!(names <= 10 && bytes <= 28 * 1024, "{names} names, {bytes} bytes: {:?}", files(&session.path()).keys());

    harness.run(&["archive", session.id()]).exits(0);
    let packed = away(&harness, session.id());
    assert!(packed.is_file());
    assert_eq!(takes(&packed).0, 1);
    assert!(takes(&packed).1 <= 8 * 1024, "{} bytes", takes(&packed).1);
    let used = harness.run(&["du", "--json"]).exits(0).json();
    assert_eq!(used["sessions"][0]["bytes"].as_u64(), Some(takes(&packed).1), "{used}");
    for word in [session.id(), &session.id()[..6], "small"] {
        assert!(harness.run(&["show", word]).exits(0).stdout.contains("succeeded"));
    }
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["stats"]).exits(0);
    harness.run(&["events", "--since", "1h"]).exits(0);
    harness.run(&["checkpoints", session.id()]).exits(0);
    for refused in [vec!["resume", session.id()], vec!["rename", session.id(), "x"]] {
        let output = harness.run(&refused);
        assert!(output.complaint().contains("archived"), "{output:?}");
    }
    harness.run(&["stop", session.id()]);
    assert!(packed.is_file(), "it is unchanged");
    assert!(!harness.run(&["doctor"]).stdout.contains(session.id()));
    harness.run(&["purge", session.id()]).exits(0);
    assert!(!packed.exists());
    harness.run(&["show", session.id()]).exits(3);
}

#[test]
fn a_packed_session_that_was_damaged_is_named_and_can_be_deleted() {
    let harness = harness();
    let session = harness.detach(&["--", "echo", "words"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["archive", session.id()]).exits(0);
    let packed = away(&harness, session.id());
    let mut bytes = std::fs::read(&packed).unwrap();
    bytes[60] ^= 1;
    std::fs::write(&packed, bytes).unwrap();
    let listed = harness.run(&["ls", "-a", "--json"]).exits(0).json();
    assert_eq!(listed[0]["id"], session.id());
    assert_eq!((&listed[0]["archived"], &listed[0]["last"]), (&true.into(), &serde_json::Value::Null));
    assert!(listed[0].as_object().unwrap().contains_key("last"), "{listed}");
    let damage = listed[0]["damage"].as_str().unwrap_or_default();
    assert!(damage.contains("the archived file is damaged"), "{listed}");
    assert!(harness.run(&["doctor"]).stdout.contains(session.id()));
    let output = harness.run(&["restore", session.id()]);
    assert_ne!(output.code, Some(0), "{output:?}");
    harness.run(&["purge", session.id()]).exits(0);
    assert!(!packed.exists());
}

/// An archived session, its packed file, and the position in it where each of these files begins.
fn packed_with<'a>(harness: &'a Harness, files: &[&str]) -> (Session<'a>, PathBuf, Vec<usize>) {
    let session = harness.detach(&["--", "echo", "words of it"]);
    harness.run(&["wait", session.id()]).exits(0);
    // The last step of its keeper: the record of the run becomes a second name of the outcome.
    session.until("it is tidied up", || is_one_file(&session, "run.json", "outcome.json").then_some(()));
    let contents: Vec<Vec<u8>> = files.iter().map(|name| std::fs::read(session.path().join(name)).unwrap()).collect();
    harness.run(&["archive", session.id()]).exits(0);
    let packed = away(harness, session.id());
    let bytes = std::fs::read(&packed).unwrap();
    let begins = |part: &Vec<u8>| bytes.windows(part.len()).position(|window| window == part.as_slice()).unwrap();
    (session, packed, contents.iter().map(begins).collect())
}

fn is_one_file(session: &Session<'_>, one: &str, other: &str) -> bool {
    let inode = |name| std::fs::metadata(session.run_file(name)).map(|stat| stat.ino()).ok();
    inode(one).is_some() && inode(one) == inode(other)
}

fn flip(packed: &Path, at: usize) {
    let mut bytes = std::fs::read(packed).unwrap();
    bytes[at] ^= 1;
    std::fs::write(packed, bytes).unwrap();
}

#[test]
fn a_damaged_file_in_a_packed_session_costs_that_file_and_doctor_names_it() {
    let harness = harness();
    // The last one is also the record of the run: of a file with several names, the first name is reported.
    for name in ["runs/1/out.times", "journal.jsonl", "runs/1/out", "outcome.json"] {
        let (session, packed, begins) = packed_with(&harness, &[name]);
        flip(&packed, begins[0]);
        let doctor = harness.run(&["doctor"]).stdout;
        assert!(doctor.contains(&format!("{}: the archived file is damaged ({name})", session.id())), "{doctor}");
        assert!(doctor.contains(&format!("ostler restore {}", session.id())), "{doctor}");
        let (shown, logs) = (harness.run(&["show", session.id()]), harness.run(&["logs", "--raw", session.id()]));
        match name {
            "outcome.json" => assert!(shown.clone().exits(125).complaint().contains("damaged"), "{shown:?}"),
            _ => assert!(shown.clone().exits(0).stdout.contains("succeeded"), "{shown:?}"),
        }
        match name {
            "runs/1/out" => assert!(logs.clone().exits(125).complaint().contains("damaged"), "{logs:?}"),
            "outcome.json" => {}
            _ => assert_eq!(logs.exits(0).stdout, "words of it\n"),
        }
        let restored = harness.run(&["restore", session.id()]).exits(0);
        assert!(restored.stderr.contains(&format!("{name} was damaged in the archive")), "{restored:?}");
        let out = std::fs::read_to_string(session.run_file("out")).unwrap();
        assert!(out.ends_with("ords of it\n"), "{out}");
        assert_eq!(session.path().join("outcome.json.damaged").exists(), name == "outcome.json");
        harness.run(&["purge", session.id()]).exits(0);
    }
}

#[test]
fn an_archived_file_that_is_not_a_packed_session_is_called_damaged() {
    let harness = harness();
    for contents in [&b""[..], b"ostler", &[7; 5000]] {
        let (session, packed, _) = packed_with(&harness, &[]);
        std::fs::write(&packed, contents).unwrap();
        for verb in ["show", "logs", "events", "restore"] {
            let output = harness.run(&[verb, session.id()]).exits(125);
            assert!(output.complaint().contains("the archived file is damaged"), "{output:?}");
        }
        let doctor = harness.run(&["doctor"]).stdout;
        assert!(doctor.contains(session.id()) && doctor.contains("ostler purge"), "{doctor}");
        assert!(!doctor.contains("Not a directory"), "{doctor}");
        let listed = harness.run(&["ls", "-a"]).exits(0).stdout;
        assert!(listed.contains(session.id()) && !listed.contains("Not a directory"), "{listed}");
        harness.run(&["purge", session.id()]).exits(0);
    }
    // A file that was cut off has lost its end, where the largest file is.
    let (session, packed, _) = packed_with(&harness, &[]);
    let bytes = std::fs::read(&packed).unwrap();
    std::fs::write(&packed, &bytes[..bytes.len() - 1]).unwrap();
    assert!(harness.run(&["doctor"]).stdout.contains("the archived file is damaged"));
    harness.run(&["restore", session.id()]).exits(0);
    assert_eq!(std::fs::read_to_string(session.run_file("out")).unwrap(), "words of it\n");
}

#[test]
fn an_archive_of_folders_by_an_older_version_is_read_and_restored() {
    let harness = harness();
    let session = harness.detach(&["--", "echo", "old"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["archive", session.id()]).exits(0);
    let packed = away(&harness, session.id());
    harness.run(&["restore", session.id()]).exits(0);
    std::fs::rename(session.path(), &packed).unwrap();
    assert!(packed.is_dir());
    assert_eq!(harness.run(&["logs", session.id()]).exits(0).stdout, "old\n");
    assert_eq!(session.show().outcome().kind, "succeeded");
    harness.run(&["restore", session.id()]).exits(0);
    assert_eq!(harness.ls().len(), 1);
}

#[test]
fn a_running_session_is_ended_properly_before_it_is_archived() {
    let harness = harness();
    let (agent, command) = (harness.detach(&["--keep", "demo", "hello"]), harness.detach(&["--", "sleep", "600"]));
    harness.run(&["wait", "--until", "turn", agent.id()]).exits(0);
    let processes = [ProcessKind::Agent, ProcessKind::Holder, ProcessKind::Keeper]
        .map(|who| [agent.living(who), command.living(who)])
        .concat();
    harness.run(&["archive", agent.id(), command.id()]).exits(0);
    assert!(processes.iter().all(|process| !process.may_live()), "one of them is still alive");
    assert_eq!(
        (agent.show().outcome().kind.as_str(), agent.show().outcome().saved.as_str()),
        ("succeeded", "verified")
    );
    assert_eq!(command.show().outcome().kind, "stopped");
    assert!(command.show().outcome().cause.contains("archive"));
}

#[test]
fn a_session_that_cannot_be_archived_is_not_stopped() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say hello"]);
    session.until_look("it has answered", |view| view.turns == 1 && view.state == Phase::Idle);
    let copy = harness.home().join("archive/2026-11").join(session.id());
    std::fs::create_dir_all(&copy).unwrap();
    let output = harness.run(&["archive", session.id()]).exits(1);
    assert!(output.complaint().contains(copy.to_str().unwrap()), "{output:?}");
    assert!(!session.look().ended);
    std::fs::remove_dir(&copy).unwrap();
    harness.run(&["archive", session.id()]).exits(0);
}

#[test]
fn what_cannot_be_moved_is_named_and_the_others_are_moved() {
    let harness = harness();
    let (first, second) = (harness.detach(&["--", "true"]), harness.detach(&["--", "true"]));
    harness.run(&["wait", first.id(), second.id()]).exits(0);
    let output = harness.run(&["restore", first.id()]).exits(1);
    assert!(output.complaint().contains("is not archived"));
    harness.run(&["archive", first.id()]).exits(0);
    let output = harness.run(&["archive", first.id(), second.id()]).exits(1);
    assert!(output.complaint().contains("is already archived"));
    assert_eq!(output.stdout, format!("{}: archived\n", second.id()));
    let beginning = &first.id()[..7];
    assert_eq!(harness.run(&["restore", beginning]).exits(0).stdout, format!("{}: restored\n", first.id()));
    assert_eq!(harness.run(&["archive", "nobody"]).exits(3).stdout, "");
}

#[test]
fn restore_finds_the_archived_session_of_a_name_that_is_in_use_again() {
    let harness = harness();
    let run = || {
        harness.run(&["run", "--name", "fix", "--", "true"]).exits(0);
        harness.run(&["show", "--json", "fix"]).exits(0).json()
    };
    let old = run()["id"].as_str().unwrap().to_owned();
    harness.run(&["archive", "fix"]).exits(0);
    let new = run()["id"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    for word in ["fix", "fi", "@last"] {
        harness.run(&["restore", word]).exits(0);
        let (old, new) = (harness.session(&old), harness.session(&new));
        assert_eq!((old.look().archived, new.look().archived), (false, false), "{word}");
        harness.run(&["archive", old.id()]).exits(0);
    }
    let refused = harness.run(&["restore", &new]).exits(1);
    assert!(refused.complaint().contains("is not archived"));
}

#[test]
fn a_stray_file_in_the_archive_hides_no_session() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["archive", session.id()]).exits(0);
    std::fs::write(harness.home().join("archive/README"), "what this is").unwrap();
    std::fs::create_dir(harness.home().join("archive/old")).unwrap();
    assert_eq!(harness.run(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().len(), 1);
}

#[test]
fn a_file_in_the_place_of_a_folder_of_the_archive_stops_no_command_and_doctor_names_it() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    let archive = harness.home().join("archive");
    let month = archive.join("2026-01");
    for stray in [&month, &archive] {
        if stray == &month {
            std::fs::create_dir(&archive).unwrap();
        } else {
            std::fs::remove_dir_all(&archive).unwrap();
        }
        std::fs::write(stray, "not a folder").unwrap();
        for command in [&["ls"][..], &["ls", "-a"], &["show", session.id()], &["du"], &["stats"], &["events"]] {
            harness.run(command).exits(0);
        }
        harness.run(&["show", &session.id()[..6]]).exits(0);
        harness.run(&["show", "nobody"]).exits(3);
        harness.run(&["purge", "--archived"]).exits(0);
        let doctor = harness.run(&["doctor"]).stdout;
        assert!(doctor.contains(&format!("{} is not a folder", stray.display())), "{doctor}");
    }
    let refused = harness.run(&["archive", session.id()]).exits(125);
    assert!(refused.complaint().contains("archive"), "{refused:?}");
    assert!(session.path().exists());
}

#[test]
fn undelivered_messages_and_damage_are_reported_once_and_without_error_numbers() {
    let harness = harness();
    let session = harness.detach(&["demo", "say one"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["send", session.id(), "say two"]);
    let archived = harness.run(&["archive", session.id()]).exits(0).stdout;
    assert!(archived.contains("archived; 1 message was not delivered"), "{archived}");

    let damaged = harness.detach(&["--", "true"]);
    harness.run(&["wait", damaged.id()]).exits(0);
    std::fs::remove_file(damaged.path().join("session.json")).unwrap();
    let refused = harness.run(&["archive", damaged.id()]);
    assert_eq!(refused.complaint().matches(&format!("{}: ", damaged.id())).count(), 1, "{refused:?}");
    std::fs::create_dir(damaged.path().join("session.json")).unwrap();
    for command in [&["ls"][..], &["doctor"]] {
        let shown = harness.run(command).stdout;
        assert!(shown.contains(damaged.id()) && !shown.contains("os error"), "{shown}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_packed_session_is_damaged_and_can_be_deleted() {
    let harness = harness();
    let (session, packed, _) = packed_with(&harness, &[]);
    std::fs::remove_file(&packed).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&packed).status().unwrap().success());
    assert!(harness.run(&["doctor"]).stdout.contains(session.id()));
    harness.run(&["purge", session.id()]).exits(0);
    assert!(!packed.exists());
}

#[test]
fn a_session_that_is_resumed_at_the_same_time_is_never_archived_alive() {
    let harness = harness();
    for _ in 0..10 {
        let session = harness.detach(&["demo", "say hello"]);
        harness.run(&["wait", session.id()]).exits(0);
        let resumed = harness.start(&["resume", "-d", "--keep", session.id()]);
        let archived = harness.run(&["archive", session.id()]);
        let resumed = resumed.finish();
        let shown = session.show();
        assert!(session.path().exists() || !shown.alive, "{shown:?} {resumed:?} {archived:?}");
        harness.run(&["stop", "--kill", session.id()]).exits(0);
    }
}

#[test]
fn of_commands_that_move_one_session_at_once_one_succeeds_and_the_others_say_what_it_did() {
    let harness = harness();
    let races = [["archive", "archive"], ["archive", "purge"], ["purge", "purge"]];
    for verbs in races.iter().cycle().take(6) {
        let session = harness.detach(&["--", "true"]);
        harness.run(&["wait", session.id()]).exits(0);
        let started: Vec<_> = verbs.iter().map(|verb| harness.start(&[verb, session.id()])).collect();
        let outputs: Vec<_> = started.into_iter().map(|one| one.finish()).collect();
        let done = outputs.iter().filter(|output| output.code == Some(0)).count();
        // An archived session can still be purged.
        assert!(done == 1 || (done == 2 && verbs[0] != verbs[1]), "{verbs:?} {outputs:?}");
        for output in outputs.iter().filter(|output| output.code != Some(0)) {
            // A command that starts late finds the session archived, or does not find it at all.
            let is_true = match output.code {
                Some(1) => ["by another command", "another command is working", "is already archived"]
                    .iter()
                    .any(|words| output.complaint().contains(words)),
                Some(3) => output.complaint().contains("no session"),
                _ => false,
            };
            assert!(is_true, "{verbs:?} {output:?}");
        }
    }
}
