//! Putting away what has ended long ago, and deleting what was put away long ago, as config.toml wants it
//! (`archive_after`, `purge_after`; both off unless set).
//!
//! There is no daemon to do it. It happens at most once an hour, after `run` has started something, and is said on
//! standard error. It ends nothing and never fails the command: whoever runs, or has messages waiting, is left where it is.

use super::{archive, purge};
use crate::context::Context;
use crate::exit::{Failure, Result};
use crate::say::tell;
use crate::still::{NotStill, Still};
use jiff::Timestamp;
use ostler_core::limits::counted;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_store::{archived, look};
use ostler_sys::lock;
use rustix::fs::OFlags;
use std::time::{Duration, SystemTime};

const EVERY: Duration = Duration::from_secs(3600);
/// Locked while somebody sweeps; its time is when that was last done.
const LOCK: &str = "sweep.lock";

/// Sweeps when it is wanted and due.
pub fn when_due(context: &Context) {
    let config = &context.config;
    if config.archive_after.is_none() && config.purge_after.is_none() {
        return;
    }
    if let Err(failure) = sweep_once(context) {
        tell!("ostler: the sweep that config.toml wants did not work: {failure}");
    }
}

fn sweep_once(context: &Context) -> Result<()> {
    let home = context.home.open_or_make(context.home.root())?;
    let file = home.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
    let done = std::fs::File::from(rustix::io::fcntl_dupfd_cloexec(&file, 3).map_err(std::io::Error::from)?);
    let Some(_held) = lock::try_exclusive(file)? else {
        return Ok(());
    };
    // An empty file has never been swept by; one byte is the sign that somebody was.
    let stat = done.metadata()?;
    let fresh = stat.modified()?.elapsed().is_ok_and(|age| age < EVERY);
    if stat.len() > 0 && fresh {
        return Ok(());
    }
    std::os::unix::fs::FileExt::write_all_at(&done, b"\n", 0)?;
    done.set_modified(SystemTime::now())?;
    if let Some(age) = context.config.archive_after {
        let swept = archive_ended(context, age)?;
        say_how_many("archived", swept, "archive_after");
    }
    if let Some(age) = context.config.purge_after {
        let swept = purge_archived(context, age)?;
        say_how_many("purged", swept, "purge_after");
    }
    Ok(())
}

fn say_how_many(done: &str, count: usize, setting: &str) {
    if count > 0 {
        tell!("ostler: {done} {} ({setting} in config.toml)", counted(count as u64, "session", "sessions"));
    }
}

/// Whether a session has ended, so long ago, and nobody wants anything more of it.
pub fn is_over(view: &View, age: Duration) -> bool {
    view.ended && view.queued == 0 && is_older(view.updated, age)
}

pub fn is_older(than: Timestamp, age: Duration) -> bool {
    let seconds = Timestamp::now().as_second() - than.as_second();
    u64::try_from(seconds).is_ok_and(|seconds| seconds >= age.as_secs())
}

fn archive_ended(context: &Context, age: Duration) -> Result<usize> {
    let mut swept = 0;
    for place in context.home.live_places()? {
        // What cannot be read, or was resumed meanwhile, stays: doctor names the one, and nobody misses the other.
        if look::look(&place).is_ok_and(|view| is_over(&view, age)) && archive::put_away(context, &place).is_ok() {
            swept += 1;
        }
    }
    Ok(swept)
}

/// Counted from when it was put away, so that nothing old is deleted right after a person archived it.
fn purge_archived(context: &Context, age: Duration) -> Result<usize> {
    let mut swept = 0;
    for place in context.home.archived_places()? {
        if is_long_away(&place, age).unwrap_or(false) {
            let still = match Still::take(&place) {
                Ok(still) => still,
                Err(NotStill::Runs) => continue,
                Err(NotStill::Failed(failure)) => {
                    return Err(Failure { words: format!("{}: {failure}", place.id), ..failure });
                }
            };
            purge::delete(&place, &still)?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// One without a note was put away by an older ostler, and nobody knows when.
fn is_long_away(place: &Place, age: Duration) -> Result<bool> {
    Ok(archived::noted(&place.open()?)?.is_some_and(|archived| is_older(archived.at, age)))
}
