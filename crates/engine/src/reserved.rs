//! Steps that are safe to repeat: a session whose id was reserved is launched once, a message whose id was reserved is
//! sent once. A driver records the id first. If it is killed in the middle, it repeats the step and finds what it has
//! done already.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::new_id;
use crate::notice::Notice;
use crate::request::{self, Answered, look_and_record_to};
use crate::resume::Resume;
use crate::send::Sent;
use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_core::record::RequestKind;
use ostler_core::view::View;
use ostler_store::home::{Place, hidden_name};
use ostler_sys::lock;
use ostler_sys::notify::Watcher;
use ostler_sys::ready::{self, Interest};
use ostler_view::look::Depth;
use rustix::fd::AsFd;
use rustix::fs::OFlags;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// A launch renames its folder when it is complete, and that is watched. A launch that was killed is noticed after this
/// time.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Engine {
    /// An id that no session has, for [`crate::Launch::id`].
    #[must_use]
    pub fn reserve_session(&self) -> SessionId {
        new_id()
    }

    /// An id for [`Engine::send_once`].
    #[must_use]
    pub fn reserve_request(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    /// The session that has this reserved id. A launch that is still under way is waited for, because it may go on
    /// after its launcher was killed. What a killed launch has left behind is removed. `None`: there is no such
    /// session, and none will appear.
    pub fn settled(&self, id: SessionId) -> Result<Option<Place>> {
        let hidden = hidden_name(id.as_str());
        let watcher = Watcher::new().ok();
        if let Some(watcher) = &watcher {
            let _ = watcher.watch(&self.home.sessions());
        }
        loop {
            let sessions = match ostler_sys::dir::Dir::open(self.home.sessions()) {
                Ok(sessions) => sessions,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            // The hidden name first: the folder may get its real name while we look.
            let folder = match sessions.file(&hidden, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(folder) => folder,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(self.home.place_of(id)?),
                Err(error) => return Err(error.into()),
            };
            if let Some(held) = lock::try_exclusive(folder)? {
                // No process of that launch lives. The folder has its real name by now, or will never get it.
                let stat = rustix::fs::fstat(held.file()).map_err(std::io::Error::from)?;
                let there = sessions.stat(&hidden)?;
                if there.is_some() && sessions.open_dir(&hidden)?.inode()? == stat.st_ino {
                    sessions.remove_all(&hidden)?;
                }
                continue;
            }
            let fds: Vec<_> = watcher.iter().map(|watcher| Interest::read(watcher.as_fd())).collect();
            ready::wait(&fds, Some(Instant::now() + LOOK_AGAIN))?;
            if let Some(watcher) = &watcher {
                watcher.changed()?;
            }
        }
    }

    /// Sends a message under a reserved id. A repeated call finds the message that was written and returns the answer
    /// to it.
    pub fn send_once(&self, place: &Place, id: &str, text: String) -> Result<Sent> {
        match request::make_once(self, place, id, RequestKind::Message { text, now: false })? {
            Answered::Accepted => Ok(Sent::Accepted),
            Answered::Refused(why) => Err(Error::Refused { session: SessionRef::at(place), why }),
            Answered::Ended(_) => Ok(Sent::ForNextRun),
        }
    }

    /// Starts the next run of a session that has ended, unless that was done already.
    pub fn resume_once(&self, place: &Place, request: Resume, tell: &mut dyn FnMut(Notice)) -> Result<()> {
        match self.resume(place, request, tell) {
            Ok(_) => Ok(()),
            // Another process was first, or the same driver before it was killed.
            Err(_) if !look_and_record_to(Depth::Awaited, place)?.ended => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes sure that a session that runs has a keeper. Where both helpers were killed, the session would make no
    /// progress until the next command.
    pub fn tend(&self, place: &Place, view: &View) -> Result<()> {
        if !view.ended && !view.kept {
            drop(request::reach(self, place)?);
        }
        Ok(())
    }
}
