//! Files that exist only for speed may be deleted, damaged or old: every command still prints the same.

use crate::harness;
use ostler_core::view::Phase;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::Life;
use ostler_testkit::{Harness, ProcessKind, Session, Shown, patience};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Installs a fake Claude Code that prints much in one turn once the file `begin` exists, and ends the turn once `flag`
/// exists. Returns how many bytes it prints before the end.
fn fake_claude(harness: &mut Harness, begin: &Path, flag: &Path) -> u64 {
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let text = "x".repeat(900);
    let said =
        format!(r#"{{"type":"assistant","uuid":"u","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#);
    let end =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"at last","usage":{"output_tokens":7}}"#;
    let lines = format!("i=0; while [ $i -lt 200 ]; do echo '{said}'; i=$((i+1)); done");
    let waits = |file: &Path| format!("'{}' until='{}'", harness.misbehave(), file.display());
    let (begins, ends, last) = (waits(begin), waits(flag), harness.misbehave());
    let script = format!("#!/bin/sh\nread -r message\n{begins}\n{lines}\n{ends}\necho '{end}'\nexec '{last}' read\n");
    harness.write_program(&folder.join("claude"), &script);
    harness.set("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    200 * (said.len() as u64 + 1)
}

fn shown(session: &Session<'_>) -> Shown {
    Shown { quiet_s: 0, ..session.show() }
}

#[test]
fn the_progress_file_may_be_damaged_missing_or_old() {
    let mut harness = harness();
    let flag = harness.root().join("flag");
    std::fs::write(harness.root().join("begin"), "").unwrap();
    let begin = harness.root().join("begin");
    let all = fake_claude(&mut harness, &begin, &flag);
    let session = harness.detach(&["--keep", "claude", "go"]);
    let file = session.path().join("progress.json");
    let written = || std::fs::read(&file).ok();
    let size = || std::fs::metadata(session.run_file("out")).map_or(0, |out| out.len());
    patience::until("all output is there, and progress.json", &[&session.path()], || {
        (size() == all).then(written).flatten()
    });
    let right = shown(&session);
    assert_eq!((right.state.as_str(), right.turns), ("working", 0));
    // The view is the same, whatever is done to the file.
    let whole = written().unwrap();
    let damaged = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        bytes
    };
    for bytes in [Vec::new(), whole[..whole.len() / 2].to_vec(), damaged(3), damaged(whole.len() / 2), damaged(40)] {
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(shown(&session), right);
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(shown(&session), right);
    // An old file, which lacks what came since.
    std::fs::write(&flag, "").unwrap();
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let ended = shown(&session);
    assert_eq!((ended.state.as_str(), ended.turns), ("idle", 1));
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(shown(&session), ended);
    // The next keeper begins with the old file, too.
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    session.until_look("the same", |view| view.kept && view.turns == 1);
    // The fake agent writes no transcript, so its turn cannot be proven: exit code 8.
    harness.run(&["stop", "--grace", "1s", session.id()]).exits(8);
}

/// A folder in which a file stops or kills a process at a point of its work.
fn pauses(harness: &mut Harness) -> PathBuf {
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(pause_points::VARIABLE, &pauses);
    pauses
}

#[test]
fn a_keeper_may_be_killed_while_it_writes_its_progress() {
    for point in [Point::ReplacementWritten, Point::ReplacementNamed] {
        let mut harness = harness();
        let pauses = pauses(&mut harness);
        let (begin, end) = (harness.root().join("begin"), harness.root().join("end"));
        fake_claude(&mut harness, &begin, &end);
        let session = harness.detach(&["--keep", "claude", "go"]);
        session.until_look("it works", |view| view.kept && view.status == "working");
        let before = session.living(ProcessKind::Keeper);
        // Between writing keeper.json and its end, a keeper replaces no other file than progress.json.
        let token = pauses.join(format!("{}.kill", pause_points::token(Role::Keeper, point)));
        std::fs::write(&token, "1").unwrap();
        std::fs::write(&begin, "").unwrap();
        session.replaced(ProcessKind::Keeper, &before);
        assert!(!token.exists(), "no keeper was killed at {point:?}");
        assert_eq!((shown(&session).state.as_str(), shown(&session).turns), ("working", 0));
        std::fs::write(&end, "").unwrap();
        harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
        assert_eq!((shown(&session).state.as_str(), shown(&session).turns), ("idle", 1));
        // The fake agent writes no transcript, so its turn cannot be proven: exit code 8.
        harness.run(&["stop", "--grace", "1s", session.id()]).exits(8);
    }
}

#[test]
fn a_list_may_be_killed_while_it_writes_the_index_of_ended_sessions() {
    let mut harness = harness();
    let pauses = pauses(&mut harness);
    harness.has_own_clock();
    for number in 0..MANY {
        harness.run(&["run", "--name", &format!("old {number}"), "--", "true"]).exits(0);
    }
    harness.shift_clock(2 * 24 * 3600);
    for point in [Point::ReplacementWritten, Point::ReplacementNamed] {
        let token = pauses.join(format!("{}.kill", pause_points::token(Role::Client, point)));
        std::fs::write(&token, "1").unwrap();
        assert_eq!(harness.run(&["ls"]).code, None, "killed at {point:?}");
        assert!(!token.exists());
        let footer = harness.run(&["ls"]).exits(0).stdout;
        assert!(footer.contains("40 ended earlier"), "{footer}");
        assert_eq!(harness.run(&["show", "--json", "old 9"]).exits(0).json()["name"], "old 9");
        std::fs::remove_file(harness.home().join("ended.index")).unwrap();
    }
}

/// So many ended sessions that a list writes the index.
const MANY: usize = 40;

#[test]
fn the_index_of_ended_sessions_may_be_damaged_or_old() {
    let mut harness = harness();
    harness.has_own_clock();
    for number in 0..MANY {
        harness.run(&["run", "--name", &format!("old {number}"), "--", "true"]).exits(0);
    }
    harness.run(&["run", "--name", "talk", "demo", "say one"]).exits(0);
    harness.shift_clock(2 * 24 * 3600);
    let index = harness.home().join("ended.index");
    let listed = || -> Vec<String> { harness.ls().into_iter().map(|shown| shown.name.unwrap_or_default()).collect() };
    assert_eq!(listed(), [""; 0]);
    assert!(index.exists());
    let footer = harness.run(&["ls"]).exits(0).stdout;
    assert!(footer.contains("41 ended earlier"), "{footer}");
    let kept = std::fs::read(&index).unwrap();

    // A session that was resumed is shown, whatever the index says.
    let id = harness.run(&["resume", "-d", "--keep", "talk", "say two"]).exits(0).stdout.trim().to_owned();
    assert_eq!(listed(), ["talk"]);
    // Also with an old copy of the index, and without the notes of what was resumed.
    std::fs::write(&index, &kept).unwrap();
    assert_eq!(listed(), ["talk"]);
    std::fs::remove_dir_all(harness.home().join("woken")).unwrap();
    assert_eq!(listed(), ["talk"]);
    std::fs::write(&index, &kept).unwrap();
    assert_eq!(listed(), ["talk"]);
    harness.run(&["wait", "--until", "turn", &id]).exits(0);
    harness.run(&["stop", &id]).exits(0);

    // A session is found by its current name.
    let session = harness.run(&["show", "--json", "old 7"]).exits(0).json()["id"].as_str().unwrap().to_owned();
    harness.run(&["rename", "old 7", "new name"]).exits(0);
    assert_eq!(harness.run(&["show", "--json", "new name"]).exits(0).json()["id"], session);
    harness.run(&["show", "old 7"]).exits(3);
    // Also when the index still has the old name.
    std::fs::write(&index, &kept).unwrap();
    harness.run(&["show", "old 7"]).exits(3);
    harness.run(&["purge", "old 8"]).exits(0);
    harness.run(&["show", "old 8"]).exits(3);
    assert_eq!(harness.run(&["show", "--json", "@last"]).exits(0).json()["name"], "talk");

    let first_form =
        b"\nq5b7k2mz 1763280000 1 1763280000000000000 1763270000000000000 - a name\t0123456789abcdef\n".to_vec();
    for bytes in [Vec::new(), kept[..kept.len() / 2].to_vec(), vec![b'x'; 4096], first_form] {
        std::fs::write(&index, bytes).unwrap();
        assert_eq!(listed(), ["talk"]);
        assert_eq!(harness.run(&["show", "--json", "old 9"]).exits(0).json()["name"], "old 9");
    }
}

/// What `ls` prints for each session, and what `show` prints for the same fields.
fn listed_and_shown(harness: &Harness, sessions: &[Session<'_>]) -> (Vec<Value>, Vec<Value>) {
    let without_time = |mut value: Value| {
        // Time passes between the two commands.
        value.as_object_mut().unwrap().remove("quiet_s");
        value
    };
    let all = harness.run(&["ls", "--json"]).exits(0).json();
    let listed = |session: &Session<'_>| {
        let found = all.as_array().unwrap().iter().find(|one| one["id"] == session.id());
        without_time(found.unwrap().clone())
    };
    let listed: Vec<Value> = sessions.iter().map(listed).collect();
    let shown = |(session, listed): (&Session<'_>, &Value)| {
        let mut shown = without_time(harness.run(&["show", "--json", session.id()]).exits(0).json());
        // `show` has more fields than `ls`.
        shown.as_object_mut().unwrap().retain(|name, _| listed.get(name).is_some());
        shown
    };
    let shown = sessions.iter().zip(&listed).map(shown).collect();
    (listed, shown)
}

/// Many running sessions of all kinds that no longer change, with an index of them.
fn many_running(harness: &Harness) -> Vec<Session<'_>> {
    let mut sessions = vec![
        harness.detach(&["--", "sh", "-c", "echo hello; exec sleep 600"]),
        harness.detach(&["-t", "--", "sh", "-c", "echo hello; exec sleep 600"]),
        harness.detach(&["--keep", "demo", "say hello"]),
        harness.detach(&["--keep", "demo", "ask May I?"]),
    ];
    sessions.extend((0..16).map(|_| harness.detach(&["--", "sleep", "600"])));
    for (number, session) in sessions.iter().enumerate() {
        session.until_look("its output is complete", |view| match number {
            0 | 1 => view.kept && view.last.as_deref() == Some("hello"),
            2 => view.kept && view.turns == 1 && view.state == Phase::Idle,
            3 => view.kept && view.asking.is_some(),
            _ => view.kept,
        });
    }
    // A session that has just changed is not put into the index.
    harness.shift_clock(60);
    harness.run(&["ls"]).exits(0);
    assert!(harness.home().join("live.index").exists());
    sessions
}

#[test]
fn the_index_of_running_sessions_may_be_damaged_or_old() {
    let mut harness = harness();
    harness.has_own_clock();
    let sessions = many_running(&harness);
    let agree = |what: &str| {
        let (listed, shown) = listed_and_shown(&harness, &sessions);
        assert_eq!(listed, shown, "{what}");
        listed
    };
    agree("it is new");
    let index = harness.home().join("live.index");
    let kept = std::fs::read(&index).unwrap();
    let other_build = {
        let mut bytes = kept.clone();
        // In the header.
        bytes[20] ^= 1;
        bytes
    };
    let changed = |at: usize| {
        let mut bytes = kept.clone();
        bytes[at] ^= 0x20;
        bytes
    };
    let half = kept[..kept.len() / 2].to_vec();
    for bytes in [Vec::new(), half, other_build, vec![b'x'; 4096], changed(kept.len() / 2), changed(kept.len() / 3)] {
        std::fs::write(&index, bytes).unwrap();
        agree("it is damaged");
    }
    // An old index, whatever has happened since.
    let (command, talk, asks) = (&sessions[0], &sessions[2], &sessions[3]);
    let old = |what: &str| {
        std::fs::write(&index, &kept).unwrap();
        agree(what)
    };
    harness.run(&["rename", command.id(), "another name"]).exits(0);
    assert_eq!(old("renamed")[0]["name"], "another name");
    harness.run(&["send", talk.id(), "say more"]).exits(0);
    harness.run(&["wait", "--until", "turn", talk.id()]).exits(0);
    talk.until_look("its turn is saved", |view| view.turns == 2 && view.state == Phase::Idle);
    assert_eq!((&old("a turn")[2]["last"], &old("a turn")[2]["turns"]), (&"more".into(), &2.into()));
    harness.run(&["answer", asks.id(), "--deny"]).exits(0);
    harness.run(&["wait", "--until", "turn", asks.id()]).exits(0);
    assert_eq!(old("answered")[3]["asking"], Value::Null);

    let stopped = sessions[4].signal(ProcessKind::Keeper, Signal::STOP);
    patience::until("it is stopped", &[], || (stopped.look().ok()? == Life::Stopped).then_some(()));
    let alarm = old("a keeper that is stopped")[4]["alarm"].to_string();
    assert!(alarm.contains("are stopped"), "{alarm}");
    sessions[4].signal(ProcessKind::Keeper, Signal::CONT);
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let before = sessions[5].kill(who);
        sessions[5].replaced(who, &before);
        sessions[5].until_look("both helpers", |view| view.kept && view.holder_pid.is_some());
        old("a helper was replaced");
    }
    sessions[6].orphan();
    assert_eq!(old("no helper is left")[6]["kept"], false);
    sessions[6].kill_if_alive(ProcessKind::Agent);
    assert_eq!(old("nothing is left")[6]["status"], "lost");
    sessions[7].kill(ProcessKind::Agent);
    harness.run(&["wait", sessions[7].id()]).exits(1);
    assert_eq!(old("its agent was killed")[7]["ended"], true);
    harness.run(&["stop", sessions[8].id()]).exits(0);
    assert_eq!(old("stopped")[8]["status"], "stopped");
    // An agent exits while its holder is stopped and cannot report it: the keeper has to change a file, or the index
    // would still seem to be current.
    let stopped = sessions[10].signal(ProcessKind::Holder, Signal::STOP);
    patience::until("it is stopped", &[], || (stopped.look().ok()? == Life::Stopped).then_some(()));
    sessions[10].kill(ProcessKind::Agent);
    patience::until("its keeper has noticed", &[], || {
        std::fs::write(&index, &kept).unwrap();
        let all = harness.run(&["ls", "--json"]).exits(0).json();
        let found = all.as_array()?.iter().find(|one| one["id"] == sessions[10].id())?;
        (found["alive"] == false).then_some(())
    });
    old("its agent was killed while its holder was stopped");
    sessions[10].signal(ProcessKind::Holder, Signal::CONT);
    harness.run(&["wait", sessions[10].id()]).exits(1);
    // `wait` reads the index, too.
    std::fs::write(&index, &kept).unwrap();
    let mut all = vec!["wait", "--any"];
    all.extend(sessions.iter().map(Session::id));
    harness.run(&all).exits(5);
    // And `doctor`.
    std::fs::write(&index, &kept).unwrap();
    sessions[9].orphan();
    let words = harness.run(&["doctor"]).stdout;
    assert!(words.contains(sessions[9].id()), "{words}");
    harness.run(&["stop", "--all"]);
}

#[test]
fn a_list_may_be_killed_while_it_writes_the_index_of_running_sessions() {
    let mut harness = harness();
    let pauses = pauses(&mut harness);
    harness.has_own_clock();
    let sessions = many_running(&harness);
    let index = harness.home().join("live.index");
    for (point, written) in [(Point::ReplacementWritten, false), (Point::ReplacementNamed, true)] {
        std::fs::remove_file(&index).unwrap();
        let token = pauses.join(format!("{}.kill", pause_points::token(Role::Client, point)));
        std::fs::write(&token, "1").unwrap();
        assert_eq!(harness.run(&["ls"]).code, None, "killed at {point:?}");
        assert_eq!((token.exists(), index.exists()), (false, written));
        for _ in 0..2 {
            let (listed, shown) = listed_and_shown(&harness, &sessions);
            assert_eq!(listed, shown);
        }
        assert!(index.exists());
    }
    harness.run(&["stop", "--all"]);
}
