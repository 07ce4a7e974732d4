//! A person starts or follows a long turn over a connection that is cut: the turn continues to its end, and the person
//! who comes back finds all of it. The client at the far end exits with the connection, because it is in the login
//! session of the connection, whose terminal is gone. The processes of the ostler session are not in that login
//! session.

use crate::fixture::Fixture;
use crate::person::Person;
use crate::sshd::Sshd;
use ostler_sys::process::{Identity, command_line};
use ostler_testkit::{Session, patience};
use rustix::process::Signal;

/// What is on the screen at the end.
const LAST: &str = "word4 word5 word6";

const GATES: [&str; 3] = ["started", "attached", "terminal"];

/// What happens to the connection.
#[derive(Clone, Copy)]
enum Cut {
    /// The person's ssh is killed.
    ClientKilled,
    /// The server's process for this connection is killed.
    ServerKilled,
    /// Nothing more comes from the person's side, and the server disconnects.
    GoesDead,
    /// The person closes the window in which ssh runs.
    WindowClosed,
}

impl Cut {
    fn happens_to(self, people: &mut [Person], sshd: &Sshd) {
        match self {
            Cut::ClientKilled => people.iter().for_each(|person| person.signals(Signal::KILL)),
            Cut::ServerKilled => sshd.kills_connections(),
            Cut::GoesDead => people.iter().for_each(|person| person.signals(Signal::STOP)),
            Cut::WindowClosed => people.iter_mut().for_each(Person::closes_the_terminal),
        }
    }
}

/// A long turn: its tool ends when the test writes into the pipe of this name.
fn long(fixture: &Fixture, gate: &str) -> String {
    format!("{} ; stream 6 1", fixture.tool(&format!("mkfifo {gate}; cat {gate}")))
}

/// The clients at the far end, recognised by their command lines.
fn clients(fixture: &Fixture) -> Vec<Identity> {
    let is_client = |process: &Identity| {
        let words = command_line(process.pid());
        let ours = words.first().is_some_and(|program| *program == fixture.harness.program().to_string_lossy());
        ours && words.get(1).is_some_and(|word| word == "run" || word == "attach")
    };
    fixture.harness.alive().into_iter().filter(is_client).collect()
}

/// Three people at work: one follows the turn that they started, one is attached to another session, and one to a
/// terminal.
struct Work<'a> {
    fixture: &'a Fixture,
    started: Session<'a>,
    attached: Session<'a>,
    terminal: Session<'a>,
    people: Vec<Person>,
    clients: Vec<Identity>,
}

impl<'a> Work<'a> {
    fn begins(fixture: &'a Fixture, over_the_line: impl Fn(&[&str]) -> Person) -> Work<'a> {
        let terminal = fixture.detach(&["-t"], None);
        let mut on_screen = over_the_line(&["attach", terminal.id()]);
        on_screen.sees("for shortcuts");
        let attached = fixture.detach(&[], Some(&long(fixture, "attached")));
        let mut in_chat = over_the_line(&["attach", attached.id()]);
        let words = fixture.words(&[], Some(&long(fixture, "started")));
        let mut follows = over_the_line(&words.iter().map(String::as_str).collect::<Vec<_>>());
        fixture.harness.run(&["send", terminal.id(), &long(fixture, "terminal")]).exits(0);
        for (person, gate) in [&mut follows, &mut in_chat, &mut on_screen].into_iter().zip(GATES) {
            let tool = format!("cat {gate}");
            fixture.process(&tool);
            person.sees(&tool);
        }
        let clients = clients(fixture);
        // Each `attach` has a copy, which restores the terminal if the client is killed.
        assert_eq!(clients.len(), 5, "three clients at the far end, two of them with a copy");
        Work {
            fixture,
            started: fixture.last(),
            attached,
            terminal,
            people: vec![on_screen, in_chat, follows],
            clients,
        }
    }

    /// Waits until the clients at the far end have exited.
    fn clients_have_exited(&self) {
        self.clients.iter().for_each(patience::ended);
    }

    /// Ends the tools, so that the turns continue.
    fn ends_the_tools(&self) {
        for gate in GATES {
            std::fs::write(self.fixture.work().join(gate), "").unwrap();
        }
    }

    /// The turns of the sessions have ended, and all of their text is found.
    fn proves_whole(self) {
        let Work { fixture, started, attached, terminal, people, .. } = self;
        let harness = &fixture.harness;
        drop(people);
        for session in [&started, &attached] {
            harness.run(&["wait", session.id()]).exits(0);
            let shown = session.show();
            let outcome = shown.outcome();
            assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("succeeded", "verified"), "{outcome:?}");
            Person::runs(harness, (40, 120), &["attach", session.id()]).sees(LAST);
            harness.run(&["resume", session.id(), "say next"]).exits(0);
            assert!(fixture.last_request().contains(LAST), "the resumed model has been told all of it");
        }
        harness.run(&["wait", terminal.id(), "--until", "turn"]).exits(0);
        Person::runs(harness, (40, 120), &["attach", terminal.id()]).sees(LAST);
        terminal.stop();
        assert_eq!(terminal.show().outcome().saved, "verified");
        harness.run(&["resume", "-d", terminal.id()]).exits(0);
        Person::runs(harness, (40, 120), &["attach", terminal.id()]).sees(LAST);
        harness.run(&["send", terminal.id(), "say next"]).exits(0);
        harness.run(&["wait", terminal.id(), "--until", "turn"]).exits(0);
        assert!(fixture.last_request().contains(LAST), "the resumed model has been told all of it");
        terminal.stop();
        harness.nothing_is_left();
    }
}

fn cut_over_ssh(cut: Cut) {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let Some(sshd) = Sshd::start(&fixture.harness) else { return };
    let mut work = Work::begins(&fixture, |words| sshd.runs(&fixture.harness, words));
    cut.happens_to(&mut work.people, &sshd);
    match cut {
        Cut::ClientKilled | Cut::ServerKilled | Cut::WindowClosed => {
            work.clients_have_exited();
            work.ends_the_tools();
        }
        // A server that has output to send does not disconnect, so the turns end first.
        Cut::GoesDead => {
            work.ends_the_tools();
            work.clients_have_exited();
        }
    }
    work.proves_whole();
    fixture.proves("ssh cut in the middle of a turn: it ends, and all of it is found");
}

#[test]
fn a_turn_outlives_an_ssh_that_is_killed() {
    cut_over_ssh(Cut::ClientKilled);
}

#[test]
fn a_turn_outlives_an_sshd_that_is_killed() {
    cut_over_ssh(Cut::ServerKilled);
}

#[test]
fn a_turn_outlives_a_line_that_goes_dead() {
    cut_over_ssh(Cut::GoesDead);
}

#[test]
fn a_turn_outlives_a_window_with_ssh_that_is_closed() {
    cut_over_ssh(Cut::WindowClosed);
}

#[test]
fn a_turn_outlives_the_terminal_of_its_client() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let mut work = Work::begins(&fixture, |words| Person::runs(&fixture.harness, (40, 120), words));
    work.people.iter_mut().for_each(Person::closes_the_terminal);
    work.clients_have_exited();
    work.ends_the_tools();
    work.proves_whole();
}
