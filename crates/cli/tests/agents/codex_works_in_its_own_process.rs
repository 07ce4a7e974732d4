//! By default codex in a terminal does its work in a server that all its terminals share and that belongs to the user.
//! ostler starts codex so that it works in its own process. Only then does `stop` end the work, and only then does the
//! end of one session leave the others alone.

use crate::fixture::Fixture;
use crate::person::Person;
use crate::terminals_show_their_screen::ready;
use ostler_mock_llm::agents::Agent;
use ostler_sys::process::{Identity, Pidfd, command_line};
use ostler_testkit::{Session, patience};
use rustix::process::Signal;
use std::process::{Child, Stdio};

#[test]
fn stop_ends_the_work_although_other_codexes_and_their_shared_server_run() {
    let Some(fixture) = Fixture::new(Agent::Codex) else { return };
    Agent::Codex.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();

    // Two sessions do not depend on each other. The second starts when the first has worked: two codexes that create
    // the databases of an empty home at the same time break them.
    let first = fixture.detach(&["-t"], None);
    let mut at_first = attaches_at_the_prompt(&fixture, &first);
    fixture.harness.run(&["send", first.id(), "say begun"]).exits(0);
    at_first.sees("• begun");
    let second = fixture.detach(&["-t"], None);
    attaches_at_the_prompt(&fixture, &second);
    ends_its_tool(&fixture, &second);
    fixture.harness.run(&["send", first.id(), "say still here"]).exits(0);
    at_first.sees("• still here");
    let conversation = first.until("its conversation is known", || first.look().native_id);
    let shown = fixture.harness.run(&["show", first.id()]).exits(0);
    assert!(shown.stdout.contains("not in the shared background server of codex"), "{shown:?}");
    first.stop();
    assert_eq!(first.show().outcome().saved, "verified");

    // A session does not depend on a server that runs already, and the server keeps running after the session.
    let server = SharedServer::starts(&fixture);
    let third = fixture.detach(&["-t"], None);
    attaches_at_the_prompt(&fixture, &third);
    ends_its_tool(&fixture, &third);
    let asked = fixture.server.requests().len();
    let known = third.show().native_id;
    assert!(known.is_some(), "its conversation is known");
    fixture.harness.run(&["resume", "-d", third.id()]).exits(0);
    let mut at_third = attaches_at_the_prompt(&fixture, &third);
    fixture.harness.run(&["send", third.id(), "say resumed"]).exits(0);
    at_third.sees("• resumed");
    assert_eq!(fixture.server.requests()[asked..].iter().filter(|request| request.turn().is_some()).count(), 1);
    third.stop();
    assert_eq!(third.show().native_id, known);

    // A conversation that a person has open in the server stays there: ostler never ends the server for it.
    let (codex, work) = (Agent::Codex.program().unwrap(), fixture.work());
    let words = [codex[0].to_str().unwrap(), "resume", &conversation, "--cd", work.to_str().unwrap()];
    let mut person = Person::runs_program(&fixture.harness, (40, 120), &words);
    person.sees("• still here");
    for takeover in [&[][..], &["--takeover"]] {
        let refused = fixture.harness.run(&[&["resume", "-d", first.id()], takeover].concat()).exits(7);
        assert!(refused.complaint().contains(&format!("process {} ", server.process.pid())), "{refused:?}");
        assert!(refused.complaint().contains("codex app-server daemon stop"), "{refused:?}");
    }
    assert!(Pidfd::open(&server.process).unwrap().is_some(), "the server is alive");
    drop(person);
    server.ends();
    fixture.harness.nothing_is_left();
    fixture.proves("terminal: stop is true although other terminals share a server");
}

/// Attaches, and waits until the prompt is on the screen.
fn attaches_at_the_prompt(fixture: &Fixture, session: &Session<'_>) -> Person {
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees(ready(Agent::Codex));
    person
}

/// A tool that would run for ever ends with the session.
fn ends_its_tool(fixture: &Fixture, session: &Session<'_>) {
    let name = format!("gate-{}", session.id());
    let script = fixture.tool(&format!("mkfifo {name}; cat {name}"));
    fixture.harness.run(&["send", session.id(), &script]).exits(0);
    let tool = patience::until("the tool runs", &[&fixture.work()], || {
        let view = session.look();
        assert!(!view.ended, "it ended: {view:?}; {}", std::fs::read_to_string(session.run_file("out")).unwrap());
        let is_tool = |process: &Identity| command_line(process.pid()).join(" ") == format!("cat {name}");
        fixture.harness.alive().into_iter().find(is_tool)
    });
    session.stop();
    assert!(Pidfd::open(&tool).unwrap().is_none_or(|tool| tool.has_exited().unwrap()), "the tool is still alive");
}

/// The server that codex's terminals share, as a user's own codex leaves it running.
struct SharedServer {
    child: Child,
    process: Identity,
}

impl SharedServer {
    fn starts(fixture: &Fixture) -> SharedServer {
        let program = Agent::Codex.program().unwrap();
        let mut command = fixture.harness.command(&program[0]);
        // The server that codex starts by itself is a copy of its package, half a gigabyte, that also looks for
        // updates.
        command.args(["app-server", "--listen", "unix://"]).current_dir(fixture.work());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let process = Identity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        let home = fixture.harness.root().join("home/.codex");
        let socket = home.join("app-server-control/app-server-control.sock");
        patience::until("the server listens", &[&home], || std::os::unix::net::UnixStream::connect(&socket).ok());
        SharedServer { child, process }
    }

    fn ends(mut self) {
        Pidfd::open(&self.process).unwrap().unwrap().signal(Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}
