//! The descriptors of a session, by name.
//!
//! This is the contract between a holder and a keeper of any two versions. Descriptors are passed as arguments of the
//! form `name=number`. A name that one side does not know is kept and passed on unchanged. A name that is missing means
//! that the session has no such descriptor (an agent without a terminal has no `pty`). A name never changes its
//! meaning.

use ostler_sys::descriptors::{inherited, own_binary};
use ostler_sys::spawn::{Leads, Program, Start, StartError, Started};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStringExt;

/// The session's folder.
pub const FOLDER: &str = "folder";
/// The home whose waiting notifications a sender sends.
pub const HOME: &str = "home";
/// The socket to which clients connect; open as long as any helper lives.
pub const LISTENER: &str = "door";
/// Our own binary, to start the other helper from.
pub const BINARY: &str = "binary";
/// A pidfd of the agent.
pub const AGENT: &str = "agent";
/// The keeper's end of the line to its holder.
pub const HOLDER_LINE: &str = "holder_line";
/// The lock that makes the session its conversation's one writer.
pub const WRITER: &str = "writer";
/// The slot of the queue that the session has until it ends.
pub const SLOT: &str = "slot";
/// The end of a pipe that only the helpers have while the program of their session waits to be started. At the other
/// end the waiting process sees when both helpers are gone.
pub const LIFE: &str = "life";
/// The files, at their shared positions.
pub const OUT: &str = "out";
pub const ERR: &str = "err";
pub const IN: &str = "in";
/// Both ends of the agent's pipes.
pub const STDIN_READ: &str = "stdin_read";
pub const STDIN_WRITE: &str = "stdin_write";
pub const STDOUT_READ: &str = "stdout_read";
pub const STDOUT_WRITE: &str = "stdout_write";
pub const STDERR_READ: &str = "stderr_read";
pub const STDERR_WRITE: &str = "stderr_write";
/// Bytes that have left the agent's pipe and are not in its file yet.
pub const PASSING_READ: &str = "passing_read";
pub const PASSING_WRITE: &str = "passing_write";
/// Our side of the terminal, and the pipes through which bytes pass between it and the files: the kernel moves bytes
/// only to or from a pipe. These pipes outlive the process that moves the bytes.
pub const PTY: &str = "pty";
pub const KEYS_READ: &str = "keys_read";
pub const KEYS_WRITE: &str = "keys_write";
pub const DRAWN_READ: &str = "drawn_read";
pub const DRAWN_WRITE: &str = "drawn_write";

/// A helper to start: its word on the command line, its flags, and what it gets in addition to the handles.
pub struct Helper<'a> {
    pub word: &'a str,
    pub flags: &'a [&'a str],
    pub more: &'a [(&'a str, BorrowedFd<'a>)],
}

/// Descriptors by name.
#[derive(Debug, Default)]
pub struct Handles(BTreeMap<String, OwnedFd>);

impl Handles {
    /// Takes over the descriptors that are named in the arguments.
    pub fn from_arguments(arguments: &[String]) -> io::Result<Handles> {
        let mut handles = Handles::default();
        for argument in arguments {
            let Some((name, number)) = argument.split_once('=') else {
                continue;
            };
            let number: RawFd = number.parse().map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{argument:?} names no descriptor"))
            })?;
            handles.put(name, inherited(number)?);
        }
        Ok(handles)
    }

    pub fn put(&mut self, name: &str, handle: OwnedFd) {
        self.0.insert(name.to_owned(), handle);
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OwnedFd)> {
        self.0.iter().map(|(name, handle)| (name.as_str(), handle))
    }

    /// Takes one out.
    pub fn take(&mut self, name: &str) -> Option<OwnedFd> {
        self.0.remove(name)
    }

    /// Closes our copy.
    pub fn close(&mut self, name: &str) {
        self.0.remove(name);
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OwnedFd> {
        self.0.get(name)
    }

    pub fn need(&self, name: &str) -> io::Result<&OwnedFd> {
        self.get(name)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("no descriptor called {name}")))
    }

    /// A copy that shares everything with ours, the position in a file included.
    pub fn copy(&self, name: &str) -> io::Result<Option<OwnedFd>> {
        Ok(self.get(name).map(|handle| rustix::io::fcntl_dupfd_cloexec(handle, 3)).transpose()?)
    }

    /// Starts another helper of this session and hands it all of these, plus `more`. The helper has them as soon as
    /// this returns, even if this process is killed.
    pub fn start_helper(&self, helper: &Helper<'_>, environment: &[CString]) -> Result<Started, StartError> {
        self.with_start(helper.word, helper.flags, self.handed(helper.more), environment, |start| start.start_unseen())?
    }

    /// The same, but the helper runs `first` before its program, and this process continues after that.
    pub fn start_helper_after(
        &self,
        helper: &Helper<'_>,
        environment: &[CString],
        first: &dyn Fn(),
    ) -> Result<Started, StartError> {
        let handed = self.handed(helper.more);
        self.with_start(helper.word, helper.flags, handed, environment, |start| start.start_unseen_after(first))?
    }

    /// Turns this process into another helper of this session, with all of these, plus `more`. Returns only when that
    /// fails.
    pub fn become_helper(&self, helper: &Helper<'_>, environment: &[CString]) -> StartError {
        self.with_start(helper.word, helper.flags, self.handed(helper.more), environment, |start| start.become_it())
            .unwrap_or_else(|error| error)
    }

    /// Starts a process that gets this one descriptor and nothing else of ours.
    pub fn start_with(&self, word: &str, name: &str, handle: BorrowedFd<'_>) -> Result<Started, StartError> {
        let handed = std::iter::once((name, handle.as_raw_fd()));
        self.with_start(word, &[], handed, &environment(), |start| start.start_unseen())?
    }

    /// Starts a process that gets these words and descriptors and nothing else of ours.
    pub fn start_with_words(
        &self,
        word: &str,
        words: &[&str],
        given: &[(&str, BorrowedFd<'_>)],
    ) -> Result<Started, StartError> {
        let handed = given.iter().map(|(name, handle)| (*name, handle.as_raw_fd()));
        self.with_start(word, words, handed, &environment(), |start| start.start_unseen())?
    }

    fn handed<'a>(&'a self, more: &'a [(&'a str, BorrowedFd<'a>)]) -> impl Iterator<Item = (&'a str, RawFd)> {
        let ours = self.0.iter().map(|(name, handle)| (name.as_str(), handle.as_raw_fd()));
        ours.chain(more.iter().map(|(name, handle)| (*name, handle.as_raw_fd())))
    }

    fn with_start<'a, T>(
        &self,
        word: &str,
        flags: &[&str],
        handed: impl Iterator<Item = (&'a str, RawFd)>,
        environment: &[CString],
        action: impl FnOnce(&Start<'_>) -> T,
    ) -> Result<T, StartError> {
        let own = if self.get(BINARY).is_none() { Some(own_binary().map_err(StartError::Fork)?) } else { None };
        let Some(binary) = self.get(BINARY).or(own.as_ref()) else {
            return Err(StartError::NotFound);
        };
        let mut words = vec!["ostler".to_owned(), word.to_owned()];
        words.extend(flags.iter().map(|&flag| flag.to_owned()));
        let mut descriptors = Vec::new();
        for (target, (name, source)) in (3..).zip(handed) {
            words.push(format!("{name}={target}"));
            descriptors.push((source, target));
        }
        let null = rustix::fs::open(
            "/dev/null",
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .map_err(|error| StartError::Descriptors(error.into()))?;
        descriptors.extend((0..3).map(|target| (null.as_raw_fd(), target)));
        let arguments: Vec<CString> = words.into_iter().map(CString::new).collect::<Result<_, _>>()?;
        Ok(action(&Start {
            program: Program::Open(rustix::fd::AsFd::as_fd(binary)),
            arguments: &arguments,
            environment,
            folder: None,
            descriptors: &descriptors,
            leads: Leads::Session,
            cgroup: None,
        }))
    }
}

/// Our own environment, as a child gets it.
#[must_use]
pub fn environment() -> Vec<CString> {
    std::env::vars_os()
        .filter_map(|(name, value)| {
            let mut entry = name.into_vec();
            entry.push(b'=');
            entry.extend(value.into_vec());
            CString::new(entry).ok()
        })
        .collect()
}
