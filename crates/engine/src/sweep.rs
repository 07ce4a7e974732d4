//! Archiving sessions that ended long ago, and deleting sessions that were archived long ago, as config.toml says
//! (`archive_after`, `purge_after`; both off unless set).
//!
//! There is no daemon for this. A sweep happens at most once an hour, after `run` has started something. It ends
//! nothing: a session that runs, or has messages waiting, is left where it is. Archiving can be undone; deleting
//! cannot, and needs a clock that can be trusted (`trust`).

mod trust;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::purge;
use crate::quiesced::{NotQuiesced, Quiesced};
use crate::session_ref::SessionRef;
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::archived;
use ostler_store::home::Place;
use ostler_sys::{clock, lock};
use ostler_view::look;
use rustix::fs::OFlags;
use std::io::{Read, Write};
use std::time::Duration;
use trust::Look;

/// Locked during a sweep; contains what the clocks showed at the last one.
const LOCK: &str = "sweep.lock";

/// How many sessions were archived and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many were archived.
    pub archived: usize,
    /// How many were deleted.
    pub purged: usize,
}

impl Engine {
    /// Sweeps if that is configured and due, and makes sure that waiting notifications are sent. `started`: the session
    /// that was started just now. It is not archived, because the caller follows it to its end.
    pub fn sweep_when_due(&self, started: SessionId, tell: &mut dyn FnMut(Notice)) -> Result<Swept> {
        self.send_what_waits()?;
        match self.config.archive_after.is_none() && self.config.purge_after.is_none() {
            true => Ok(Swept::default()),
            false => sweep_once(self, started, tell),
        }
    }
}

fn sweep_once(engine: &Engine, started: SessionId, tell: &mut dyn FnMut(Notice)) -> Result<Swept> {
    let mut swept = Swept::default();
    let home = engine.home.open_or_make(engine.home.root())?;
    let file = home.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
    let mut noted = std::fs::File::from(rustix::io::fcntl_dupfd_cloexec(&file, 3).map_err(std::io::Error::from)?);
    let Some(_held) = lock::try_exclusive(file)? else {
        return Ok(swept);
    };
    let mut text = Vec::new();
    noted.read_to_end(&mut text)?;
    // The file is empty the first time; an older ostler has left one without this content.
    let (before, look) = (serde_json::from_slice::<Look>(&text).ok(), Look::now());
    if before.as_ref().is_some_and(|before| look.is_soon_after(before)) {
        return Ok(swept);
    }
    note(&mut noted, &look)?;
    if let Some(age) = engine.config.archive_after {
        swept.archived = archive_ended(engine, age, started, tell)?;
    }
    if let (Some(age), true) = (engine.config.purge_after, before.is_some_and(|before| look.agrees_with(&before))) {
        swept.purged = purge_archived(engine, age)?;
    }
    Ok(swept)
}

/// A process that is killed in the middle leaves an incomplete note, which is ignored.
fn note(file: &mut std::fs::File, look: &Look) -> Result<()> {
    let text = serde_json::to_vec(look).map_err(std::io::Error::from)?;
    file.set_len(0)?;
    std::io::Seek::rewind(file)?;
    Ok(file.write_all(&text)?)
}

/// Whether a session ended at least this long ago, and no message waits for it.
pub fn is_over(view: &View, age: Duration) -> bool {
    view.ended && view.queued == 0 && is_older(view.updated, age)
}

/// Whether a time is longer ago than this.
pub fn is_older(than: Timestamp, age: Duration) -> bool {
    let seconds = clock::now().as_second() - than.as_second();
    u64::try_from(seconds).is_ok_and(|seconds| seconds >= age.as_secs())
}

fn archive_ended(engine: &Engine, age: Duration, started: SessionId, tell: &mut dyn FnMut(Notice)) -> Result<usize> {
    let mut swept = 0;
    for place in engine.home.live_places()?.into_iter().filter(|place| place.id != started) {
        // A session that cannot be read stays, and doctor names it. A session that was resumed meanwhile stays, too.
        if look::look(&place).is_ok_and(|view| is_over(&view, age)) && engine.archive_one_ended(&place, tell).is_ok() {
            swept += 1;
        }
    }
    Ok(swept)
}

/// The age counts from the archiving, so that an old session is not deleted right after a person archived it.
fn purge_archived(engine: &Engine, age: Duration) -> Result<usize> {
    let mut swept = 0;
    for place in engine.home.archived_places()? {
        if is_long_away(&place, age).unwrap_or(false) {
            let still = match Quiesced::take(&place) {
                Ok(still) => still,
                Err(NotQuiesced::Runs) => continue,
                Err(NotQuiesced::Failed(error)) => {
                    return Err(Error::About {
                        session: SessionRef { id: place.id, name: None },
                        error: Box::new(error),
                    });
                }
            };
            purge::delete(&place, &still)?;
            engine.forget_notifications(place.id)?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// A session without a note was archived by an older ostler; it is not known when.
fn is_long_away(place: &Place, age: Duration) -> Result<bool> {
    Ok(archived::noted(&place.open()?)?.is_some_and(|archived| is_older(archived.at, age)))
}
