//! `woken/`: an empty file for each session that was at rest and then was written to, by the name of its id. What the index
//! of ended sessions says of these does not count.
//!
//! The index carries the inode of this folder: if somebody deletes the folder, the index is compared with all folders again.

use ostler_core::id::SessionId;
use ostler_sys::dir::{Date, Dir};
use ostler_sys::lock;
use rustix::fs::OFlags;
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::Path;

const NAME: &str = "woken";

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

    pub fn inode(&self) -> Option<u64> {
        self.0.inode().ok()
    }

    /// One at a time replaces the index. `None`: somebody else is about to.
    pub fn lock(&self) -> Option<lock::Held> {
        lock::try_exclusive(self.0.duplicate().ok()?.into()).ok()?
    }

    pub fn ids(&self) -> io::Result<HashSet<SessionId>> {
        let mut ids = HashSet::new();
        self.0.each_name(|name| ids.extend(SessionId::from_bytes(name)))?;
        Ok(ids)
    }

    /// The index has what became of the session since. The lock keeps others from waking it meanwhile.
    pub fn settle(&self, sessions: &Dir, id: SessionId, changed: Date) -> io::Result<()> {
        let file = sessions.file(&format!("{id}/{}", crate::rest::LOCKED), OFlags::RDWR)?;
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
