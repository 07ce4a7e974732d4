//! The agent in a terminal: a real pseudo-terminal, read and typed into.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::process::{Child, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::fixture::{Fixture, await_readable};

struct Screen {
    child: Child,
    keyboard: File,
    /// Keeps the terminal, so that its modes can be looked at afterwards.
    terminal: File,
    shown: Vec<u8>,
}

impl Screen {
    fn open(fixture: &Fixture, args: &[&str], size: (u16, u16)) -> Screen {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let terminal = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        resize(&terminal, size);
        let child = fixture
            .command(&[&["--screen"], args].concat())
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Screen { child, keyboard: File::from(master), terminal, shown: Vec::new() }
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until `text` has been drawn since the last call.
    fn await_text(&mut self, text: &str) {
        loop {
            if let Some(at) = self.shown.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.shown.drain(..at + text.len());
                return;
            }
            await_readable(self.keyboard.as_fd(), text);
            let mut buffer = [0; 4096];
            let length = rustix::io::read(&self.keyboard, &mut buffer).unwrap();
            self.shown.extend_from_slice(&buffer[..length]);
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn exit(&mut self) -> Option<i32> {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        await_readable(pidfd.as_fd(), "the agent's end");
        self.child.wait().unwrap().code()
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.terminal).unwrap().local_modes.contains(LocalModes::ICANON)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: &File, (rows, columns): (u16, u16)) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

fn new_session(fixture: &Fixture) -> Vec<String> {
    vec!["--session-id".to_owned(), fixture.session.to_string()]
}

fn open(fixture: &Fixture) -> Screen {
    let args = new_session(fixture);
    Screen::open(fixture, &[&args[0], &args[1]], (24, 80))
}

#[test]
fn a_typed_prompt_is_answered_on_the_screen_and_saved() {
    let fixture = Fixture::too_late();
    let mut screen = open(&fixture);
    screen.await_text("\x1b[?1049h\x1b[?2004h");
    screen.await_text("Enter send");
    assert!(screen.is_raw());
    screen.type_in("say good morning\r");
    screen.await_text("ostler demo: say good morning");
    screen.await_text("good morning");
    screen.await_text("done in");
    screen.type_in("\x04");
    screen.await_text("\x1b[?2004l");
    screen.await_text("\x1b[?1049l");
    assert_eq!(screen.exit(), Some(0));
    assert!(!screen.is_raw());
    assert_eq!(fixture.transcript().len(), 2);
}

#[test]
fn the_story_plays_on_the_smallest_screen() {
    let fixture = Fixture::new();
    let args = new_session(&fixture);
    let mut screen = Screen::open(&fixture, &[&args[0], &args[1]], (10, 40));
    screen.await_text("Enter send");
    screen.type_in("\x1b[200~repair\rit\x1b[201~\r");
    screen.await_text("Edit greet.sh");
    screen.await_text("The test passes.");
    screen.await_text("done in");
    screen.type_in("/quit\r");
    assert_eq!(screen.exit(), Some(0));
    assert_eq!(fixture.transcript()[0]["message"]["content"], "repair\nit");
}

#[test]
fn control_c_interrupts_the_turn_and_keeps_the_agent() {
    let fixture = Fixture::new();
    let mut screen = open(&fixture);
    screen.type_in("sleep\r");
    screen.await_text("Bash sleep 1000");
    screen.type_in("\x03");
    screen.await_text("interrupted after");
    screen.type_in("say still here\r");
    screen.await_text("done in");
    screen.type_in("\x04");
    assert_eq!(screen.exit(), Some(0));
}

#[test]
fn a_question_is_answered_with_a_key() {
    let fixture = Fixture::new();
    let mut screen = open(&fixture);
    screen.type_in("ask may I\r");
    screen.await_text("Allow Ask may I? y/n");
    screen.type_in("n");
    screen.await_text("denied: may I");
}

#[test]
fn a_new_size_is_drawn_at_once() {
    let fixture = Fixture::new();
    let mut screen = open(&fixture);
    screen.await_text("Enter send");
    resize(&screen.terminal, (12, 50));
    screen.signal(Signal::WINCH);
    screen.await_text("\x1b[2J");
    screen.await_text(&format!("┌{}┐", "─".repeat(48)));
}

#[test]
fn a_signal_gives_the_terminal_back_and_saves() {
    for (signal, code) in [(Signal::HUP, 129), (Signal::TERM, 143)] {
        let fixture = Fixture::too_late();
        let mut screen = open(&fixture);
        screen.type_in("say something dear\r");
        screen.await_text("done in");
        screen.signal(signal);
        screen.await_text("\x1b[?1049l");
        assert_eq!(screen.exit(), Some(code));
        assert!(!screen.is_raw());
        assert_eq!(fixture.transcript().len(), 2);
    }
}

#[test]
fn without_a_terminal_it_says_so() {
    let fixture = Fixture::new();
    let mut agent = fixture.start_with(&["--screen"]);
    assert_eq!(agent.exit(), Some(1));
    assert!(agent.complaint().contains("needs a terminal"));
}
