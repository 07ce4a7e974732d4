//! A program that prints without end neither fills the disk nor breaks its session: a command keeps its newest output,
//! an agent is held at its limit, and no output is written while the disk has little room. What is kept is kept byte
//! for byte.

use crate::{harness, root_for};
use ostler_sys::dir::{Dir, space};
use ostler_testkit::misbehave::pattern;
use ostler_testkit::{Harness, ProcessKind, Session, SmallDisk, patience};
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

const MIB: u64 = 1 << 20;

/// What can be in the program's pipes and in ours: so much can follow after the limit, once the program has ended.
const IN_PIPES: u64 = 2 * MIB;

fn on_disk(session: &Session<'_>) -> u64 {
    let blocks = |name: &str| std::fs::metadata(session.run_file(name)).map_or(0, |stat| stat.blocks() * 512);
    blocks("out") + blocks("err")
}

fn length(session: &Session<'_>) -> u64 {
    std::fs::metadata(session.run_file("out")).map_or(0, |stat| stat.len())
}

/// Kills the keeper, and waits for the next one.
fn replace_keeper(session: &Session<'_>) {
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
}

fn until_held(session: &Session<'_>, by: &str) -> String {
    let view = session.until_look(&format!("output is held by {by}"), |view| {
        view.alarm.as_deref().is_some_and(|alarm| alarm.starts_with("output is paused") && alarm.contains(by))
    });
    view.alarm.unwrap()
}

#[test]
fn a_command_keeps_its_newest_output_whatever_happens_to_its_keeper() {
    let harness = harness();
    harness.configure("output_limit = \"1MiB\"\n");
    let misbehave = harness.misbehave();
    let (go, flag) = (harness.root().join("go"), harness.root().join("flag"));
    let waits = [format!("until={}", go.display()), format!("until={}", flag.display())];
    let session =
        harness.detach(&["--", &misbehave, "print=20000000", &waits[0], "print=20000000", "say=end", &waits[1]]);
    for part in 1..=4 {
        session.until("more is printed", || (length(&session) > part * 4_000_000).then_some(()));
        replace_keeper(&session);
    }
    std::fs::write(go, "").unwrap();
    replace_keeper(&session);
    session.until_printed("end\n");
    let mut wanted = pattern(20_000_000).repeat(2);
    wanted.extend(b"end\n");
    assert_eq!(length(&session), wanted.len() as u64);
    assert!(on_disk(&session) <= MIB + 64 * 1024, "{} bytes are on the disk", on_disk(&session));

    // What is left is right, and every command says that the rest was dropped.
    let alarm = session.show().alarm.unwrap();
    assert!(alarm.contains("output_limit (1.0 MiB)") && alarm.contains("config.toml"), "{alarm}");
    let raw = harness.run(&["logs", "--raw", session.id()]).exits(0);
    assert!(raw.stdout.len() as u64 >= MIB / 2, "{} bytes are left", raw.stdout.len());
    assert!(wanted.ends_with(raw.stdout.as_bytes()), "what is left is not what was printed");
    assert!(raw.stderr.contains("were dropped"), "{}", raw.stderr);
    let plain = harness.run(&["logs", session.id()]).exits(0);
    assert_eq!(plain.stdout, raw.stdout);
    std::fs::write(flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.last.as_deref(), shown.outcome().kind.as_str()), (Some("end"), "succeeded"));
    assert!(session.look().outcome.unwrap().cause.contains("was dropped (output_limit)"));
}

#[test]
fn standard_error_counts_and_a_short_standard_output_is_not_dropped_for_it() {
    let harness = harness();
    harness.configure("output_limit = \"1MiB\"\n");
    let script = "echo first; yes 'a line of errors' | head -n 1000000 >&2; echo last";
    let session = harness.detach(&["--", "sh", "-c", script]);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(on_disk(&session) <= MIB + IN_PIPES, "{} bytes are on the disk", on_disk(&session));
    let logs = harness.run(&["logs", session.id()]).exits(0);
    assert_eq!(logs.stdout, "first\nlast\n");
    assert!(logs.stderr.ends_with("\na line of errors\n") && logs.stderr.contains("were dropped"));
    assert!(!logs.stderr.contains('\0'), "what was dropped is shown as zeros");
}

#[test]
fn a_flood_without_lines_is_stopped_like_any_other_program() {
    let harness = harness();
    harness.configure("output_limit = \"1MiB\"\n");
    let session = harness.detach(&["--", "cat", "/dev/zero"]);
    session.until_look("its output is dropped", |view| view.alarm.is_some());
    replace_keeper(&session);
    harness.run(&["stop", session.id()]).exits(0);
    assert!(on_disk(&session) <= MIB + IN_PIPES, "{} bytes are on the disk", on_disk(&session));
    let outcome = session.look().outcome.unwrap();
    assert!(outcome.cause.contains("was dropped (output_limit)"), "{}", outcome.cause);
    harness.nothing_is_left();
}

/// Installs a fake Claude Code that runs `misbehave` with these words.
fn fake_claude(harness: &mut Harness, words: &[String]) {
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let words: String = words.iter().map(|word| format!(" '{word}'")).collect();
    harness.write_program(&folder.join("claude"), &format!("#!/bin/sh\nexec '{}'{words}\n", harness.misbehave()));
    harness.set("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
}

const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"after all"}"#;

#[test]
fn an_agent_is_held_at_its_output_limit_and_continues_when_it_is_raised() {
    let mut harness = harness();
    harness.configure("output_limit = \"1MiB\"\n");
    fake_claude(&mut harness, &["print=5000000".to_owned(), format!("say={RESULT}"), "read".to_owned()]);
    let session = harness.detach(&["--keep", "claude", "go"]);
    let agent = session.living(ProcessKind::Agent);
    let alarm = until_held(&session, "output_limit (1.0 MiB)");
    assert!(alarm.contains("raise output_limit in config.toml") && alarm.contains("ostler stop"), "{alarm}");
    assert_eq!(length(&session), MIB, "nothing is dropped, and nothing goes past the limit");
    replace_keeper(&session);
    until_held(&session, "output_limit");
    assert_eq!(length(&session), MIB);
    let listed = harness.run(&["ls"]).exits(0).stdout;
    assert!(listed.contains("output is paused"), "{listed}");
    let doctor = harness.run(&["doctor"]);
    assert!(doctor.stdout.contains("output_limit"), "{doctor:?}");

    harness.configure("output_limit = \"16MiB\"\n");
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    assert_eq!(session.recorded(ProcessKind::Agent), Some(agent));
    assert_eq!(session.look().alarm, None);
    let wanted = [&pattern(5_000_000), RESULT.as_bytes(), b"\n"].concat();
    assert!(std::fs::read(session.run_file("out")).unwrap() == wanted, "bytes are missing or doubled");
    // The fake agent writes no transcript, so its turn cannot be proven: exit code 8.
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(8);
    let outcome = session.look().outcome.unwrap();
    assert!(outcome.text.as_deref() == Some("after all") && !outcome.cause.contains("output_limit"), "{outcome:?}");
}

#[test]
fn an_agent_that_is_held_ends_its_turn_when_it_is_stopped() {
    let mut harness = harness();
    harness.configure("output_limit = \"8MiB\"\n");
    // A little more than the limit, and then the end of its turn.
    fake_claude(&mut harness, &[format!("print={}", 17 * MIB / 2), format!("say={RESULT}"), "read".to_owned()]);
    let session = harness.detach(&["claude", "go"]);
    until_held(&session, "output_limit");
    harness.run(&["stop", "--grace", "20s", session.id()]).exits(8);
    let outcome = session.look().outcome.unwrap();
    assert_eq!(outcome.text.as_deref(), Some("after all"), "{outcome:?}");
    assert!(outcome.cause.contains("its output was paused when it ended"), "{}", outcome.cause);
    harness.nothing_is_left();
}

#[test]
fn an_agent_that_floods_is_stopped_within_its_grace_and_near_its_limit() {
    let harness = harness();
    harness.configure("output_limit = \"4MiB\"\n");
    let session = harness.detach(&["acp", "hello", "--", "sh", "-c", "trap '' TERM; exec cat /dev/zero"]);
    until_held(&session, "output_limit");
    harness.run(&["stop", "--grace", "2s", session.id()]).exits(0);
    assert!(length(&session) <= 4 * MIB + MIB / 2 + IN_PIPES, "{} bytes", length(&session));
    let outcome = session.look().outcome.unwrap();
    assert!(outcome.cause.contains("it has reached output_limit (4.0 MiB)"), "{}", outcome.cause);
    harness.nothing_is_left();
}

/// A home on a disk of its own, of which `min_free` must stay free. The disk must be dropped after the harness.
fn harness_on(disk: &SmallDisk, min_free: &str) -> Harness {
    let mut harness = harness();
    harness.keep_sessions_below(disk.path());
    harness.configure(&format!(
        "min_free_space = \"{min_free}\"\noutput_limit = \"off\"\nterminal_output_limit = \"1GiB\"\n"
    ));
    harness
}

fn free(disk: &SmallDisk) -> u64 {
    space(Dir::open(disk.path()).unwrap()).unwrap().free
}

#[test]
fn output_pauses_while_the_disk_has_little_room_and_continues_byte_for_byte() {
    if !root_for("mounting a small disk") {
        return;
    }
    let disk = SmallDisk::mount("16m");
    let harness = harness_on(&disk, "4MiB");
    let misbehave = harness.misbehave();
    let command = harness.detach(&["--", &misbehave, "print=9000000", "say=end"]);
    let terminal = harness.detach(&["-t", "--", &misbehave, "print=9000000", "say=end"]);
    let agent = harness.detach(&["acp", "hello", "--", "cat", "/dev/zero"]);
    for session in [command, terminal, agent] {
        let alarm = until_held(&session, "min_free_space (4.0 MiB)");
        assert!(alarm.contains("it continues when there is more"), "{alarm}");
        replace_keeper(&session);
        until_held(&session, "min_free_space (4.0 MiB)");
    }
    // Below the limit there are some records, what several keepers write before they check again, and what was in the
    // pipes of the killed keepers.
    assert!(free(&disk) > 2 * MIB, "{} bytes are free", free(&disk));
    let doctor = harness.run(&["doctor"]);
    assert!(doctor.stdout.contains("min_free_space (4.0 MiB)"), "{doctor:?}");

    // A session that floods is stopped, the others continue by themselves.
    harness.run(&["stop", agent.id()]).exits(0);
    assert!(free(&disk) > MIB, "{} bytes are free", free(&disk));
    let cause = agent.look().outcome.unwrap().cause;
    assert!(cause.contains("less than min_free_space (4.0 MiB) is free"), "{cause}");
    disk.grow("64m");
    let mut wanted = pattern(9_000_000);
    wanted.extend(b"end\n");
    for session in [command, terminal] {
        harness.run(&["wait", session.id()]).exits(0);
        let found = std::fs::read(session.run_file("out")).unwrap();
        let drawn = String::from_utf8(wanted.clone()).unwrap().replace('\n', "\r\n").into_bytes();
        let wanted = if session.id() == terminal.id() { &drawn } else { &wanted };
        assert!(found == *wanted, "{} bytes instead of {}", found.len(), wanted.len());
        assert_eq!(session.look().alarm, None);
    }
    harness.nothing_is_left();
}

#[test]
fn floods_of_every_kind_are_stopped_on_a_disk_with_little_room() {
    if !root_for("mounting a small disk") {
        return;
    }
    let disk = SmallDisk::mount("32m");
    let harness = harness_on(&disk, "8MiB");
    let sessions =
        [&["--", "yes"][..], &["-t", "--", "yes"], &["--", "sh", "-c", "yes >&2"]].map(|kind| harness.detach(kind));
    for session in &sessions {
        until_held(session, "min_free_space");
    }
    for session in &sessions {
        harness.run(&["stop", session.id()]).exits(0);
        assert!(session.show().ended);
    }
    // The last output of each session, an eighth of the limit, and what was in their pipes.
    assert!(free(&disk) > MIB, "{} bytes are free", free(&disk));
    harness.nothing_is_left();
}

#[test]
fn copies_of_the_transcript_wait_for_room() {
    if !root_for("mounting a small disk") {
        return;
    }
    let disk = SmallDisk::mount("16m");
    let harness = harness_on(&disk, "8MiB");
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let transcript = session.show().transcript.unwrap();
    // A long conversation: the home of the agent has room for it.
    let line = json!({ "type": "much", "text": "x".repeat(1000) }).to_string() + "\n";
    let open = || std::fs::File::options().append(true).open(&transcript).ok();
    let mut file = patience::until("the turn is written", &[&harness.root().join("home")], open);
    file.write_all(line.repeat(10_000).as_bytes()).unwrap();
    let told = |message: &str| {
        harness.run(&["send", session.id(), message]).exits(0);
        harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    };
    told("say two");
    session.stop();
    assert!(free(&disk) > 7 * MIB, "{} bytes are free", free(&disk));

    disk.grow("64m");
    harness.run(&["resume", session.id(), "say three"]).exits(0);
    let copy = std::fs::read(session.path().join("checkpoints/1.copy")).unwrap();
    let now = std::fs::read(&transcript).unwrap();
    assert!(copy == now, "{} of {} bytes are copied", copy.len(), now.len());
}

#[test]
fn min_free_space_may_be_lowered_while_output_is_held() {
    if !root_for("mounting a small disk") {
        return;
    }
    let disk = SmallDisk::mount("16m");
    let harness = harness_on(&disk, "12MiB");
    let session = harness.detach(&["--", &harness.misbehave(), "print=9000000"]);
    until_held(&session, "min_free_space (12.0 MiB)");
    harness.configure("min_free_space = \"off\"\n");
    harness.run(&["wait", session.id()]).exits(0);
    assert!(std::fs::read(session.run_file("out")).unwrap() == pattern(9_000_000));
}

#[test]
fn a_line_without_end_is_not_read_again_by_every_command() {
    let harness = harness();
    harness.configure("output_limit = \"80MiB\"\n");
    let session = harness.detach(&["acp", "hello", "--", "cat", "/dev/zero"]);
    until_held(&session, "output_limit");
    let journal = || std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    session.until("the line is noted", || journal().contains("\"long_line\"").then_some(()));
    // How many bytes a `show` reads, as counted by the kernel.
    let mut looks = harness.command("sh");
    looks.args(["-c", "\"$1\" show \"$2\" && cat /proc/$$/io", "sh"]).arg(harness.program()).arg(session.id());
    let told = ostler_testkit::Started::new(looks, None).finish().exits(0).stdout;
    let read: u64 = told.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap();
    assert!(read < 64 * MIB, "{read} bytes were read");
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(0);
}

/// Starts a command where no file may become larger than this.
fn start_below_limit(harness: &Harness, bytes: u64, arguments: &[&str]) -> std::process::Output {
    let mut limited = harness.command("prlimit");
    limited.arg(format!("--fsize={bytes}")).arg(harness.program()).args(arguments).output().unwrap()
}

#[test]
fn where_files_may_hardly_grow_no_session_is_started() {
    let harness = harness();
    for bytes in [0, 1024, 64 * 1024, 16 * MIB - 1] {
        let refused = start_below_limit(&harness, bytes, &["run", "-d", "--", "true"]);
        let complaint = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(125), "with {bytes}: {complaint}");
        assert!(complaint.contains("raise the limit with ulimit -f"), "with {bytes}: {complaint}");
    }
    assert!(harness.ls().is_empty());
}

#[test]
fn output_that_a_limit_on_the_size_of_files_stops_is_said_to_be_paused_and_the_session_can_be_ended() {
    let harness = harness();
    let misbehave = harness.misbehave();
    let started = start_below_limit(&harness, 16 * MIB, &["run", "-d", "--", &misbehave, "print=30000000", "forever"]);
    let id = String::from_utf8(started.stdout).unwrap();
    let session = harness.session(id.trim_end());
    let alarm = until_held(&session, "limit on the size of files");
    assert!(alarm.contains("ulimit -f"), "{alarm}");
    replace_keeper(&session);
    assert_eq!(until_held(&session, "limit on the size of files"), alarm);
    let stopped = harness.run(&["stop", session.id()]).exits(0).stdout;
    assert!(stopped.contains("limit on the size of files"), "{stopped}");
    assert_eq!(length(&session), 16 * MIB);
}

#[test]
fn output_that_does_not_fit_below_such_a_limit_is_reported_as_lost_wherever_the_end_is_reported() {
    let harness = harness();
    let misbehave = harness.misbehave();
    let beyond = 100_000;
    let print = format!("print={}", 16 * MIB + beyond);
    let output = start_below_limit(&harness, 16 * MIB, &["run", "--name", "much", "--", &misbehave, &print]);
    assert_eq!((output.status.code(), output.stdout.len() as u64), (Some(0), 16 * MIB));
    let lost = format!("its last {beyond} bytes of output are lost");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains(&lost), "{told}");
    for words in [&["wait", "much"][..], &["show", "much"]] {
        let told = harness.run(words).exits(0).stdout;
        assert!(told.contains(&lost), "{told}");
    }
}
