//! Archiving sessions and restoring them. Lists do not show archived sessions unless asked to; apart from that, they
//! are read as before.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::moved;
use crate::notice::Notice;
use crate::orphans;
use crate::owners::refuse_others;
use crate::quiesced::{NotQuiesced, Quiesced};
use crate::session_ref::SessionRef;
use crate::stop::{self, End, Stopped, Stopping};
use crate::sweep::{is_older, is_over};
use jiff::tz::TimeZone;
use ostler_core::event::StopHow;
use ostler_core::record::Renamed;
use ostler_core::view::{Phase, View};
use ostler_store::home::Place;
use ostler_store::{archive_file, archived, checkpoints, ended};
use ostler_sys::clock;
use ostler_sys::pause_points::{self, Point};
use ostler_view::look;
use std::path::Path;
use std::time::Duration;

/// A session that is being ended, as `stop` does it, and is archived afterwards.
pub struct Archiving {
    place: Place,
    asked: Result<Stopping>,
}

/// A restored session.
#[derive(Debug)]
pub struct Restored {
    /// A warning for the user when the transcript was changed, removed or created while the session was archived.
    pub alarm: Option<String>,
    /// The files that were damaged in the archive. A damaged record is kept under its name with `.damaged` at the end.
    pub damaged: Vec<String>,
}

fn about(place: &Place, error: Error) -> Error {
    let error = match error {
        // `Error::About` names the session already.
        Error::Store(error) => Error::Store(error.without_session()),
        error => error,
    };
    Error::About { session: SessionRef::at(place), error: Box::new(error) }
}

impl Engine {
    /// Asks all of these sessions to end. [`Engine::archive`] then archives each of them.
    #[must_use]
    pub fn stop_to_archive(&self, places: Vec<Place>) -> Vec<Archiving> {
        let stop = stop::Stop { how: StopHow::Interrupt, grace: self.config.grace, why: "archive".to_owned() };
        let ask = |place: Place| {
            if place.archived {
                let session = SessionRef::at(&place);
                return Archiving { place, asked: Err(Error::AlreadyArchived { session }) };
            }
            let asked = self.has_place_in_archive(&place).and_then(|()| self.ask_to_stop(place.clone(), &stop));
            let asked = asked.map_err(|error| about(&place, error));
            Archiving { place, asked }
        };
        places.into_iter().map(ask).collect()
    }

    /// A session that cannot be archived is not stopped for it.
    fn has_place_in_archive(&self, place: &Place) -> Result<()> {
        match self.home.archived_place_of(place.id)? {
            // Otherwise another command has archived it just now.
            Some(archived) if place.path.is_dir() => {
                Err(Error::AnotherIsArchived { id: place.id, archived: archived.path })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until a session has ended, and archives it.
    pub fn archive(&self, archiving: Archiving, tell: &mut dyn FnMut(Notice)) -> Result<End> {
        let Archiving { place, asked } = archiving;
        let end = self.until_over(&place, asked, tell).map_err(|error| moved::or_else(&place, error))?;
        self.wait_for_snapshot(place.id)?;
        self.archive_one_ended(&place, tell)?;
        Ok(end)
    }

    fn until_over(&self, place: &Place, asked: Result<Stopping>, tell: &mut dyn FnMut(Notice)) -> Result<End> {
        let end = match asked?.wait(tell)? {
            Stopped::Ended(end) => end,
            Stopped::Damaged { damage } => return Err(Error::DamagedForArchive { id: place.id, damage }),
        };
        // A conversation that another process is writing has not ended.
        if let Some(native_id) = &end.view.native_id {
            refuse_others(&self.environment, end.view.conversation_agent(), native_id, Some(&place.open()?))
                .map_err(|error| about(place, error))?;
        }
        Ok(end)
    }

    /// The sessions that have not changed for this long and have no queued message: ended, or idle and waiting for a
    /// message.
    pub fn idle_for(&self, age: Duration) -> Result<Vec<Place>> {
        let waits = |view: &View| view.state == Phase::Idle && view.queued == 0 && is_older(view.updated, age);
        let mut places = self.home.live_places()?;
        places.retain(|place| look::look(place).is_ok_and(|view| is_over(&view, age) || waits(&view)));
        places.sort_by_key(|place| place.id);
        Ok(places)
    }

    /// Archives a session that has ended.
    pub fn archive_one_ended(&self, place: &Place, tell: &mut dyn FnMut(Notice)) -> Result<()> {
        let id = place.id;
        let still = Quiesced::take(place).map_err(|not| match not {
            NotQuiesced::Runs => Error::StartedAgain { id },
            NotQuiesced::Failed(error) => error,
        })?;
        let view = match &still.view {
            Ok(view) => view,
            Err(damage) => {
                return Err(Error::DamagedForArchive { id, damage: damage.clone() });
            }
        };
        orphans::end_of_lost(place, view, tell)?;
        let folder = place.open()?;
        // A copy of the transcript as it is now, in case another program changes it while the session is archived.
        if let (Some(transcript), true) = (&view.transcript, self.config.autosave.is_some())
            && let Some(words) = checkpoints::save(&folder, Path::new(transcript), clock::now())?.words(id)
        {
            tell(Notice::TranscriptChanged { id, words });
        }
        archived::note(&folder, &self.actor(), view.updated, view.transcript.as_deref())?;
        let month = view.created.to_zoned(TimeZone::UTC).strftime("%Y-%m").to_string();
        let archive = self.home.archive();
        let into = self.home.open_or_make(&archive.join(&month))?;
        ended::forget_in_month(self.home.root(), &month, id)?;
        // The name of the month's folder has to be on the disk, too, before a session is moved into it.
        self.home.open_or_make(&archive)?.sync()?;
        pause_points::at(Point::ArchiveNoted);
        still.rename(&into, id.as_str())?;
        pause_points::at(Point::ArchiveMoved);
        // The session is archived in either form: when it cannot be packed now, it is read as a folder.
        let _ = archive_file::lock(&archive).and_then(|lock| archive_file::pack(&into, id, &lock));
        Ok(())
    }

    /// Restores an archived session.
    pub fn restore(&self, place: &Place) -> Result<Restored> {
        let id = place.id;
        if !place.archived {
            return Err(Error::NotArchived { session: SessionRef::at(place) });
        }
        let take = || {
            Quiesced::take(place).map_err(|not| match not {
                NotQuiesced::Runs => Error::InUse { id },
                NotQuiesced::Failed(error) => error,
            })
        };
        let mut damaged = Vec::new();
        if place.is_packed() {
            let still = take()?;
            damaged = archive_file::unpack(&still.parent()?, id, still.held())?;
        }
        let still = take()?;
        let alarm = archived::noted(&place.open()?)?.map(|archived| archived.alarm(id)).transpose()?.flatten();
        // A launch with a name compares it with the names of all sessions while it holds this lock.
        let names = self.home.lock_names()?;
        still.rename(&self.home.open_or_make(&self.home.sessions())?, id.as_str())?;
        drop(names);
        pause_points::at(Point::RestoreMoved);
        Ok(Restored { alarm, damaged })
    }

    /// Renames a session.
    pub fn rename(&self, place: &Place, name: &str) -> Result<()> {
        if place.archived {
            return Err(Error::ArchivedWithName { session: SessionRef::at(place) });
        }
        // When several commands ask for one name at the same time, only one of them gets it.
        let _names = self.home.lock_names()?;
        let folder = place.open()?;
        if folder.session()?.name.as_deref() != Some(name) {
            self.check_name(name)?;
            let renamed = Renamed { name: name.to_owned(), at: clock::now(), by: self.actor() };
            folder.rename(&self.home, place.id, &renamed)?;
        }
        Ok(())
    }
}
