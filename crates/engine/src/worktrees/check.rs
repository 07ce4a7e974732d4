//! A check: a command that has to succeed in a tree. It is a session like any other, so it is listed, logged and can be
//! stopped, and nothing that it has started outlives it.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::{COMMAND, Launch};
use crate::purge::Purge;
use crate::session_watch::SessionWatch;
use crate::stop::{Stop, StopHow};
use ostler_core::id::SessionId;
use ostler_core::outcome::{Kind, Outcome};
use ostler_core::view::View;
use ostler_git::worktree::Listed;
use ostler_store::home::Place;
use ostler_sys::ready::{self, Interest};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// When no process of a session lives and its end is about to be recorded, it is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A check that failed: its session, which is kept to be read, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedCheck {
    /// Its session.
    pub id: SessionId,
    /// How it ended; `None` when that is not known.
    pub outcome: Option<Outcome>,
}

impl Engine {
    /// Runs a command of the shell in a folder, for a session. `None`: it succeeded. When `leave` can be read, the
    /// command is ended.
    pub fn check(
        &self,
        command: &str,
        folder: &Path,
        of: SessionId,
        leave: Option<BorrowedFd<'_>>,
    ) -> Result<Option<FailedCheck>> {
        let launched = self.launch(
            Launch {
                agent: COMMAND.to_owned(),
                arguments: ["sh", "-c", command].map(str::to_owned).into(),
                cwd: Some(folder.to_owned()),
                labels: BTreeMap::from([("check-of".to_owned(), of.to_string())]),
                ..Launch::default()
            },
            &mut |_| {},
        )?;
        let Some(view) = self.until_checked(&launched.place, leave)? else {
            self.kill(vec![launched.place.clone()])?;
            let _ = self.purge(&launched.place, &Purge::default(), &mut |_| {});
            return Err(Error::Left);
        };
        if view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Succeeded) {
            // The session of a check that succeeded is not needed. If it cannot be deleted, it is only listed for
            // longer.
            let _ = self.purge(&launched.place, &Purge::default(), &mut |_| {});
            return Ok(None);
        }
        // An archived session can still be read, and is not the one that a person means by "the last one". If it cannot
        // be archived, it is only listed for longer.
        for archiving in self.stop_to_archive(vec![launched.place.clone()]) {
            let _ = self.archive(archiving, &mut |_| {});
        }
        Ok(Some(FailedCheck { id: launched.place.id, outcome: view.outcome }))
    }

    /// Waits until the check has ended; `None` when `leave` can be read first.
    fn until_checked(&self, place: &Place, leave: Option<BorrowedFd<'_>>) -> Result<Option<View>> {
        let mut watch = SessionWatch::state_only(place)?;
        loop {
            let view = self.view_without_last(place)?;
            if view.ended {
                return Ok(Some(view));
            }
            if !watch.has_keeper() {
                self.tend(place, &view)?;
                watch.take_news()?;
            }
            let until = watch.fd().is_none().then(|| Instant::now() + LOOK_AGAIN);
            let interests: Vec<Interest<'_>> = leave.into_iter().chain(watch.fd()).map(Interest::read).collect();
            let ready = ready::wait(&interests, until)?;
            if leave.is_some() && ready.first() == Some(&true) {
                return Ok(None);
            }
            if watch.fd().is_none() || ready.last() == Some(&true) {
                watch.take_news()?;
            }
        }
    }

    /// Ends the sessions that still run in trees that are about to be removed: checks whose landing was killed.
    pub(crate) fn end_checks_in(&self, trees: &[Listed]) -> Result<()> {
        let running = self.sessions_by_tree(trees)?.into_values().filter(|view| !view.ended);
        let places = running
            .filter_map(|view| self.home.place_of(view.id).transpose())
            .collect::<std::result::Result<Vec<_>, _>>()?;
        self.kill(places)
    }

    fn kill(&self, places: Vec<Place>) -> Result<()> {
        let stop = Stop { how: StopHow::Kill, grace: Duration::ZERO, why: "ostler land".to_owned() };
        for stopping in self.stop(places, &stop)? {
            stopping.wait(&mut |_| {})?;
        }
        Ok(())
    }
}
