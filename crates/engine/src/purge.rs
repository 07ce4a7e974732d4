//! Deleting sessions permanently. Only sessions that have ended are deleted, and in two steps: the folder first gets a
//! hidden name that no list shows, then its files are deleted. A purge that is killed in between leaves no half session
//! behind, and the next one finishes its work.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::orphans;
use crate::quiesced::{NotQuiesced, Quiesced};
use crate::session_ref::SessionRef;
use ostler_store::archive_file;
use ostler_store::home::{Home, Place};
use ostler_sys::clock;
use ostler_sys::dir::Dir;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The beginning of a folder's name while its session is being deleted.
pub const GONE: &str = ".gone-";

/// Which sessions to delete.
#[derive(Clone, Copy, Debug, Default)]
pub struct Purge {
    /// Only sessions that ended at least this long ago.
    pub older_than: Option<Duration>,
    /// The user did not name the session: it is kept if its records are damaged.
    pub unnamed: bool,
    /// Delete nothing.
    pub dry_run: bool,
}

/// The result for one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// It is deleted.
    Yes,
    /// It would be deleted without `dry_run`.
    Would,
    /// It ended only this many seconds ago.
    TooYoung(i64),
}

impl Engine {
    /// Deletes a session that has ended. Processes that a lost session has left running are ended, each with a notice.
    pub fn purge(&self, place: &Place, purge: &Purge, tell: &mut dyn FnMut(Notice)) -> Result<Purged> {
        let still = Quiesced::take(place).map_err(|not| match not {
            NotQuiesced::Runs => Error::RunsForPurge { session: SessionRef::at(place) },
            NotQuiesced::Failed(error) => error,
        })?;
        let ended_s = match &still.view {
            Ok(view) => clock::now().as_second() - view.updated.as_second(),
            // The user did not name it, and it is not known when it ended.
            Err(damage) if purge.unnamed => {
                return Err(Error::DamagedForPurge { id: place.id, damage: damage.clone() });
            }
            Err(_) => i64::MAX,
        };
        let at_least_s = purge.older_than.map_or(0, |limit| i64::try_from(limit.as_secs()).unwrap_or(i64::MAX));
        if ended_s < at_least_s {
            return Ok(Purged::TooYoung(ended_s));
        }
        if purge.dry_run {
            return Ok(Purged::Would);
        }
        if let Ok(view) = &still.view {
            orphans::end_of_lost(place, view, tell)?;
        }
        self.forget_turns(place.id)?;
        delete(place, &still)?;
        self.forget_notifications(place.id)?;
        Ok(Purged::Yes)
    }

    /// Finishes the deletions of earlier purges that were killed.
    pub fn finish_purges(&self) -> Result<()> {
        leftovers(&self.home)?.iter().try_for_each(|folder| remove(folder))?;
        for month in self.home.months()? {
            archive_file::clear(&Dir::open(&month)?, &archive_file::lock(&self.home.archive())?)?;
        }
        Ok(())
    }
}

/// Deletes a session that is quiesced.
pub fn delete(place: &Place, still: &Quiesced) -> Result<()> {
    if place.is_packed() {
        // A packed session is one file, which is deleted in one step.
        return match std::fs::remove_file(&place.path) {
            Ok(()) => Ok(still.parent()?.sync()?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::CannotDelete { folder: place.path.clone(), error }),
        };
    }
    let hidden = format!("{GONE}{}", place.id);
    let path = still.parent_path().join(&hidden);
    // The rest of an earlier deletion of the same session, which has been put back since.
    remove(&path)?;
    still.rename(&still.parent()?, &hidden)?;
    remove(&path)
}

/// Another purge may delete the same folder at the same time, so files that are gone already are not an error.
pub fn remove(folder: &Path) -> Result<()> {
    loop {
        match std::fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound && !folder.exists() => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::CannotDelete { folder: folder.to_owned(), error }),
        }
    }
}

/// Sessions whose deletion was begun and never finished.
pub fn leftovers(home: &Home) -> Result<Vec<PathBuf>> {
    let names = |folder: &Path| match Dir::open(folder).and_then(|dir| dir.names()) {
        Ok(names) => Ok(names),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(Error::Unreadable { path: folder.to_owned(), error: error.to_string() }),
    };
    let archive = home.archive();
    let mut folders = vec![home.sessions()];
    folders.extend(names(&archive)?.into_iter().map(|month| archive.join(month)));
    let mut found = Vec::new();
    for folder in folders {
        found.extend(names(&folder)?.into_iter().filter(|name| name.starts_with(GONE)).map(|name| folder.join(name)));
    }
    Ok(found)
}
