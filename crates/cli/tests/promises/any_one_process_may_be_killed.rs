//! SIGKILL for the shell that a session was started from, for the keeper, for the holder, and for each of their
//! replacements: the session continues, and no reader ever sees another state.

use crate::harness;
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Poller, ProcessKind, Session, Started};
use std::io::BufRead;

/// Starts a session from a shell that keeps running.
fn from_a_shell<'a>(harness: &'a Harness, arguments: &str) -> (Started, Session<'a>) {
    let mut shell = harness.command("sh");
    shell.arg("-c").arg(format!("'{}' run -d {arguments}; exec sleep 600", harness.program().display()));
    let (shell, mut lines) = Started::with_lines(shell);
    let mut id = String::new();
    lines.read_line(&mut id).unwrap();
    (shell, harness.session(id.trim_end()))
}

/// Kills the shell and both helpers in turn while a poller reads the state.
fn survives(harness: &Harness, shell: &Started, session: &Session<'_>, state: Phase) {
    let agent = session.living(ProcessKind::Agent);
    session.living(ProcessKind::Keeper);
    let poller = Poller::start(session, move |seen| seen.alive && seen.state == state);
    let right = || {
        let listed = harness.ls();
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].alive, listed[0].state.as_str()), (true, state.word()), "{listed:?}");
        assert_eq!(listed[0].pid, Some(agent.pid()));
    };
    right();
    shell.kill();
    right();
    for who in [
        ProcessKind::Keeper,
        ProcessKind::Holder,
        ProcessKind::Keeper,
        ProcessKind::Holder,
        ProcessKind::Holder,
        ProcessKind::Keeper,
    ] {
        let before = session.kill(who);
        right();
        session.replaced(who, &before);
        right();
    }
    let looks = poller.saw_nothing_wrong();
    assert!(looks > 100, "only {looks} looks");
    assert_eq!(session.recorded(ProcessKind::Agent), Some(agent));
}

fn stops_cleanly(harness: &Harness, session: &Session<'_>) {
    session.stop();
    harness.nothing_is_left();
}

#[test]
fn a_command_survives_the_kill_of_its_shell_and_its_helpers() {
    let harness = harness();
    let (shell, session) = from_a_shell(&harness, "-- sleep 600");
    survives(&harness, &shell, &session, Phase::Running);
    stops_cleanly(&harness, &session);
    assert_eq!(session.show().outcome().kind, "stopped");
}

#[test]
fn an_agent_survives_and_takes_the_next_message() {
    let harness = harness();
    let (shell, session) = from_a_shell(&harness, "--keep demo");
    survives(&harness, &shell, &session, Phase::Idle);
    harness.run(&["send", session.id(), "say still here"]).exits(0);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.turns, shown.last.as_deref()), ("idle", 1, Some("still here")));
    stops_cleanly(&harness, &session);
    assert_eq!(session.show().outcome().kind, "succeeded");
}

#[test]
fn a_terminal_survives_and_still_works() {
    let harness = harness();
    let (shell, session) = from_a_shell(&harness, "-t -- bash --norc --noprofile");
    survives(&harness, &shell, &session, Phase::Running);
    harness.run(&["send", session.id(), "echo $((6 * 7)) alive"]).exits(0);
    session.until_printed("42 alive");
    stops_cleanly(&harness, &session);
}

#[test]
fn a_program_sees_neither_hang_up_nor_end_of_input() {
    let harness = harness();
    let flag = harness.root().join("flag");
    let misbehave = harness.misbehave();
    let session =
        harness.detach(&["-t", "--", &misbehave, "say=ready", &format!("until={}", flag.display()), "say=end"]);
    session.until_printed("ready");
    for who in [ProcessKind::Keeper, ProcessKind::Holder, ProcessKind::Keeper, ProcessKind::Holder] {
        let before = session.kill(who);
        session.replaced(who, &before);
    }
    std::fs::write(&flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    let printed = std::fs::read_to_string(session.run_file("out")).unwrap();
    assert_eq!(printed, "ready\r\nend\r\n");
}

#[test]
fn an_agent_survives_the_kill_of_both_helpers_and_the_next_command_starts_a_keeper() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    let alone = session.show();
    assert_eq!((alone.alive, alone.kept, alone.state.as_str()), (true, false, "running"));
    assert!(alone.alarm.is_some_and(|alarm| alarm.contains("holder and keeper are gone")));
    stops_cleanly(&harness, &session);
    assert_eq!(session.show().outcome().kind, "stopped");
}
