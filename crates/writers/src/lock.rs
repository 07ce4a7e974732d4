//! The lock of a conversation's one writer, across all homes of a user.
//!
//! `writers/<agent>-<hash>.lock` below the user's own state folder, whatever `OSTLER_HOME` is. The agent inherits a
//! flock on that file and its holder keeps it; the file contains a record of the owner.
//!
//! Neither is enough alone:
//!
//! * A lock can be **dropped** while its writer lives: a launcher closes descriptors that it does not know, and an
//!   agent that reported its conversation's id only after its start never had the lock. So a lock that is not held
//!   counts as free only when the process on record has exited.
//! * A lock can **leak**: a tool of the agent inherits it and outlives all other processes. So a lock that is held
//!   counts only while the agent or a helper of its session lives; after that its file is removed, and the lock with
//!   it.
//! * A record can name a process that **cannot be seen** from here, in another pid namespace. Then the lock alone
//!   counts.
//!
//! A process that takes, reads or changes a lock does so under one short lock on the folder itself, so that no two of
//! them decide at the same time. The folder's lock is never held while a process waits for anything.

use crate::{Conversation, Variable, processes};
use ostler_core::id::SessionId;
use ostler_store::folder::Folder;
use ostler_store::home::{Home, hidden_name};
use ostler_sys::descriptors;
use ostler_sys::dir::Dir;
use ostler_sys::lock::{self, Held};
use ostler_sys::process::Identity;
use ostler_sys::process_table;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::FileExt;

/// The content of a lock's file: the owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    pub agent: String,
    pub native_id: String,
    pub session: SessionId,
    /// The path of the session.
    pub folder: String,
    /// The folder's device and inode: a copied home has the same ids at another place, a moved one has another path.
    pub folder_id: (u64, u64),
    /// The agent; `None` before it runs, and between two processes of a session that continues.
    pub process: Option<Identity>,
    /// The process that took the lock.
    pub helper: Identity,
    /// The pid namespace in which these process ids are valid.
    pub namespace: String,
}

impl Occupant {
    /// The record for this session.
    pub fn new(
        conversation: &Conversation,
        session: SessionId,
        folder: &Folder,
        process: Option<Identity>,
    ) -> io::Result<Occupant> {
        let stat = rustix::fs::fstat(folder.dir())?;
        let mut path = std::fs::read_link(descriptors::path_of(folder.dir()))?;
        // Until the records of a launch are complete, its folder has another name.
        if path.file_name().is_some_and(|name| *name == *hidden_name(session.as_str())) {
            path.set_file_name(session.as_str());
        }
        Ok(Occupant {
            agent: conversation.agent.clone(),
            native_id: conversation.native_id.clone(),
            session,
            folder: path.to_string_lossy().into_owned(),
            folder_id: (stat.st_dev, stat.st_ino),
            process,
            helper: Identity::me()?,
            namespace: process_table::namespace()?,
        })
    }

    /// Whether both are the same session, whichever of its processes asks.
    #[must_use]
    pub fn is_same_session(&self, other: &Occupant) -> bool {
        self.folder_id == other.folder_id && self.session == other.session
    }

    /// Whether it is this conversation. Its folder is not compared: it is that of the session, and does not change.
    #[must_use]
    pub fn is_same_conversation(&self, conversation: &Conversation) -> bool {
        self.agent == conversation.agent && self.native_id == conversation.native_id
    }

    /// Text that names the owner of the conversation, so that a person finds it.
    #[must_use]
    pub fn words(&self) -> String {
        let whose = format!("session {} in {}", self.session, self.folder);
        let agent = self.process.as_ref().and_then(processes::describe);
        match agent.or_else(|| processes::describe(&self.helper)) {
            Some(process) => format!("{}, {whose}", process.words()),
            None => whose,
        }
    }

    /// Whether the agent or a helper of its session lives. A process that cannot be examined counts as alive.
    fn is_there(&self) -> bool {
        self.process.as_ref().is_some_and(Identity::may_live) || self.helper.may_live() || self.is_kept()
    }

    /// Helpers and agents are replaced; the session's own records name the present ones.
    fn is_kept(&self) -> bool {
        let Ok(folder) = Dir::open(&self.folder) else {
            return false;
        };
        let same = rustix::fs::fstat(&folder).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.folder_id);
        let folder = Folder::new(folder);
        let helpers = [folder.holder(), folder.keeper()];
        let agent = folder.newest_run().and_then(|run| folder.run(run)).and_then(|run| run.record());
        let processes = helpers.into_iter().flatten().flatten().map(|helper| helper.process);
        same && processes.chain(agent.ok().and_then(|record| record.agent)).any(|process| process.may_live())
    }
}

/// The result of taking a conversation.
#[derive(Debug)]
pub enum Taken {
    /// It is ours for as long as any process has this file open.
    Yes(OwnedFd),
    No(Box<Occupant>),
    /// Another process holds the lock, and its file does not name the owner.
    ByUnknown,
}

/// The folder with the locks of a user.
#[derive(Debug)]
pub struct Writers(Dir);

impl Writers {
    pub fn open(variable: Variable<'_>) -> io::Result<Writers> {
        // If there is no home folder either, the sessions' own folder is used.
        let own = |name: &str| variable(name).filter(|_| name != "OSTLER_HOME");
        let home = Home::find(&own).or_else(|| Home::find(variable));
        let home = home.ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))?;
        let folder = home.root().join("writers");
        let made = home.open_or_make(&folder);
        made.map(Writers).map_err(|error| io::Error::other(format!("{error}; the conversation locks are there")))
    }

    /// Takes the conversation, unless another session has it. A session may take its own lock again: it has one keeper
    /// and one agent, with separate locks for both. If it lost this lock, the record in the file still proves that it
    /// is the owner.
    pub fn take(&self, conversation: &Conversation, me: &Occupant) -> io::Result<Taken> {
        let _guard = self.guard()?;
        match self.judge(conversation)? {
            Judged::Free => {}
            Judged::Has(occupant) if occupant.is_same_session(me) => {}
            Judged::Has(occupant) => return Ok(Taken::No(occupant)),
            Judged::Unnamed => return Ok(Taken::ByUnknown),
        }
        // A new file each time: no other process can have a copy of its lock, and it has no old content.
        self.0.remove(&conversation.file_name())?;
        let file = self.0.file(&conversation.file_name(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let held = lock::try_exclusive(file)?.ok_or_else(|| io::Error::other("a new file is locked"))?;
        let file = rustix::io::fcntl_dupfd_cloexec(held.file(), 3)?;
        write(&file, me).inspect_err(|_| {
            // A lock without a record would keep every session out. If the removal fails too, the lock is released when
            // this process exits.
            let _ = self.0.remove(&conversation.file_name());
        })?;
        Ok(Taken::Yes(file))
    }

    /// The session that has the conversation now.
    pub fn occupant(&self, conversation: &Conversation) -> io::Result<Option<Occupant>> {
        let _guard = self.guard()?;
        Ok(match self.judge(conversation)? {
            Judged::Has(occupant) => Some(*occupant),
            Judged::Free | Judged::Unnamed => None,
        })
    }

    /// Updates the record in a lock that we have.
    pub fn note(&self, lock: &OwnedFd, me: &Occupant) -> io::Result<()> {
        let _guard = self.guard()?;
        write(lock, me)
    }

    /// The record in a lock. `None` when its file was deleted, which frees the lock for others.
    pub fn noted(&self, lock: &OwnedFd) -> io::Result<Option<Occupant>> {
        let _guard = self.guard()?;
        if rustix::fs::fstat(lock)?.st_nlink == 0 {
            return Ok(None);
        }
        Ok(read(lock))
    }

    /// Releases the conversation, even if other processes have a copy of the lock.
    pub fn release(&self, conversation: &Conversation, lock: &OwnedFd) -> io::Result<()> {
        let _guard = self.guard()?;
        let name = conversation.file_name();
        let there = self.0.file(&name, OFlags::RDONLY).and_then(|file| Ok(rustix::fs::fstat(file)?));
        let ours = rustix::fs::fstat(lock)?;
        match there {
            Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => self.0.remove(&name),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn guard(&self) -> io::Result<Held> {
        // A separate open file description: a duplicate of ours would share the lock with every other user of it.
        let folder = rustix::fs::openat(
            &self.0,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )?;
        lock::exclusive(folder)
    }

    fn judge(&self, conversation: &Conversation) -> io::Result<Judged> {
        let file = match self.0.file(&conversation.file_name(), OFlags::RDWR) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Judged::Free),
            Err(error) => return Err(error),
        };
        let occupant = read(&file);
        let locked = lock::try_exclusive(file)?.is_none();
        let here = process_table::namespace()?;
        Ok(match occupant {
            Some(occupant) if occupant.namespace != here && locked => Judged::Has(Box::new(occupant)),
            Some(occupant) if occupant.namespace == here && occupant.is_there() => Judged::Has(Box::new(occupant)),
            Some(_) => Judged::Free,
            None if locked => Judged::Unnamed,
            None => Judged::Free,
        })
    }
}

enum Judged {
    Free,
    Has(Box<Occupant>),
    /// Locked, and its file contains no valid record.
    Unnamed,
}

/// `None` for a file that is empty or that a newer version wrote in another form.
fn read(file: &OwnedFd) -> Option<Occupant> {
    let mut bytes = vec![0; 16 << 10];
    let file = std::fs::File::from(rustix::io::fcntl_dupfd_cloexec(file, 3).ok()?);
    let length = file.read_at(&mut bytes, 0).ok()?;
    serde_json::from_slice(bytes.get(..length)?).ok()
}

fn write(file: &OwnedFd, occupant: &Occupant) -> io::Result<()> {
    let text = serde_json::to_vec(occupant)?;
    let file = std::fs::File::from(rustix::io::fcntl_dupfd_cloexec(file, 3)?);
    file.set_len(0)?;
    file.write_all_at(&text, 0)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
