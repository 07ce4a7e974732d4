//! The tools, which really work: a shell command as a child process, reading a file, changing a file.
//!
//! A command is a process group of its own. It ends when its shell has exited, even if background processes are still
//! running. A command that is dropped before that is killed with its group, and its exit is collected. So no command
//! outlives its turn.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// Of a tool's output, no more bytes than this are kept.
const LONGEST_OUTPUT: usize = 30_000;

/// The result of a tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    pub text: String,
    pub is_error: bool,
}

impl Given {
    pub fn good(text: impl Into<String>) -> Given {
        Given { text: text.into(), is_error: false }
    }

    pub fn bad(text: impl Into<String>) -> Given {
        Given { text: text.into(), is_error: true }
    }
}

/// A running shell command.
pub struct Running {
    child: Child,
    pid: Pid,
    /// Readable when the child has exited.
    pidfd: OwnedFd,
    /// What it prints; `None` once no process has the other end open.
    pipe: Option<io::PipeReader>,
    printed: Vec<u8>,
    ended: bool,
}

impl Running {
    pub fn start(command: &str, folder: &Path) -> io::Result<Running> {
        let (pipe, other_side) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(other_side.try_clone()?)
            .stderr(other_side)
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Running { child, pid, pidfd, pipe: Some(pipe), printed: Vec::new(), ended: false }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// What to poll before the next call of [`Running::go_on`].
    pub fn watched(&self) -> Vec<BorrowedFd<'_>> {
        std::iter::once(self.pidfd.as_fd()).chain(self.pipe.as_ref().map(|pipe| pipe.as_fd())).collect()
    }

    /// Takes what was printed since the last call. Returns the result once the command has ended.
    pub fn go_on(&mut self) -> io::Result<Option<Given>> {
        // Checked before the pipe is read: everything that an exited child printed is in the pipe by then.
        let status = self.child.try_wait()?;
        self.ended = status.is_some();
        self.read_pipe()?;
        Ok(status.map(|status| self.given(status)))
    }

    fn read_pipe(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    let room = LONGEST_OUTPUT.saturating_sub(self.printed.len());
                    self.printed.extend_from_slice(&buffer[..length.min(room)]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn given(&self, status: ExitStatus) -> Given {
        let printed = String::from_utf8_lossy(&self.printed).trim_end().to_owned();
        let end = match (status.code(), status.signal()) {
            (Some(0), _) => return Given::good(printed),
            (Some(code), _) => format!("Exit code {code}"),
            (None, Some(signal)) => format!("Killed by signal {signal}"),
            (None, None) => "Ended in an unknown way".to_owned(),
        };
        Given::bad(if printed.is_empty() { end } else { format!("{end}\n{printed}") })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            // Its exit is not collected yet, so the number of the process group cannot belong to another group.
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

pub fn read(file: &Path) -> Given {
    match std::fs::read_to_string(file) {
        Ok(text) => Given::good(text),
        Err(error) => Given::bad(format!("cannot read {}: {error}", file.display())),
    }
}

/// Replaces `old`, which must occur exactly once in the file, by `new`.
pub fn edit(file: &Path, old: &str, new: &str) -> Given {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return Given::bad(format!("cannot read {}: {error}", file.display())),
    };
    match text.matches(old).count() {
        1 => {}
        count => return Given::bad(format!("the text to replace occurs {count} times in {}", file.display())),
    }
    match std::fs::write(file, text.replacen(old, new, 1)) {
        Ok(()) => Given::good(format!("The file {} has been updated.", file.display())),
        Err(error) => Given::bad(format!("cannot write {}: {error}", file.display())),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn run(command: &str) -> Given {
        let mut running = Running::start(command, Path::new("/")).unwrap();
        loop {
            if let Some(given) = running.go_on().unwrap() {
                return given;
            }
            let mut fds: Vec<PollFd<'_>> =
                running.watched().into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            poll(&mut fds, None).unwrap();
        }
    }

    #[test]
    fn a_command_gives_what_it_printed_and_how_it_ended() {
        assert_eq!(run("echo out; echo err >&2"), Given::good("out\nerr"));
        assert_eq!(run("echo no; exit 4"), Given::bad("Exit code 4\nno"));
        assert_eq!(run("kill -9 $$"), Given::bad("Killed by signal 9"));
    }

    #[test]
    fn a_command_that_closes_its_output_early_is_waited_for_all_the_same() {
        assert_eq!(run("exec >&- 2>&-; sleep 0.05; exit 5"), Given::bad("Exit code 5"));
    }

    #[test]
    fn endless_output_is_cut_and_does_not_block_the_command() {
        let given = run("dd if=/dev/zero bs=1000 count=500 2>/dev/null | tr '\\0' x");
        assert_eq!(given.text.len(), LONGEST_OUTPUT);
        assert!(!given.is_error);
    }

    #[test]
    fn a_command_that_is_dropped_dies_with_its_children() {
        let mut running = Running::start("sleep 1000 & echo $!; wait", Path::new("/")).unwrap();
        while running.printed.is_empty() {
            let mut fds = [PollFd::from_borrowed_fd(running.pipe.as_ref().unwrap().as_fd(), PollFlags::IN)];
            poll(&mut fds, None).unwrap();
            assert_eq!(running.go_on().unwrap(), None);
        }
        let child: i32 = std::str::from_utf8(&running.printed).unwrap().trim().parse().unwrap();
        let child = pidfd_open(Pid::from_raw(child).unwrap(), PidfdFlags::empty()).unwrap();
        drop(running);
        let mut fds = [PollFd::new(&child, PollFlags::IN)];
        let limit = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
        assert_eq!(poll(&mut fds, Some(&limit)).unwrap(), 1, "the tool's child still lives");
    }

    #[test]
    fn an_edit_needs_exactly_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        std::fs::write(&file, "one two two").unwrap();
        assert!(edit(&file, "two", "2").is_error);
        assert!(edit(&file, "three", "3").is_error);
        assert!(!edit(&file, "one", "1").is_error);
        assert_eq!(read(&file), Given::good("1 two two"));
        assert!(read(&folder.path().join("none")).is_error);
    }
}
