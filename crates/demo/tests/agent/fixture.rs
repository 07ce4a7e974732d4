//! Starts the agent with a home folder of its own, sends to it and reads from it, and ends it when the test is over.
//! Nothing here sleeps: every wait is for a line, a file or a process, and gives up after half a minute.

#![expect(clippy::panic, reason = "a test that waits in vain has failed")]

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(30);

/// The environment of one conversation.
pub struct Fixture {
    pub home: TempDir,
    pub session: Uuid,
    /// Whether the timer writes lines to the transcript; if not, only an orderly exit does.
    pub saves_by_timer: bool,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture { home: tempfile::tempdir().unwrap(), session: Uuid::new_v4(), saves_by_timer: true }
    }

    /// As if the agent were killed at once: no line reaches the transcript in time.
    pub fn too_late() -> Fixture {
        Fixture { saves_by_timer: false, ..Fixture::new() }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demo-agent"));
        command
            .args(args)
            .current_dir(self.home.path())
            .env("OSTLER_DEMO_HOME", self.home.path())
            .env("OSTLER_DEMO_PACE", "0")
            .env("OSTLER_DEMO_LATE", if self.saves_by_timer { "100" } else { "600000" });
        command
    }

    /// Starts the conversation.
    pub fn start(&self) -> Agent {
        self.start_with(&["--session-id", &self.session.to_string()])
    }

    pub fn resume(&self) -> Agent {
        self.start_with(&["--resume", &self.session.to_string()])
    }

    pub fn start_with(&self, args: &[&str]) -> Agent {
        self.spawn(self.command(args))
    }

    pub fn spawn(&self, mut command: Command) -> Agent {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Agent { child, stdin, stdout, read: Vec::new() }
    }

    pub fn transcript_path(&self) -> PathBuf {
        let cwd = self.home.path().canonicalize().unwrap();
        ostler_demo::transcript_path(self.home.path(), &cwd, self.session)
    }

    /// The lines on disk that can be parsed; none when there is no file.
    pub fn transcript(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.transcript_path()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn transcript_has(&self, uuid: &Value) -> bool {
        self.transcript().iter().any(|line| &line["uuid"] == uuid)
    }

    /// Waits until the agent writes its transcript. `then` makes it do so.
    pub fn await_transcript(&self, then: impl FnOnce()) {
        let folder = self.transcript_path().parent().unwrap().to_owned();
        std::fs::create_dir_all(&folder).unwrap();
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watch, &folder, inotify::WatchFlags::CLOSE_WRITE).unwrap();
        then();
        await_readable(watch.as_fd(), "the transcript");
    }

    pub fn scratch_file(&self, name: &str) -> PathBuf {
        self.home.path().join("scratch").join(self.session.to_string()).join(name)
    }
}

/// A running agent.
pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    read: Vec<u8>,
}

impl Agent {
    /// Sends a prompt and returns its uuid.
    pub fn prompt(&mut self, text: &str) -> Value {
        let uuid = json!(Uuid::new_v4().to_string());
        self.prompt_as(&uuid, text);
        uuid
    }

    pub fn prompt_as(&mut self, uuid: &Value, text: &str) {
        self.send(&json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}));
    }

    pub fn interrupt(&mut self) {
        self.send(&json!({"type": "control_request", "request_id": "i1", "request": {"subtype": "interrupt"}}));
    }

    pub fn send(&mut self, line: &Value) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        use std::io::Write as _;
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// The next line; `None` at the end.
    pub fn line(&mut self) -> Option<Value> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.read[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=searched + end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            searched = self.read.len();
            await_readable(self.stdout.as_fd(), "a line");
            let mut buffer = vec![0; 1 << 16];
            let length = rustix::io::read(&self.stdout, &mut buffer).unwrap();
            if length == 0 {
                assert!(self.read.is_empty(), "half a line at the end");
                return None;
            }
            self.read.extend_from_slice(&buffer[..length]);
        }
    }

    /// All lines up to the next of this type, which is included.
    pub fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.line() {
            let found = line["type"] == kind;
            lines.push(line);
            if found {
                return lines;
            }
        }
        panic!("the agent ended without {kind}: {lines:?}");
    }

    pub fn result(&mut self) -> Value {
        self.until("result").pop().unwrap()
    }

    /// Waits for a tool call, and for the process that runs it.
    pub fn tool_process(&mut self) -> OwnedProcess {
        loop {
            let call = self.until("assistant").pop().unwrap();
            if call["message"]["content"][0]["type"] == "tool_use" {
                break;
            }
        }
        // The call is announced before its process is started. In all tests that use this, the process then keeps
        // running.
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let pid = || std::fs::read_to_string(&children).unwrap().split_whitespace().next()?.parse().ok();
        await_true("a tool's process", || pid().is_some());
        OwnedProcess::open(pid().unwrap())
    }

    /// Waits until an agent that prints a lot sleeps, because its output is not read.
    pub fn await_full_output(&self) {
        let half = rustix::pipe::fcntl_getpipe_size(&self.stdout).unwrap() as u64 / 2;
        let status = format!("/proc/{}/status", self.child.id());
        await_true("a full pipe", || {
            let sleeps = std::fs::read_to_string(&status).unwrap().contains("State:\tS");
            sleeps && rustix::io::ioctl_fionread(&self.stdout).unwrap() > half
        });
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the process exits. Returns its exit code, or `None` when a signal killed it.
    pub fn exit(&mut self) -> Option<i32> {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        await_readable(pidfd.as_fd(), "the agent's end");
        self.child.wait().unwrap().code()
    }

    pub fn complaint(&mut self) -> String {
        use std::io::Read as _;
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that a test may end.
pub struct OwnedProcess {
    pidfd: rustix::fd::OwnedFd,
}

impl OwnedProcess {
    pub fn open(pid: i32) -> OwnedProcess {
        OwnedProcess { pidfd: pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap() }
    }

    pub fn lives(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 0
    }

    pub fn await_end(&self) {
        await_readable(self.pidfd.as_fd(), "the end of a tool");
    }

    pub fn kill(&self) {
        rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL).unwrap();
    }
}

pub fn await_readable(fd: BorrowedFd<'_>, what: &str) {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&PATIENCE.try_into().unwrap())).unwrap();
    assert_eq!(ready, 1, "waited in vain for {what}");
}

/// For states of which the kernel sends no notification.
fn await_true(what: &str, is_true: impl Fn() -> bool) {
    let given_up = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < given_up, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// The kinds of the lines: `system`, `assistant:text`, `assistant:tool_use`, `user:tool_result`, `result`, …
pub fn outline(lines: &[Value]) -> Vec<String> {
    let about = |line: &Value| {
        let kind = line["type"].as_str().unwrap_or("?").to_owned();
        match line["message"]["content"][0]["type"].as_str() {
            Some(block) => format!("{kind}:{block}"),
            None => kind,
        }
    };
    lines.iter().map(about).collect()
}

pub fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}
