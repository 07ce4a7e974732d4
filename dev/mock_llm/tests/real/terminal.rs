//! The agents in a terminal, each started with a prompt: they begin with it without a dialog, and leave no process
//! behind.

use crate::fixture::Fixture;
use crate::running::{LIMIT, ends_within};
use ostler_mock_llm::Ending;
use ostler_mock_llm::agents::Agent;
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::pty::Pty;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// An agent in a terminal of its own, whose screen is not looked at.
pub struct Seated {
    child: Child,
    reader: Option<JoinHandle<()>>,
}

impl Seated {
    pub fn new(mut command: Command) -> Seated {
        let Pty { ours, theirs } = Pty::open(40, 120).unwrap();
        let side = || Stdio::from(theirs.try_clone().unwrap());
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        // The command holds copies of the program's side of the terminal. Without these copies, the terminal closes
        // when the program exits.
        drop((command, theirs));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 16384];
            loop {
                poll(&mut [PollFd::new(&ours, PollFlags::IN)], None).unwrap();
                match rustix::io::read(&ours, &mut bytes) {
                    Ok(0) | Err(Errno::IO) => return,
                    Ok(count) => answer(&ours, bytes.get(..count).unwrap_or_default()),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => panic!("reading a terminal: {error}"),
                }
            }
        });
        Seated { child, reader: Some(reader) }
    }

    fn leave(mut self) {
        let identity = Identity::of(self.child.id() as i32).unwrap().expect("an unreaped child has an identity");
        Pidfd::open(&identity).unwrap().expect("it is our child").signal(Signal::TERM).unwrap();
        assert!(ends_within(&identity, LIMIT), "it stays when asked to leave");
        self.child.wait().unwrap();
        self.reader.take().map(JoinHandle::join);
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        // After its exit both calls only return an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Programs that ask for the position of the cursor wait for an answer.
fn answer(terminal: &rustix::fd::OwnedFd, output: &[u8]) {
    let question = b"\x1b[6n";
    if output.windows(question.len()).any(|window| window == question) {
        // When the terminal cannot take it, it is about to close.
        let _ = rustix::io::write(terminal, b"\x1b[1;1R");
    }
}

fn converse(agent: Agent, arguments: &[&str]) {
    let Some(fixture) = Fixture::for_agent(agent) else { return };
    let seated = fixture.in_terminal(arguments);
    let done = |request: &ostler_mock_llm::Request| request.turn().is_some() && request.ending == Ending::Answered(200);
    fixture.server.wait_for(|requests| requests.iter().any(done)).unwrap();
    assert_eq!(fixture.seen(), ["say good day"]);
    seated.leave();
}

#[test]
fn claude_in_a_terminal_takes_its_prompt() {
    converse(Agent::Claude, &["say good day"]);
}

#[test]
fn codex_in_a_terminal_takes_its_prompt_and_leaves_no_daemon() {
    // By default codex starts a server that outlives it.
    converse(Agent::Codex, &["--no-daemon", "say good day"]);
}

#[test]
fn gemini_in_a_terminal_takes_its_prompt() {
    converse(Agent::Gemini, &["-i", "say good day"]);
}

#[test]
fn opencode_in_a_terminal_takes_its_prompt() {
    converse(Agent::Opencode, &["--prompt", "say good day"]);
}
