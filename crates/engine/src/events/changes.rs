//! Waits until something may have changed: one inotify instance watches the folders that contain sessions, and each
//! session's own folder. A user has few instances and watches. When none is available, we look every 200 ms and report
//! that.

use crate::engine::Engine;
use crate::error::Result;
use crate::notice::Notice;
use ostler_core::id::SessionId;
use ostler_store::home::{Home, Place, is_month};
use ostler_sys::notify::{Watch, Watcher};
use ostler_sys::ready::{self, Interest};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often to look when files cannot be watched.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What may have changed.
pub enum News {
    /// The output has no reader any more.
    ReaderGone,
    /// It is not known what: look everywhere.
    Anything,
    /// Only these.
    Some {
        /// A folder that contains sessions was created or removed.
        folders: bool,
        /// These sessions were created, removed or moved.
        moved: Vec<SessionId>,
        /// Files of these sessions have changed.
        sessions: Vec<SessionId>,
    },
}

/// What is watched.
#[derive(Clone, Copy)]
enum Watched {
    /// The home or the archive, which contain folders of sessions.
    Above,
    /// A folder that contains sessions.
    Sessions,
    Session(SessionId),
}

/// Watches the folders of sessions.
pub struct Changes {
    /// `None`: files cannot be watched, so we look at intervals.
    watcher: Option<Watcher>,
    by_watch: HashMap<Watch, Watched>,
    by_session: HashMap<SessionId, Watch>,
    /// The files in a session's folder that matter; empty: all of them.
    only: &'static [&'static str],
    /// Called when files cannot be watched.
    tell: fn(Notice),
}

impl Changes {
    /// Reports changes of every file directly in the folder of a session.
    #[must_use]
    pub fn new(tell: fn(Notice)) -> Changes {
        Changes::in_files(&[], tell)
    }

    /// Reports changes of these files of each session.
    #[must_use]
    pub fn in_files(only: &'static [&'static str], tell: fn(Notice)) -> Changes {
        let mut changes = Changes { watcher: None, by_watch: HashMap::new(), by_session: HashMap::new(), only, tell };
        match Watcher::new() {
            Ok(watcher) => changes.watcher = Some(watcher),
            Err(error) => changes.do_without(&error),
        }
        changes
    }

    fn do_without(&mut self, error: &io::Error) {
        (self.tell)(Notice::NoFileWatch { error: error.to_string() });
        *self = Changes { watcher: None, by_watch: HashMap::new(), by_session: HashMap::new(), ..*self };
    }

    /// Watches the folders that contain sessions, including new ones. Watching a folder again is harmless.
    pub fn watch_folders(&mut self, home: &Home) {
        let archive = home.archive();
        let months = std::fs::read_dir(&archive).into_iter().flatten().flatten().map(|entry| entry.path());
        let sessions = months.chain([home.sessions()]).map(|folder| (folder, Watched::Sessions));
        let above = [home.root().to_owned(), archive.clone()].map(|folder| (folder, Watched::Above));
        for (folder, what) in above.into_iter().chain(sessions.collect::<Vec<_>>()) {
            if let Some(watch) = self.watch(&folder) {
                self.by_watch.insert(watch, what);
            }
        }
    }

    /// Watches a session's own folder.
    pub fn watch_session(&mut self, place: &Place) {
        if !self.by_session.contains_key(&place.id)
            && let Some(watch) = self.watch(&place.path)
        {
            self.by_watch.insert(watch, Watched::Session(place.id));
            self.by_session.insert(place.id, watch);
        }
    }

    /// Stops watching a session that was archived or deleted.
    pub fn forget_session(&mut self, id: SessionId) {
        if let (Some(watch), Some(watcher)) = (self.by_session.remove(&id), &self.watcher) {
            self.by_watch.remove(&watch);
            watcher.forget(watch);
        }
    }

    fn watch(&mut self, path: &Path) -> Option<Watch> {
        match self.watcher.as_ref()?.watch(path) {
            Ok(watch) => Some(watch),
            // The folder is gone again; its removal is reported by the watch on the folder above it.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                self.do_without(&error);
                None
            }
        }
    }

    /// Watches every session that is not archived, and the folders that contain sessions.
    pub fn watch_all(&mut self, engine: &Engine) -> Result<()> {
        engine.home.open_or_make(&engine.home.sessions())?;
        self.watch_folders(&engine.home);
        engine.home.live_places()?.iter().for_each(|place| self.watch_session(place));
        Ok(())
    }

    /// Readable when something has changed; `None` when files cannot be watched.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.watcher.as_ref().map(AsFd::as_fd)
    }

    /// When to look again where files cannot be watched.
    #[must_use]
    pub fn look_again(&self) -> Option<Instant> {
        self.watcher.is_none().then(|| Instant::now() + LOOK_AGAIN)
    }

    /// Waits for a change, until `other` can be read, until the time is up, or until `output` has no reader any more.
    pub fn wait(
        &mut self,
        output: impl AsFd,
        other: Option<BorrowedFd<'_>>,
        at_most: Option<Duration>,
    ) -> Result<News> {
        // Even when no event is requested, poll reports that the reader of a pipe is gone.
        let mut interests = vec![Interest { fd: output.as_fd(), read: false, write: false }];
        interests.extend([self.fd(), other].into_iter().flatten().map(Interest::read));
        let until = self.look_again().or_else(|| at_most.map(|limit| Instant::now() + limit));
        if ready::wait(&interests, until)?[0] {
            return Ok(News::ReaderGone);
        }
        self.take_news()
    }

    /// What has changed since the last call, without waiting.
    pub fn take_news(&mut self) -> Result<News> {
        let Some(watcher) = &self.watcher else {
            return Ok(News::Anything);
        };
        let changed = watcher.changed_names()?;
        if changed.iter().any(|(watch, _)| watch.is_everything()) {
            return Ok(News::Anything);
        }
        let (mut folders, mut moved, mut sessions) = (false, Vec::new(), Vec::new());
        for (watch, name) in changed {
            match self.by_watch.get(&watch) {
                // Without a name, the folder itself is gone.
                Some(Watched::Above | Watched::Sessions) if name.is_empty() => folders = true,
                // Other names are not ours, or are locks and caches.
                Some(Watched::Above) => folders |= name == "sessions" || name == "archive" || is_month(&name),
                Some(Watched::Sessions) => moved.extend(SessionId::parse(&name)),
                Some(&Watched::Session(id)) => {
                    let counts =
                        (self.only.is_empty() || self.only.iter().any(|only| *only == name)) && !sessions.contains(&id);
                    sessions.extend(counts.then_some(id));
                }
                // The session was archived or deleted.
                None => {}
            }
        }
        Ok(News::Some { folders, moved, sessions })
    }
}
