//! A person at a terminal: a pseudo-terminal with an emulator as its screen, and a program that it controls.

use ostler_screen::{Screen, Size};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::pty::{self, Pty};
use ostler_testkit::Harness;
use ostler_testkit::patience::{LIMIT, ended, readable};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{LocalModes, tcgetattr};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

pub struct Person {
    child: Child,
    process: Identity,
    /// `None` once the terminal was closed.
    terminal: Option<OwnedFd>,
    /// Kept open, so that the modes can be read when the program is gone.
    theirs: OwnedFd,
    pub screen: Screen,
    /// Everything the program wrote.
    pub bytes: Vec<u8>,
    /// The program has begun a synchronised update, and its end was not read yet.
    updating: bool,
}

/// The beginning and the end of a synchronised update.
const BEGIN_UPDATE: &[u8; 8] = b"\x1b[?2026h";
const END_UPDATE: &[u8; 8] = b"\x1b[?2026l";

pub const SIZE: (u16, u16) = (24, 80);

impl Person {
    /// Runs `ostler` with these arguments.
    pub fn runs(harness: &Harness, size: (u16, u16), arguments: &[&str]) -> Person {
        let mut words = vec![harness.program().to_str().unwrap()];
        words.extend(arguments);
        Person::runs_program(harness, size, &words)
    }

    pub fn attaches(harness: &Harness, id: &str) -> Person {
        Person::runs(harness, SIZE, &["attach", id])
    }

    /// Runs any program, as the leader of a session that this terminal controls.
    pub fn runs_program(harness: &Harness, (rows, columns): (u16, u16), words: &[&str]) -> Person {
        let pty = Pty::open(rows, columns).unwrap();
        let mut command: Command = harness.command("env");
        // The tests may have been started with hang-ups ignored. A person's program gets the default signal handling.
        command.args(["--default-signal=HUP,INT,QUIT", "setsid", "--ctty"]).args(words);
        command.stdin(pty.theirs.try_clone().unwrap());
        command.stdout(pty.theirs.try_clone().unwrap()).stderr(pty.theirs.try_clone().unwrap());
        let child = command.spawn().unwrap();
        let process = Identity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        Person {
            child,
            process,
            terminal: Some(pty.ours),
            theirs: pty.theirs,
            screen: Screen::new(Size { rows, columns }),
            bytes: Vec::new(),
            updating: false,
        }
    }

    /// Types. The terminal takes the keys at its own pace, and what the program writes meanwhile is read.
    pub fn types(&mut self, mut keys: &[u8]) {
        let end = Instant::now() + LIMIT;
        while !keys.is_empty() {
            assert!(Instant::now() < end, "the terminal takes no keys");
            match rustix::io::write(self.terminal.as_ref().unwrap(), keys) {
                Ok(count) => keys = &keys[count..],
                Err(Errno::AGAIN) => {
                    self.looks(Duration::from_millis(5));
                }
                Err(error) => panic!("typing: {error}"),
            }
        }
    }

    /// Reads what the program has written, and waits for it at most this long. `false`: nothing came.
    pub fn looks(&mut self, time: Duration) -> bool {
        let Some(terminal) = &self.terminal else { return false };
        if !readable(&[terminal.as_fd()], time) {
            return false;
        }
        let mut buffer = [0; 65536];
        match rustix::io::read(terminal, &mut buffer) {
            Ok(count) => {
                self.screen.feed(&buffer[..count]);
                self.takes(&buffer[..count]);
                count > 0
            }
            Err(Errno::AGAIN | Errno::IO) => false,
            Err(error) => panic!("reading the terminal: {error}"),
        }
    }

    fn takes(&mut self, new: &[u8]) {
        // A sequence may arrive in two parts.
        let from = self.bytes.len().saturating_sub(BEGIN_UPDATE.len() - 1);
        self.bytes.extend_from_slice(new);
        for window in self.bytes[from..].windows(BEGIN_UPDATE.len()) {
            if window == BEGIN_UPDATE {
                self.updating = true;
            } else if window == END_UPDATE {
                self.updating = false;
            }
        }
    }

    /// Waits until this is true. It is not checked in the middle of a synchronised update: a long update is read in
    /// several parts, and a terminal never shows only a part of it.
    #[track_caller]
    pub fn sees_that(&mut self, what: &str, mut right: impl FnMut(&Person) -> bool) {
        let end = Instant::now() + LIMIT;
        while self.updating || !right(self) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never saw {what}; the screen:\n{}", self.screen.text().join("\n"));
            self.looks(left);
        }
    }

    /// Waits until a row of the screen contains this.
    #[track_caller]
    pub fn sees(&mut self, text: &str) {
        self.sees_that(text, |person| person.shows(text));
    }

    pub fn shows(&self, text: &str) -> bool {
        self.screen.text().iter().any(|row| row.contains(text))
    }

    /// Changes the size of the window.
    pub fn resizes(&mut self, (rows, columns): (u16, u16)) {
        pty::resize(self.terminal.as_ref().unwrap(), rows, columns).unwrap();
        self.screen.resize(Size { rows, columns });
    }

    /// Closes the window.
    pub fn closes_the_terminal(&mut self) {
        self.terminal = None;
    }

    pub fn process(&self) -> &Identity {
        &self.process
    }

    /// How often its process has gone to sleep.
    pub fn sleeps(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    }

    pub fn signals(&self, signal: Signal) {
        Pidfd::open(&self.process).unwrap().unwrap().signal(signal).unwrap();
    }

    /// Waits until the program has exited, and reads its output.
    #[track_caller]
    pub fn waits(&mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        let pidfd = Pidfd::open(&self.process).unwrap();
        while let Some(pidfd) = &pidfd
            && !pidfd.has_exited().unwrap()
        {
            assert!(Instant::now() < end, "it does not end; the screen:\n{}", self.screen.text().join("\n"));
            match &self.terminal {
                Some(terminal) => {
                    readable(&[terminal.as_fd(), pidfd.as_fd()], LIMIT);
                }
                None => ended(&self.process),
            }
            self.looks(Duration::ZERO);
        }
        while self.looks(Duration::ZERO) {}
        self.child.wait().unwrap()
    }

    /// Waits until the program has exited, without reading its output.
    pub fn ends_unseen(&mut self) {
        ended(&self.process);
        self.child.wait().unwrap();
    }

    /// Waits until the program has exited with this code.
    #[track_caller]
    pub fn is_left_with(&mut self, code: i32) {
        let status = self.waits();
        assert_eq!(status.code(), Some(code), "{status}; the screen:\n{}", self.screen.text().join("\n"));
    }

    /// Whether the terminal edits lines and shows keys, as a shell expects it.
    pub fn has_an_ordinary_terminal(&self) -> bool {
        let modes = tcgetattr(&self.theirs).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // The harness looks for processes that are left. A failed test must not leave its own client.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
