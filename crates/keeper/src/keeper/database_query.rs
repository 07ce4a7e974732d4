//! Looking into an agent's database, in a short-lived process of its own: SQLite would cost a keeper several times the
//! memory that it has, for as long as it lives.
//!
//! The question is passed in a file that exists only in memory; the answer is the exit code.

use super::{Keeper, KeeperError};
use crate::INQUIRY;
use crate::handles::Handles;
use ostler_agents::Agent;
use ostler_sys::process::WaitStatus;
use ostler_sys::spawn::{self, Started};
use ostler_view::proof::Kept;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::fs::MemfdFlags;
use rustix::process::Signal;
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

/// The name of the descriptor with the question.
const QUESTION: &str = "question";

const HELD: i32 = 0;
const NOT_HELD: i32 = 1;
const UNKNOWN: i32 = 2;

/// A process that has not answered by then is killed; the next look asks again.
const PATIENCE_S: i64 = 5;

#[derive(Debug, Serialize, Deserialize)]
struct Question {
    agent: String,
    database: PathBuf,
    native_id: String,
    since_ms: u64,
    marks: Vec<String>,
}

impl Keeper {
    /// Whether the conversation, wherever the agent stores it, has all these marks.
    pub(super) fn is_held(&self, kept: &Kept, marks: &[String]) -> Result<bool, KeeperError> {
        // Without an answer the turn is not proven yet.
        Ok(self.is_held_by(self.agent, kept, marks)?.unwrap_or(false))
    }

    /// The same for a conversation of this agent; `None` when the database cannot be read now.
    pub(super) fn is_held_by(
        &self,
        agent: &dyn Agent,
        kept: &Kept,
        marks: &[String],
    ) -> Result<Option<bool>, KeeperError> {
        match kept {
            Kept::File { .. } => Ok(Some(kept.holds(agent, marks)?)),
            Kept::Database { path, native_id, since_ms } => {
                let question = Question {
                    agent: agent.name().to_owned(),
                    database: path.clone(),
                    native_id: native_id.clone(),
                    since_ms: *since_ms,
                    marks: marks.to_vec(),
                };
                Ok(ask(&self.handles, &question).ok().flatten())
            }
        }
    }
}

fn ask(handles: &Handles, question: &Question) -> io::Result<Option<bool>> {
    let mut file = File::from(rustix::fs::memfd_create("question", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(question)?)?;
    let process = handles.start_with(INQUIRY, QUESTION, file.as_fd()).map_err(io::Error::other)?;
    Ok(match answer(&process)? {
        Some(HELD) => Some(true),
        Some(NOT_HELD) => Some(false),
        Some(_) | None => None,
    })
}

/// The exit code of a short-lived process; the process is killed when it takes too long.
pub(super) fn answer(process: &Started) -> io::Result<Option<i32>> {
    let patience = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
    let mut fds = [PollFd::new(&process.pidfd, PollFlags::IN)];
    let ended = match poll(&mut fds, Some(&patience)) {
        Ok(count) => count > 0,
        Err(rustix::io::Errno::INTR) => false,
        Err(error) => return Err(error.into()),
    };
    if !ended {
        rustix::process::pidfd_send_signal(&process.pidfd, Signal::KILL)?;
    }
    Ok(spawn::collect(process.pid).and_then(WaitStatus::code))
}

/// The process called `__inquiry`.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    match inquire(arguments) {
        Ok(true) => HELD,
        Ok(false) => NOT_HELD,
        Err(_) => UNKNOWN,
    }
}

fn inquire(arguments: &[String]) -> io::Result<bool> {
    let handles = Handles::from_arguments(arguments)?;
    let mut file = File::from(rustix::io::fcntl_dupfd_cloexec(handles.need(QUESTION)?, 3)?);
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let question: Question = serde_json::from_slice(&bytes)?;
    let agent = ostler_agents::find(&question.agent).ok_or(io::ErrorKind::NotFound)?;
    let kept = Kept::Database { path: question.database, native_id: question.native_id, since_ms: question.since_ms };
    kept.holds(agent, &question.marks)
}
