//! SIGKILL the shell it was started from, the keeper, the holder, and each again once its replacement stands: the session
//! goes on, and nobody who looks ever sees anything else.

use crate::harness;
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Poller, Session, Started, Who};
use std::io::BufRead;

/// Starts a session from a shell that goes on afterwards.
fn from_a_shell<'a>(harness: &'a Harness, arguments: &str) -> (Started, Session<'a>) {
    let mut shell = harness.command("sh");
    shell.arg("-c").arg(format!("'{}' run -d {arguments}; exec sleep 600", harness.program().display()));
    let (shell, mut lines) = Started::with_lines(shell);
    let mut id = String::new();
    lines.read_line(&mut id).unwrap();
    (shell, harness.session(id.trim_end()))
}

/// Kills everyone in turn while a poller looks on.
fn survives(harness: &Harness, shell: &Started, session: &Session<'_>, state: Phase) {
    let agent = session.living(Who::Agent);
    session.living(Who::Keeper);
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
    for who in [Who::Keeper, Who::Holder, Who::Keeper, Who::Holder, Who::Holder, Who::Keeper] {
        let before = session.kill(who);
        right();
        session.replaced(who, &before);
        right();
    }
    let looks = poller.saw_nothing_wrong();
    assert!(looks > 100, "only {looks} looks");
    assert_eq!(session.recorded(Who::Agent), Some(agent));
}

fn stops_cleanly(harness: &Harness, session: &Session<'_>) {
    session.stop();
    harness.nothing_is_left();
}

#[test]
fn a_command_survives_the_death_of_everyone_around_it() {
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
    for who in [Who::Keeper, Who::Holder, Who::Keeper, Who::Holder] {
        let before = session.kill(who);
        session.replaced(who, &before);
    }
    std::fs::write(&flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    let printed = std::fs::read_to_string(session.run_file("out")).unwrap();
    assert_eq!(printed, "ready\r\nend\r\n");
}

#[test]
fn both_at_once_leave_the_agent_alive_and_the_next_command_finds_it_a_keeper() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    let alone = session.show();
    assert_eq!((alone.alive, alone.kept, alone.state.as_str()), (true, false, "running"));
    assert!(alone.alarm.is_some_and(|alarm| alarm.contains("holder and keeper are gone")));
    stops_cleanly(&harness, &session);
    assert_eq!(session.show().outcome().kind, "stopped");
}
