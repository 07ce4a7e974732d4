//! One agent process: its lines of JSON as they come, its stdin, its exit. Every wait has a limit and names what it
//! waited for.

use ostler_sys::process::{Identity, Pidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long any single wait may take. The slowest agent needs five seconds for its first output on an idle machine.
pub const LIMIT: Duration = Duration::from_secs(90);

pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<(Instant, String)>,
    errors: Option<JoinHandle<String>>,
    /// Everything that was read, for the message of a failure.
    heard: Vec<String>,
}

/// The exit and all output of an agent.
pub struct Ended {
    pub status: ExitStatus,
    pub events: Vec<Value>,
    errors: String,
}

impl Running {
    pub fn new(mut child: Child) -> Running {
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            // What came before an error is shown too.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        Running { child, stdin, lines, errors: Some(errors), heard: Vec::new() }
    }

    pub fn identity(&self) -> Identity {
        Identity::of(self.child.id() as i32).unwrap().expect("an unreaped child has an identity")
    }

    /// Writes one line of JSON.
    pub fn send(&mut self, message: &Value) {
        self.stdin.as_mut().expect("stdin is open").write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: Signal) {
        Pidfd::open(&self.identity()).unwrap().expect("it is our child").signal(signal).unwrap();
    }

    /// The next event that `wanted` accepts, and when it was read. Events before it are dropped.
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> (Instant, Value) {
        let deadline = Instant::now() + LIMIT;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((at, line)) => {
                    let event = serde_json::from_str(&line).unwrap_or(Value::Null);
                    self.heard.push(line);
                    if wanted(&event) {
                        return (at, event);
                    }
                }
                Err(reason @ (RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) => {
                    panic!("no {what} ({reason}); it said\n{}", self.heard.join("\n"))
                }
            }
        }
    }

    /// The next event of this `type`.
    pub fn until_type(&mut self, kind: &str) -> Value {
        self.until(kind, |event| event["type"] == kind).1
    }

    /// Closes stdin and reads to the end. The agent must exit by itself.
    pub fn finish(mut self) -> Ended {
        self.close_stdin();
        let deadline = Instant::now() + LIMIT;
        let mut events = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((_, line)) => {
                    events.extend(serde_json::from_str(&line));
                    self.heard.push(line);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("no end of it; it said\n{}", self.heard.join("\n")),
            }
        }
        let gone = ends_within(&self.identity(), LIMIT);
        assert!(gone, "it closed its stdout and lives on");
        let status = self.child.wait().unwrap();
        let errors = self.errors.take().map(|errors| errors.join().unwrap_or_default()).unwrap_or_default();
        Ended { status, events, errors }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After its exit both calls only return an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Fails with all output unless it exited with 0.
    pub fn well(self) -> Ended {
        assert!(self.status.success(), "{}; {:#?}\n{}", self.status, self.events, self.errors);
        self
    }

    /// The events of this `type`.
    pub fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    pub fn last_of_type(&self, kind: &str) -> &Value {
        self.of_type(kind).last().copied().unwrap_or_else(|| panic!("no {kind} in {:#?}", self.events))
    }
}

/// Waits until the process has exited; false when the time is up first.
pub fn ends_within(process: &Identity, time: Duration) -> bool {
    let Some(pidfd) = Pidfd::open(process).unwrap() else { return true };
    let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
    let time = Timespec::try_from(time).expect("minutes fit");
    poll(&mut polled, Some(&time)).unwrap() > 0
}
