//! A helper process that does something for the keeper which belongs to a higher layer. It answers in a file that
//! exists only in memory.

use crate::handles::{FOLDER, Handles};
use ostler_sys::descriptors::path_of;
use ostler_sys::process::WaitStatus;
use ostler_sys::spawn::{self, Started};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::process::Signal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

const ANSWER: &str = "answer";

/// The process, as the keeper sees it.
pub(super) struct Errand {
    process: Started,
    answer: File,
}

/// How a helper process has ended.
pub(super) enum Ended<T> {
    Answered(T),
    /// It was killed before it could answer.
    Killed,
    /// It has exited without an answer.
    Failed,
}

impl Errand {
    /// Starts a helper process, with the folder of the session and these words and descriptors.
    pub fn start(
        handles: &Handles,
        word: &str,
        words: &[&str],
        folder: BorrowedFd<'_>,
        more: &[(&str, BorrowedFd<'_>)],
    ) -> io::Result<Errand> {
        let answer = File::from(rustix::fs::memfd_create(ANSWER, MemfdFlags::CLOEXEC)?);
        let given = [&[(FOLDER, folder), (ANSWER, answer.as_fd())], more].concat();
        let process = handles.start_with_words(word, words, &given).map_err(io::Error::other)?;
        Ok(Errand { process, answer })
    }

    /// What to poll for the end of the process.
    pub fn process(&self) -> &OwnedFd {
        &self.process.pidfd
    }

    /// Collects a process that has ended.
    pub fn ended<T: DeserializeOwned>(mut self) -> io::Result<Ended<T>> {
        let status = spawn::collect(self.process.pid);
        let mut bytes = Vec::new();
        self.answer.rewind()?;
        self.answer.read_to_end(&mut bytes)?;
        Ok(match (serde_json::from_slice(&bytes), status.and_then(WaitStatus::code)) {
            (Ok(answer), _) => Ended::Answered(answer),
            (Err(_), None) => Ended::Killed,
            (Err(_), Some(_)) => Ended::Failed,
        })
    }

    pub fn kill(self) -> io::Result<()> {
        rustix::process::pidfd_send_signal(&self.process.pidfd, Signal::KILL)?;
        spawn::collect(self.process.pid);
        Ok(())
    }
}

/// The descriptors that the process gets.
#[derive(Debug)]
pub struct Given(Handles);

impl Given {
    /// From its arguments, without the words.
    pub fn of(arguments: &[String]) -> io::Result<Given> {
        Handles::from_arguments(arguments).map(Given)
    }

    /// Where the session is.
    pub fn folder_path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(path_of(self.0.need(FOLDER)?))
    }

    /// Sends the answer to the keeper.
    pub fn answer(&self, answer: &impl Serialize) -> io::Result<()> {
        let mut file = File::from(rustix::io::fcntl_dupfd_cloexec(self.0.need(ANSWER)?, 3)?);
        file.write_all(&serde_json::to_vec(answer)?)
    }
}
