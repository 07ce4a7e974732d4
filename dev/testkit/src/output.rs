//! A command that was run, or one that still runs.

use crate::patience::{LIMIT, ends_within};
use ostler_sys::process::{Identity, Pidfd, Stat};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// The result of a command.
#[derive(Clone, Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    command: String,
}

impl Output {
    /// Fails the test unless the command ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Output {
        assert_eq!(self.code, Some(code), "{}\nstdout: {}\nstderr: {}", self.command, self.stdout, self.stderr);
        self
    }

    /// The single line on stderr of an error, without its line end.
    #[track_caller]
    pub fn complaint(&self) -> &str {
        let line = self.stderr.strip_suffix('\n').unwrap_or_else(|| panic!("no whole line: {self:?}"));
        assert!(line.starts_with("ostler: ") && !line.contains('\n'), "not one line of ours: {self:?}");
        assert!(!line.contains('\u{1b}'), "an escape sequence: {self:?}");
        line
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// A running command. It is killed when dropped.
#[derive(Debug)]
pub struct Started {
    child: Child,
    process: Identity,
    command: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Started {
    /// Starts the command. `input` is piped in, then the pipe is closed; without input, stdin is /dev/null.
    pub fn new(mut command: Command, input: Option<Vec<u8>>) -> Started {
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let words = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{words}: {error}"));
        let process = identity(&child);
        if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
            // When the program stops reading, the write fails. That is not an error of the test.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Started { child, process, command: words, stdout, stderr }
    }

    #[must_use]
    pub fn process(&self) -> &Identity {
        &self.process
    }

    /// Starts a command whose output is read line by line instead of at the end: for a command that goes on after it
    /// printed something.
    pub fn with_lines(mut command: Command) -> (Started, std::io::BufReader<std::process::ChildStdout>) {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let words = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{words}: {error}"));
        let process = identity(&child);
        let lines = std::io::BufReader::new(child.stdout.take().expect("piped"));
        (Started { child, process, command: words, stdout: None, stderr: None }, lines)
    }

    /// Whether it has not exited yet.
    #[must_use]
    pub fn runs(&self) -> bool {
        !ends_within(&self.process, Duration::ZERO)
    }

    pub fn kill(&self) {
        let pidfd = Pidfd::open(&self.process).expect("a pidfd");
        if let Some(pidfd) = pidfd {
            pidfd.signal(Signal::KILL).expect("signal our own child");
        }
        crate::patience::ended(&self.process);
    }

    /// Waits until it has exited.
    #[track_caller]
    pub fn finish(mut self) -> Output {
        let in_time = ends_within(&self.process, LIMIT);
        if !in_time {
            self.kill();
        }
        let status = self.child.wait().expect("wait for our own child");
        let text = |thread: Option<JoinHandle<Vec<u8>>>| {
            let bytes = thread.map(|thread| thread.join().expect("a reader")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let output = Output {
            code: status.code(),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
            command: self.command.clone(),
        };
        assert!(in_time, "did not end within {LIMIT:?}: {output:?}");
        output
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.runs() {
            self.kill();
        }
        let _ = self.child.wait();
    }
}

/// The identity of our own child. Until we collect its exit, /proc shows it, even when it has exited already.
fn identity(child: &Child) -> Identity {
    let pid = i32::try_from(child.id()).expect("a pid");
    Stat::read(pid).expect("/proc").expect("our own child").identity()
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe");
        bytes
    })
}
