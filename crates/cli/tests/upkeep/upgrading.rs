//! A newer binary replaces the keepers of running sessions, and their agents are not affected.

use crate::harness;
use ostler_testkit::{Poller, ProcessKind, Session};
use std::path::PathBuf;

fn binary_of_keeper(session: &Session<'_>) -> PathBuf {
    std::fs::read_link(format!("/proc/{}/exe", session.living(ProcessKind::Keeper).pid())).unwrap()
}

#[test]
fn every_keeper_is_replaced_by_one_of_the_new_binary_and_no_agent_is_affected() {
    let harness = harness();
    let sessions = [
        harness.detach(&["--", "sleep", "600"]),
        harness.detach(&["-t", "--", "sh"]),
        harness.detach(&["--keep", "demo"]),
    ];
    let before = sessions
        .map(|session| [ProcessKind::Agent, ProcessKind::Holder, ProcessKind::Keeper].map(|who| session.living(who)));
    let pollers = sessions.map(|session| Poller::start(&session, |seen| seen.alive));
    let newer = harness.copied_program("ostler-newer");
    let output = harness.command(&newer).arg("upgrade").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    for (session, [agent, holder, keeper]) in sessions.iter().zip(&before) {
        let now = session.living(ProcessKind::Keeper);
        assert_ne!(&now, keeper);
        assert_eq!((&session.living(ProcessKind::Agent), &session.living(ProcessKind::Holder)), (agent, holder));
        assert_eq!(binary_of_keeper(session), newer);
        let line = format!("{}: {v} → {v} (pid {})\n", session.id(), now.pid(), v = env!("CARGO_PKG_VERSION"));
        assert!(said.contains(&line), "{said}");
    }
    for poller in pollers {
        poller.saw_nothing_wrong();
    }
    // The next replacement keeper also runs the new binary.
    let keeper = sessions[0].kill(ProcessKind::Keeper);
    sessions[0].replaced(ProcessKind::Keeper, &keeper);
    assert_eq!(binary_of_keeper(&sessions[0]), newer);
    // The sessions still work.
    harness.run(&["send", sessions[2].id(), "hello"]).exits(0);
    harness.run(&["wait", "--until", "turn", sessions[2].id()]).exits(0);
    assert_eq!(sessions[2].show().turns, 1);
    harness.run(&["send", sessions[1].id(), "echo still $((40 + 2))"]).exits(0);
    sessions[1].until_printed("still 42");
    for session in &sessions {
        session.stop();
    }
}

#[test]
fn a_session_without_helpers_gets_them() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    harness.run(&["upgrade"]).exits(0);
    assert!(session.show().kept);
    session.stop();
}

#[test]
fn output_continues_byte_for_byte_over_many_upgrades() {
    let harness = harness();
    let enough = harness.root().join("enough");
    let script = format!("i=0; until [ -e {} ]; do seq $i $((i + 999)); i=$((i + 1000)); done", enough.display());
    let session = harness.detach(&["--", "sh", "-c", &script]);
    for _ in 0..10 {
        harness.run(&["upgrade", session.id()]).exits(0);
    }
    std::fs::write(&enough, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    let output = std::fs::read_to_string(session.run_file("out")).unwrap();
    let wrong = output.lines().enumerate().find(|(index, line)| *line != index.to_string());
    assert_eq!(wrong, None, "of {} bytes", output.len());
    assert!(output.ends_with("999\n"));
}

#[test]
fn an_ended_session_gets_no_keeper() {
    let harness = harness();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(harness.run(&["upgrade"]).exits(0).stdout, "");
    assert!(harness.run(&["upgrade", session.id()]).exits(0).stdout.contains("has ended"));
    harness.run(&["upgrade", "nobody"]).exits(3);
}
