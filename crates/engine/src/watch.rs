//! Watching many sessions: one stream of typed changes, read from files only. One descriptor becomes readable when
//! there is something new, so that a face with its own event loop can wait for it. Only what has changed is read.

use crate::engine::Engine;
use crate::error::Result;
use crate::events::{Changes, News};
use crate::list::{Filter, Listed};
use crate::notice::Notice;
use crate::request::look_and_record_to;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::folder::RENAMED;
use ostler_store::home::{KnownDir, Place};
use ostler_sys::ready::{self, Interest};
use ostler_view::look::Depth;
use rustix::fd::BorrowedFd;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Instant;

/// Which sessions are watched. Archived ones never are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// Only these; `None`: any.
    pub sessions: Option<BTreeSet<SessionId>>,
    /// Those with all of these labels; with this value, where there is one.
    pub labels: Vec<(String, Option<String>)>,
    /// Of one of these agents; of any agent, when the list is empty.
    pub agents: Vec<String>,
    /// Also sessions that have already ended when the watch begins.
    pub ended: bool,
}

impl Select {
    /// Every session.
    #[must_use]
    pub fn all() -> Select {
        Select::default()
    }

    /// The sessions that have this label with this value.
    #[must_use]
    pub fn label(key: &str, value: &str) -> Select {
        Select { labels: vec![(key.to_owned(), Some(value.to_owned()))], ..Select::default() }
    }

    /// These sessions.
    #[must_use]
    pub fn sessions(ids: impl IntoIterator<Item = SessionId>) -> Select {
        Select { sessions: Some(ids.into_iter().collect()), ended: true, ..Select::default() }
    }

    fn may_include(&self, id: SessionId) -> bool {
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&id))
    }

    fn filter(&self) -> Filter {
        Filter { labels: self.labels.clone(), agents: self.agents.clone(), ..Filter::default() }
    }
}

/// Something that happened to a session. The views have no last line, which costs most; [`Engine::view`] brings it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// It is there: it was when the watch began, or it was launched or restored since.
    Appeared {
        /// What it looks like.
        view: Box<View>,
    },
    /// It is in another state, asks, was answered, has had a turn, has other messages waiting, or has another name.
    Changed {
        /// What it looks like now.
        view: Box<View>,
    },
    /// It has ended. It may be resumed, which is a change again.
    Ended {
        /// What it looks like now, with its outcome.
        view: Box<View>,
    },
    /// It was archived or purged. Also told of sessions that were not told of before, as those that had ended when the watch
    /// began: a face may have listed them.
    Gone {
        /// Which one.
        id: SessionId,
    },
}

impl Change {
    /// The session to which it happened.
    #[must_use]
    pub fn id(&self) -> SessionId {
        match self {
            Change::Appeared { view } | Change::Changed { view } | Change::Ended { view } => view.id,
            Change::Gone { id } => *id,
        }
    }
}

/// A stream of changes to any number of sessions.
pub struct Watch<'a> {
    engine: &'a Engine,
    select: Select,
    filter: Filter,
    changes: Changes,
    /// Where each session is, and what the caller knows of it.
    known: BTreeMap<SessionId, (Place, Known)>,
    /// Changes that were found and not returned yet.
    found: VecDeque<Change>,
    /// The watch is beginning: sessions that are found now existed before.
    begins: bool,
}

/// What the caller knows of a session.
enum Known {
    /// Nothing: it does not match, or could not be read so far.
    Nothing,
    /// Nothing: this run had ended when the watch began, and ended sessions are not asked for. It may be renamed later.
    EndedBefore { run: u32, name: Option<String> },
    /// Its view when it was last reported.
    Told(Box<View>),
}

impl Engine {
    /// Watches sessions. The first changes are the sessions that exist already, each as [`Change::Appeared`].
    pub fn watch(&self, select: Select) -> Result<Watch<'_>> {
        self.home.open_or_make(&self.home.sessions())?;
        let ignore: fn(Notice) = |_| {};
        let mut watch = Watch {
            engine: self,
            filter: select.filter(),
            select,
            changes: Changes::in_files(&["journal.jsonl", RENAMED], ignore),
            known: BTreeMap::new(),
            found: VecDeque::new(),
            begins: true,
        };
        watch.look_everywhere()?;
        watch.begins = false;
        Ok(watch)
    }
}

impl Watch<'_> {
    /// Readable when something may have changed. `None`: the kernel provides no file watch; call [`Watch::next_change`]
    /// now and then.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.changes.fd()
    }

    /// The next change, without waiting. `None`: nothing has changed since.
    pub fn next_change(&mut self) -> Result<Option<Change>> {
        if self.found.is_empty() {
            self.look()?;
        }
        Ok(self.found.pop_front())
    }

    /// Waits for the next change. `None`: the time was up.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<Option<Change>> {
        loop {
            if let Some(change) = self.next_change()? {
                return Ok(Some(change));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(None);
            }
            let look_again = self.changes.look_again();
            let until = [until, look_again].into_iter().flatten().min();
            ready::wait(&self.fd().map(Interest::read).into_iter().collect::<Vec<_>>(), until)?;
        }
    }

    fn look(&mut self) -> Result<()> {
        match self.changes.take_news()? {
            News::ReaderGone => Ok(()),
            News::Anything | News::Some { folders: true, .. } => self.look_everywhere(),
            News::Some { folders: false, moved, sessions } => {
                for id in moved {
                    self.look_for(id)?;
                }
                sessions.into_iter().try_for_each(|id| self.look_at(id))
            }
        }
    }

    /// Compares the sessions that exist now with the known ones.
    fn look_everywhere(&mut self) -> Result<()> {
        self.changes.watch_folders(&self.engine.home);
        let KnownDir { sessions_dir, mut index } = self.engine.home.known_live()?;
        let Some(sessions_dir) = sessions_dir else {
            return Ok(());
        };
        index.compare(&sessions_dir.dir);
        let there: BTreeSet<SessionId> = sessions_dir.ids.iter().copied().collect();
        let gone: Vec<SessionId> = self.known.keys().filter(|id| !there.contains(id)).copied().collect();
        gone.into_iter().for_each(|id| self.forget(id));
        for &id in &sessions_dir.ids {
            // Known to have ended, with nothing changed since: its folder is not opened.
            let known = match self.known.get(&id) {
                Some((_, Known::Told(view))) => view.ended,
                Some((_, Known::Nothing | Known::EndedBefore { .. })) => true,
                None => self.begins && !self.select.ended,
            };
            let unchanged = known && index.still(&sessions_dir.dir, id).is_some();
            if !self.meet(sessions_dir.place(id)) || unchanged {
                continue;
            }
            // For a session at rest, the summary has all that a watch needs, at a tenth of the cost of a look.
            let at_rest = if known && self.begins { index.learn(&sessions_dir.dir, id) } else { None };
            match (at_rest, self.known.get_mut(&id)) {
                (Some(closing), Some((_, known))) => {
                    *known = Known::EndedBefore { run: closing.run, name: closing.session.name };
                }
                (Some(_) | None, _) => self.look_at(id)?,
            }
        }
        if self.begins {
            index.save(self.engine.home.root());
        }
        Ok(())
    }

    /// Looks for a session that appeared, disappeared or was moved.
    fn look_for(&mut self, id: SessionId) -> Result<()> {
        // Looked up twice: a session that is moved out of the archive during the first lookup is not gone.
        let home = &self.engine.home;
        match home.place_of(id)?.map_or_else(|| home.place_of(id), |place| Ok(Some(place)))? {
            Some(place) if !place.archived => {
                if self.meet(place) {
                    self.look_at(id)?;
                }
            }
            Some(_) | None => self.forget(id),
        }
        Ok(())
    }

    /// Begins to watch this session if it is selected; returns whether it is. Watch first, look afterwards: what
    /// happens in between wakes us.
    fn meet(&mut self, place: Place) -> bool {
        let included = self.select.may_include(place.id);
        if included {
            self.changes.watch_session(&place);
            self.known.entry(place.id).or_insert((place, Known::Nothing));
        }
        included
    }

    fn forget(&mut self, id: SessionId) {
        self.changes.forget_session(id);
        if self.known.remove(&id).is_some() {
            self.found.push_back(Change::Gone { id });
        }
    }

    fn look_at(&mut self, id: SessionId) -> Result<()> {
        let Some((place, before)) = self.known.get_mut(&id) else {
            return Ok(());
        };
        let view = match look_and_record_to(Depth::Awaited, place) {
            Ok(view) => view,
            // The session is damaged or gone; that it is gone is reported separately. One broken folder must not stop
            // the watch.
            Err(_) => return Ok(()),
        };
        self.engine.notify_if_lost(place, &view);
        let listed = Listed::Good(Box::new(view));
        if !self.filter.admits(&listed) {
            return Ok(());
        }
        let Listed::Good(view) = listed else { return Ok(()) };
        let ended = match before {
            Known::Told(before) if before.ended && before.run == view.run => false,
            Known::Told(_) | Known::Nothing | Known::EndedBefore { .. } => view.ended,
        };
        match before {
            Known::Nothing if ended && self.begins && !self.select.ended => {
                *before = Known::EndedBefore { run: view.run, name: view.name.clone() };
                return Ok(());
            }
            // Its helpers are still exiting, or another command cleans up: this is not reported.
            Known::EndedBefore { run, name } if ended && *run == view.run && *name == view.name => return Ok(()),
            Known::EndedBefore { run, .. } if ended && *run == view.run => {
                self.found.push_back(Change::Changed { view: view.clone() });
                *before = Known::Told(view);
                return Ok(());
            }
            Known::Nothing | Known::EndedBefore { .. } => self.found.push_back(Change::Appeared { view: view.clone() }),
            Known::Told(before) if looks_the_same(before, &view) => return Ok(()),
            Known::Told(_) if ended => {}
            Known::Told(_) => self.found.push_back(Change::Changed { view: view.clone() }),
        }
        if ended {
            self.found.push_back(Change::Ended { view: view.clone() });
        }
        *before = Known::Told(view);
        Ok(())
    }
}

/// Whether two views say the same about the session, apart from the time that has passed.
fn looks_the_same(before: &View, now: &View) -> bool {
    let mut before = before.clone();
    before.quiet_s = now.quiet_s;
    before.no_answer_s = now.no_answer_s;
    before.updated = now.updated;
    before == *now
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("select", &self.select).field("known", &self.known.len()).finish_non_exhaustive()
    }
}
