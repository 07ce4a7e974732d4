//! `woken/`: an empty file for each session that was at rest and was then written to; its name is the session's id. The
//! records of these sessions in the index of ended sessions are not valid.
//!
//! One more file has a number as its name, which is also in the index: if this folder is deleted with its notes, the
//! index is compared with the folders of all sessions again.

use crate::journal::mark_of;
use ostler_core::id::SessionId;
use ostler_sys::dir::{Date, Dir};
use ostler_sys::lock;
use rustix::fs::OFlags;
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::Path;

const NAME: &str = "woken";
/// The prefix of the file with the number.
const NUMBER: &str = ".number-";

/// What the folder says.
#[derive(Debug, Default)]
pub struct Noted {
    pub ids: HashSet<SessionId>,
    pub number: Option<u64>,
}

/// The folder, open.
#[derive(Debug)]
pub struct Woken(Dir);

impl Woken {
    /// `None`: there is no such folder, so the index cannot be trusted.
    pub fn open(home: &Path) -> Option<Woken> {
        Dir::open(home.join(NAME)).ok().map(Woken)
    }

    pub fn open_or_make(home: &Dir) -> io::Result<Woken> {
        match home.make_dir(NAME) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        home.open_dir(NAME).map(Woken)
    }

    /// The number of this folder, which gets one if it has none. The caller holds the lock.
    pub fn number(&self) -> io::Result<u64> {
        if let Some(number) = self.noted()?.number {
            return Ok(number);
        }
        let now = format!("{} {}", ostler_sys::clock::now().as_nanosecond(), std::process::id());
        let number = mark_of(now.as_bytes());
        self.0.create(&format!("{NUMBER}{number:016x}"), b"")?;
        Ok(number)
    }

    /// Only one process at a time replaces the index. `None`: another process is doing so.
    pub fn lock(&self) -> Option<lock::Held> {
        lock::try_exclusive(self.0.duplicate().ok()?.try_into().ok()?).ok()?
    }

    pub fn noted(&self) -> io::Result<Noted> {
        let mut noted = Noted::default();
        let number = |name: &[u8]| {
            let digits = std::str::from_utf8(name).ok()?.strip_prefix(NUMBER)?;
            u64::from_str_radix(digits, 16).ok()
        };
        self.0.each_name(|name| match SessionId::from_bytes(name) {
            Some(id) => drop(noted.ids.insert(id)),
            None => noted.number = noted.number.or(number(name)),
        })?;
        Ok(noted)
    }

    /// Removes the note, because the index has a newer record of the session. The lock prevents other processes from
    /// writing to the session meanwhile.
    pub fn settle(&self, sessions: &Dir, id: SessionId, changed: Date) -> io::Result<()> {
        let file = sessions.file(&format!("{id}/{}", crate::summary::LOCKED), OFlags::RDWR)?;
        if let Some(_held) = lock::try_exclusive(file)?
            && sessions.changed(id.as_str())? == Some(changed)
        {
            self.0.remove(id.as_str())?;
        }
        Ok(())
    }

    /// Removes the notes of sessions that are gone.
    pub fn forget_gone(&self, sessions: &Dir, ids: &HashSet<SessionId>) -> io::Result<()> {
        for id in ids {
            if sessions.changed(id.as_str())?.is_none() {
                self.0.remove(id.as_str())?;
            }
        }
        Ok(())
    }
}

/// From now on the record of this session in the index is not valid. `home`: the folder in which the folder of all
/// sessions is. Without an index there is nothing to note.
pub fn note(home: &Dir, id: SessionId) -> io::Result<()> {
    let noted = match home.open_dir(NAME) {
        Ok(woken) => woken.file(id.as_str(), OFlags::WRONLY | OFlags::CREATE).map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    // The note cannot be written, on a full disk for example. Deleting the index needs no room.
    noted.or_else(|_| home.remove(super::NAME))
}
