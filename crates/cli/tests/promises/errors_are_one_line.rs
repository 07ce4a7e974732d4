//! Errors are one line that says what is wrong, and nothing half-made is left behind.

use crate::{harness, root_for};
use ostler_testkit::Harness;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

/// Checks that nothing was created, not even a hidden folder, and that no process runs.
#[track_caller]
fn left_nothing(harness: &Harness) {
    let names: Vec<_> = std::fs::read_dir(harness.home().join("sessions"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(names.is_empty(), "left: {names:?}");
    harness.nothing_is_left();
}

#[test]
fn a_program_that_cannot_be_started() {
    let harness = harness();
    let plain = harness.root().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    let folder = harness.root().to_string_lossy().into_owned();
    for (program, word) in
        [("no-such-program", "not found"), (&plain.to_string_lossy(), "ermission"), (&folder, "ermission")]
    {
        for mode in [&[][..], &["-t"]] {
            let output = harness.run(&[&["run", "-d"], mode, &["--", program]].concat());
            assert_ne!(output.code, Some(0));
            let complaint = output.complaint();
            assert!(complaint.contains(program) && complaint.contains(word), "{complaint}");
            assert_eq!(output.stdout, "");
            left_nothing(&harness);
        }
    }
}

#[test]
fn a_prompt_file_that_is_missing() {
    let harness = harness();
    let output = harness.run(&["run", "-f", "/no/such/file", "demo"]).exits(2);
    assert!(output.complaint().contains("cannot read the prompt from /no/such/file: "), "{output:?}");
    left_nothing(&harness);
}

#[test]
fn a_terminal_session_is_not_resumed_without_a_terminal() {
    let harness = harness();
    let session = harness.detach(&["-t", "demo"]);
    harness.run(&["stop", session.id()]);
    let output = harness.run(&["resume", session.id(), "say x"]).exits(2);
    assert!(output.complaint().contains(&format!("ostler resume -d {}", session.id())), "{output:?}");
    assert_eq!(session.show().run, 1);
    harness.nothing_is_left();
}

#[test]
fn a_folder_that_is_missing_or_a_file() {
    let harness = harness();
    let file = harness.root().join("file");
    std::fs::write(&file, "").unwrap();
    for folder in ["/no/such/folder", &file.to_string_lossy()] {
        harness.run(&["run", "-d", "--cwd", folder, "--", "true"]).exits(2).complaint();
        left_nothing(&harness);
    }
}

#[test]
fn a_home_that_cannot_be_created() {
    let mut harness = harness();
    let ours = harness.home();
    let file = harness.root().join("file");
    std::fs::write(&file, "").unwrap();
    for home in ["/proc/ostler".into(), file.join("below"), file] {
        harness.set("OSTLER_HOME", &home);
        let output = harness.run(&["run", "-d", "--", "true"]).exits(125);
        assert!(output.complaint().contains(&*home.to_string_lossy()), "{output:?}");
    }
    harness.set("OSTLER_HOME", &ours);
    left_nothing(&harness);
}

#[test]
fn a_home_that_may_not_be_written() {
    if !root_for("becoming another user") {
        return;
    }
    let harness = harness();
    std::fs::set_permissions(harness.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = harness.copied_program("copy");
    let mut command = harness.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    command.args(["run", "-d", "--", "true"]).current_dir("/");
    let output = ostler_testkit::Started::new(command, None).finish().exits(125);
    assert!(output.complaint().contains("ermission denied"), "{output:?}");
    left_nothing(&harness);
}

#[test]
fn a_home_whose_path_is_longer_than_a_socket_address_works() {
    let mut harness = harness();
    let deep = harness.root().join("deep".repeat(20)).join("deeper".repeat(30));
    harness.set("OSTLER_HOME", &deep);
    let session = harness.detach(&["--keep", "demo"]);
    harness.run(&["send", session.id(), "say deep down"]).exits(0);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let before = session.kill(ostler_testkit::ProcessKind::Keeper);
    session.replaced(ostler_testkit::ProcessKind::Keeper, &before);
    session.stop();
}

#[test]
fn a_name_that_is_taken_or_invalid() {
    let harness = harness();
    let session = harness.detach(&["--name", "mine", "--", "sleep", "600"]);
    let output = harness.run(&["run", "-d", "--name", "mine", "--", "true"]).exits(2);
    assert!(output.complaint().contains(session.id()), "{output:?}");
    for name in ["../x", "a/b", "", "-x", ".x", "a:b", "\u{1b}[31m", "x\ny"] {
        harness.run(&["run", "-d", &format!("--name={name}"), "--", "true"]).exits(2).complaint();
    }
    assert_eq!(harness.ls().len(), 1);
    harness.run(&["stop", "mine"]).exits(0);
    // The name of an ended session can be used again, and then names the session that runs.
    let again = harness.detach(&["--name", "mine", "--", "sleep", "600"]);
    let shown = harness.run(&["show", "--json", "mine"]).exits(0).json();
    assert_eq!(shown["id"], again.id());
}

#[test]
fn ids_that_are_paths_out_of_the_sessions_folder() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    for word in ["../sessions", "..", "/etc", "./x", "a/../b"] {
        for command in ["show", "logs", "wait", "stop", "interrupt"] {
            harness.run(&[command, word]).exits(3).complaint();
        }
        harness.run(&["send", word, "hello"]).exits(3).complaint();
    }
}

#[test]
fn prompts_that_are_empty_or_invalid() {
    let harness = harness();
    harness.run(&["run", "-d", "demo", ""]).exits(2).complaint();
    harness.run(&["run", "-d", "demo", " \n\t"]).exits(2).complaint();
    harness.run(&["run", "-d", "demo"]).exits(2).complaint();
    harness.run(&["run", "-d"]).exits(2).complaint();
    harness.run(&["run", "-d", "demo", "fix", "it"]).exits(2).complaint();
    harness.run(&["run", "-d", "-f", "/no/such/file", "demo"]).exits(2).complaint();
    harness.run(&["run", "-d", "no-such-agent", "do it"]).exits(2).complaint();
    harness.run_with_input(&["run", "-d", "demo", "-"], b"").exits(2).complaint();
    let utf8 = harness.run_with_input(&["run", "-d", "demo", "-"], b"say \xff\xfe").exits(2);
    assert!(utf8.complaint().contains("UTF-8"), "{utf8:?}");
    let mut command = harness.command(harness.program());
    command.args(["run", "-d", "demo"]).arg(std::ffi::OsStr::from_bytes(b"say \xff"));
    let utf8 = ostler_testkit::Started::new(command, None).finish().exits(2);
    assert!(utf8.complaint().contains("UTF-8"), "{utf8:?}");
    left_nothing(&harness);
}

#[test]
fn a_prompt_up_to_16_mib_works_and_one_past_it_does_not() {
    let harness = harness();
    let most = 16 << 20;
    let mut text = b"echo-length ".to_vec();
    text.resize(most + 1, b'x');
    let output = harness.run_with_input(&["run", "-d", "demo", "-"], &text).exits(2);
    assert!(output.complaint().contains("16 MiB"), "{output:?}");
    left_nothing(&harness);
    text.truncate(most);
    let file = harness.root().join("prompt");
    std::fs::write(&file, &text).unwrap();
    let session = harness.detach(&["-f", &file.to_string_lossy(), "demo"]);
    harness.run(&["wait", session.id()]).exits(0);
    let answer = format!("{most} bytes, checksum {:016x}", ostler_testkit::misbehave::checksum(&text));
    assert_eq!(session.show().outcome().text.as_deref(), Some(answer.as_str()));
}

#[test]
fn folders_full_of_garbage_are_listed_as_damaged_and_other_sessions_work() {
    let harness = harness();
    let good = harness.detach(&["--", "sleep", "600"]);
    let sessions = harness.home().join("sessions");
    let damage = |id: &str, files: &[(&str, &[u8])]| {
        let folder = sessions.join(id);
        std::fs::create_dir_all(folder.join("runs/1")).unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    };
    let garbage: &[u8] = b"\xff\x00\x1b[31m{not json";
    let newer =
        std::fs::read_to_string(good.path().join("session.json")).unwrap().replace("\"schema\":1", "\"schema\":99");
    damage("damaged0", &[]);
    damage("damaged1", &[("session.json", garbage)]);
    damage("damaged2", &[("session.json", newer.as_bytes())]);
    damage(
        "damaged3",
        &[("session.json", &std::fs::read(good.path().join("session.json")).unwrap()), ("runs/1/run.json", garbage)],
    );
    damage("damaged4", &[("session.json", b"{\"schema\":99,\"shape\":\"unknown\"}")]);
    std::fs::write(sessions.join("damaged5"), garbage).unwrap();
    std::fs::write(sessions.join("stray file"), garbage).unwrap();

    let listed = harness.run(&["ls", "--json"]).exits(0).json();
    let state =
        |id: &str| listed.as_array().unwrap().iter().find(|one| one["id"] == id).map(|one| one["state"].clone());
    assert_eq!(state(good.id()), Some("running".into()));
    for id in ["damaged0", "damaged1", "damaged2", "damaged3", "damaged4", "damaged5"] {
        assert_eq!(state(id), Some("damaged".into()), "{id} in {listed}");
    }
    let table = harness.run(&["ls"]).exits(0);
    assert!(table.stdout.contains("damaged2") && table.stdout.contains("newer ostler"), "{table:?}");
    assert!(!table.stdout.contains('\u{1b}'), "{table:?}");
    for id in ["damaged0", "damaged1", "damaged2", "damaged3", "damaged4", "damaged5"] {
        for command in ["show", "wait", "stop", "logs"] {
            let output = harness.run(&[command, id]);
            assert_ne!(output.code, Some(0), "{command} {id}: {output:?}");
            output.complaint();
        }
    }
    harness.run(&["show", good.id()]).exits(0);
    good.stop();
}

#[test]
fn escape_sequences_of_a_program_do_not_reach_the_terminal() {
    let harness = harness();
    let evil = "\u{1b}]0;pwned\u{7}\u{1b}[31mred\u{9b}2J";
    let session = harness.detach(&["--", "printf", "%s\\n", evil]);
    harness.run(&["wait", session.id()]).exits(0);
    for arguments in [&["ls"][..], &["show", session.id()], &["logs", session.id()], &["wait", session.id()]] {
        let output = harness.run(arguments).exits(0);
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{9b}') && !text.contains('\u{7}'), "{output:?}");
    }
    let raw = harness.run(&["logs", "--raw", session.id()]).exits(0);
    assert_eq!(raw.stdout, format!("{evil}\n"));
}

#[test]
fn a_launch_with_a_ulimit_or_umask_that_helpers_cannot_work_with_is_refused() {
    let harness = harness();
    for (set, word) in [("ulimit -n 40", "ulimit -n"), ("umask 0177", "umask 0177")] {
        let mut shell = harness.command("/bin/sh");
        shell.args(["-c", &format!(r#"{set}; exec "$0" run -d -- true"#)]).arg(harness.program());
        let output = shell.output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{complaint}");
        assert!(complaint.contains(word) && complaint.lines().count() == 1, "{complaint}");
        assert!(harness.ls().is_empty());
    }
}

#[test]
fn a_list_that_cannot_open_enough_files_calls_no_session_damaged() {
    let harness = harness();
    let started: Vec<_> = (0..6).map(|_| harness.start(&["run", "-d", "--", "true"])).collect();
    for one in started {
        let id = one.finish().exits(0).stdout.trim_end().to_owned();
        harness.run(&["wait", &id]).exits(0);
    }
    let whole = harness.run(&["ls", "--json"]).exits(0).json();
    let states = |list: &serde_json::Value| {
        let state = |one: &serde_json::Value| (one["id"].to_string(), one["state"].to_string());
        list.as_array().unwrap().iter().map(state).collect::<Vec<_>>()
    };
    let mut refused = 0;
    for files in 3..24 {
        let mut shell = harness.command("/bin/sh");
        shell.args(["-c", &format!(r#"ulimit -n {files}; exec "$0" ls --json"#)]).arg(harness.program());
        let output = shell.output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            let list = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(states(&list), states(&whole), "with {files}");
        } else {
            refused += 1;
            assert_eq!(output.status.code(), Some(125), "with {files}: {complaint}");
            // Before this line there may be one about config.toml, which cannot be read either.
            let last = complaint.lines().last().unwrap();
            assert!(last.contains("Too many open files; raise the limit"), "with {files}: {complaint}");
        }
    }
    assert!(refused > 0 && refused < 15, "{refused}");
}

#[test]
fn manual_pages_are_written_into_an_existing_folder_only() {
    let harness = harness();
    let folder = harness.root().join("nowhere");
    let word = folder.to_str().unwrap();
    let complaint = harness.run(&["man", word]).exits(2).complaint().to_owned();
    assert!(complaint.contains("is not a folder; create it first"), "{complaint}");
    assert!(!folder.exists());
    std::fs::create_dir(&folder).unwrap();
    harness.run(&["man", word]).exits(0);
    assert!(folder.join("ostler.1").is_file());
}
