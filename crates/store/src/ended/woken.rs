//! `woken/`: an empty file for each session that was at rest and then was written to, by the name of its id. What the index
//! of ended sessions says of these does not count.
//!
//! One file more has a number as its name, which the index carries too: if somebody deletes this folder and what was noted in
//! it, the index is compared with the folders of all sessions again.

use crate::journal::mark_of;
use ostler_core::id::SessionId;
use ostler_sys::dir::{Date, Dir};
use ostler_sys::lock;
use rustix::fs::OFlags;
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::Path;

const NAME: &str = "woken";
/// Begins the name of the file with the number.
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
    /// `None`: there is none, so that nothing is believed of which it should tell.
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

    /// The number of this folder, which gets one if it has none. For the one who holds the lock.
    pub fn number(&self) -> io::Result<u64> {
        if let Some(number) = self.noted()?.number {
            return Ok(number);
        }
        let now = format!("{} {}", ostler_sys::clock::now().as_nanosecond(), std::process::id());
        let number = mark_of(now.as_bytes());
        self.0.create(&format!("{NUMBER}{number:016x}"), b"")?;
        Ok(number)
    }

    /// One at a time replaces the index. `None`: somebody else is about to.
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

    /// The index has what became of the session since. The lock keeps others from waking it meanwhile.
    pub fn settle(&self, sessions: &Dir, id: SessionId, changed: Date) -> io::Result<()> {
        let file = sessions.file(&format!("{id}/{}", crate::summary::LOCKED), OFlags::RDWR)?;
        if let Some(_held) = lock::try_exclusive(file)?
            && sessions.changed(id.as_str())? == Some(changed)
        {
            self.0.remove(id.as_str())?;
        }
        Ok(())
    }

    /// Nothing has to be known of a session that is gone.
    pub fn forget_gone(&self, sessions: &Dir, ids: &HashSet<SessionId>) -> io::Result<()> {
        for id in ids {
            if sessions.changed(id.as_str())?.is_none() {
                self.0.remove(id.as_str())?;
            }
        }
        Ok(())
    }
}

/// From now on the index does not count for this session. `home`: the folder in which the folder of all sessions is. Without
/// an index there is nothing to note.
pub fn note(home: &Dir, id: SessionId) -> io::Result<()> {
    let noted = match home.open_dir(NAME) {
        Ok(woken) => woken.file(id.as_str(), OFlags::WRONLY | OFlags::CREATE).map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    // On a full disk, for example. Deleting needs no room.
    noted.or_else(|_| home.remove(super::NAME))
}
