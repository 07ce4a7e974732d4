//! `ostler run` inside a kept session starts a session of its own, which outlives the `stop` of the outer one.

use crate::{harness, root_for};
use ostler_testkit::{Harness, ProcessKind, Session};

/// The program of the outer session starts the inner session and keeps running.
fn script(harness: &Harness, inner: &str) -> String {
    let program = harness.program().display();
    format!("'{program}' run -d {inner} >inner.tmp && mv inner.tmp inner && exec sleep 600")
}

fn nested<'a>(harness: &'a Harness, outer: &[&str], inner: &str) -> (Session<'a>, Session<'a>) {
    let outer = harness.detach(&[outer, &["--", "sh", "-c", &script(harness, inner)]].concat());
    (outer, inside(harness, &outer))
}

fn inside<'a>(harness: &'a Harness, outer: &Session<'_>) -> Session<'a> {
    let file = harness.root().join("home/inner");
    let id = outer.until("the inner session has started", || std::fs::read_to_string(&file).ok());
    std::fs::remove_file(file).unwrap();
    harness.session(id.trim_end())
}

#[test]
fn an_inner_session_survives_the_stop_of_the_outer_one() {
    let harness = harness();
    for (mode, how) in [(&[][..], "--grace"), (&["-t"][..], "--grace"), (&[][..], "--kill")] {
        let (outer, inner) = nested(&harness, mode, "-- sleep 600");
        let agent = inner.living(ProcessKind::Agent);
        inner.until_look("it is kept", |view| view.kept);
        assert_eq!(inner.look().parent.map(|id| id.to_string()).as_deref(), Some(outer.id()));
        let arguments = if how == "--kill" { vec!["stop", how] } else { vec!["stop", how, "2s"] };
        harness.run(&[&arguments[..], &[outer.id()]].concat()).exits(0);
        let shown = inner.show();
        assert_eq!((shown.alive, shown.kept, shown.state.as_str()), (true, true, "running"));
        assert_eq!(shown.pid, Some(agent.pid()));
        for who in [ProcessKind::Keeper, ProcessKind::Holder] {
            let before = inner.kill(who);
            inner.replaced(who, &before);
        }
        inner.stop();
        harness.nothing_is_left();
    }
}

#[test]
fn an_inner_session_survives_the_stop_of_the_outer_one_without_cgroups() {
    if !root_for("a mount namespace without cgroups") {
        return;
    }
    let harness = harness();
    let outer = harness.detach_without_cgroup(&["--", "sh", "-c", &script(&harness, "-- sleep 600")]);
    let inner = inside(&harness, &outer);
    let agent = inner.living(ProcessKind::Agent);
    // Replacements of its helpers are recognised as well.
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let before = inner.kill(who);
        inner.replaced(who, &before);
    }
    outer.stop();
    let shown = inner.show();
    assert_eq!((shown.alive, shown.kept, shown.pid), (true, true, Some(agent.pid())));
    inner.stop();
    harness.nothing_is_left();
}

#[test]
fn an_inner_terminal_outlives_the_outer_holder_and_keeper() {
    let harness = harness();
    let (outer, inner) = nested(&harness, &["-t"], "-t -- bash --norc");
    for who in [ProcessKind::Holder, ProcessKind::Keeper] {
        outer.kill(who);
    }
    // When the keeper dies before there is another holder, the terminal is closed, and the outer program exits.
    outer.kill_if_alive(ProcessKind::Agent);
    harness.run(&["wait", outer.id()]);
    harness.run(&["send", inner.id(), "echo $((40 + 2)) inside"]).exits(0);
    inner.until_printed("42 inside");
}
