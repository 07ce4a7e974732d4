//! One process of an agent: its output, line by line and with the time, and its input.

use anyhow::{Context, Result};
use ostler_replay::Text;
use rustix::process::{Pid, Signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    heard: Receiver<(Instant, Heard)>,
}

pub enum Heard {
    Printed(Text),
    Complained(Text),
}

/// The result of waiting for a line.
pub enum Waited {
    Heard(Instant, Heard),
    Nothing,
    /// Both streams have ended.
    Over,
}

impl Process {
    pub fn start(command: &mut Command) -> Result<Process> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start it")?;
        let (sender, heard) = channel();
        let stdout = child.stdout.take().context("no standard output")?;
        let stderr = child.stderr.take().context("no standard error")?;
        listen(stdout, Heard::Printed, sender.clone());
        listen(stderr, Heard::Complained, sender);
        let stdin = child.stdin.take();
        Ok(Process { child, stdin, heard })
    }

    pub fn give(&mut self, bytes: &[u8]) -> Result<()> {
        self.stdin.as_mut().context("its input has ended")?.write_all(bytes).context("it does not read")
    }

    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// The process is our child and its exit is not collected yet, so the number cannot belong to another process.
    pub fn interrupt(&self) -> Result<()> {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::INT).context("cannot interrupt it")
    }

    pub fn wait_for_word(&self, time: Duration) -> Waited {
        match self.heard.recv_timeout(time) {
            Ok((at, heard)) => Waited::Heard(at, heard),
            Err(RecvTimeoutError::Timeout) => Waited::Nothing,
            Err(RecvTimeoutError::Disconnected) => Waited::Over,
        }
    }

    pub fn status(&mut self) -> Result<ExitStatus> {
        self.child.wait().context("cannot wait for it")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After its exit both calls only return an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The thread ends with the stream.
fn listen(stream: impl Read + Send + 'static, kind: fn(Text) -> Heard, to: Sender<(Instant, Heard)>) {
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let at = Instant::now();
            let whole = line.last() == Some(&b'\n');
            line.truncate(line.len() - usize::from(whole));
            let text = Text { text: String::from_utf8_lossy(&line).into_owned(), whole };
            if to.send((at, kind(text))).is_err() {
                return;
            }
            line.clear();
        }
    });
}
