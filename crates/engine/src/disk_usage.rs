//! How much disk space sessions use, and how much is free.

use crate::engine::Engine;
use crate::error::Result;
use crate::turns::store_folder;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::limits::default_min_free;
use ostler_store::disk_usage::Counter;
pub use ostler_store::disk_usage::DiskUsage;
use ostler_store::home::Place;
use ostler_sys::dir::{Dir, Space, space};
use serde::Serialize;
use std::path::Path;

/// One session on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionOnDisk {
    /// Its id.
    pub id: SessionId,
    /// Its name; a damaged folder has none.
    pub name: Option<String>,
    /// Whether it is archived.
    pub archived: bool,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its size by kind of data.
    #[serde(flatten)]
    pub usage: DiskUsage,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HomeOnDisk {
    /// The version of this object's format.
    pub schema: u32,
    /// The largest first.
    pub sessions: Vec<SessionOnDisk>,
    /// Bytes in the home that belong to no session; 0 when only some sessions were asked for.
    pub other: u64,
    /// Sessions and other, in bytes.
    pub total: u64,
    /// Free bytes of the file system. `None` when the home does not exist yet.
    pub disk_free: Option<u64>,
    /// The size of the file system.
    pub disk_size: Option<u64>,
    /// While fewer bytes than this are free, sessions write no output; 0: no minimum.
    pub min_free_space: Option<u64>,
}

impl HomeOnDisk {
    /// How many of the sessions are archived.
    #[must_use]
    pub fn archived(&self) -> usize {
        self.sessions.iter().filter(|one| one.archived).count()
    }
}

/// The sum over these sessions.
#[must_use]
pub fn total(sessions: &[SessionOnDisk]) -> DiskUsage {
    sessions.iter().fold(DiskUsage::default(), |sum, one| DiskUsage {
        output: sum.output + one.usage.output,
        checkpoints: sum.checkpoints + one.usage.checkpoints,
        snapshots: sum.snapshots + one.usage.snapshots,
        records: sum.records + one.usage.records,
    })
}

impl Engine {
    /// What these sessions use on the disk; without `only`, all of them and everything else in the home.
    pub fn disk_usage(&self, only: Option<Vec<Place>>) -> Result<HomeOnDisk> {
        let everything = only.is_none();
        let mut places = match only {
            Some(places) => places,
            None => self.home.live_places()?.into_iter().chain(self.home.archived_places()?).collect(),
        };
        // Always in the same order, so that a file that two sessions share is always counted for the same one.
        places.sort_by_key(|place| place.id);
        let mut counter = Counter::default();
        let mut sessions = Vec::new();
        for place in places {
            let mut usage = counter.session(&place.path)?;
            usage.snapshots += counter.unlinked(&store_folder(&self.home, place.id))?;
            let name = place.open().and_then(|folder| folder.session()).ok().and_then(|session| session.name);
            sessions.push(SessionOnDisk { id: place.id, name, archived: place.archived, bytes: usage.total(), usage });
        }
        sessions.sort_by_key(|one| std::cmp::Reverse(one.bytes));
        let other = if everything { counter.rest(self.home.root())? } else { 0 };
        let disk = disk_of(self.home.root())?;
        Ok(HomeOnDisk {
            schema: SCHEMA,
            total: total(&sessions).total() + other,
            sessions,
            other,
            disk_free: disk.map(|disk| disk.free),
            disk_size: disk.map(|disk| disk.total),
            min_free_space: disk.map(|disk| self.config.min_free_space.unwrap_or_else(|| default_min_free(disk.total))),
        })
    }
}

/// `None` when the home does not exist yet: the first session creates it.
fn disk_of(root: &Path) -> Result<Option<Space>> {
    match Dir::open(root) {
        Ok(dir) => Ok(Some(space(dir)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
