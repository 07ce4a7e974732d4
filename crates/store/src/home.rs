//! Where everything lives, and how a person's word becomes a session.

use crate::StoreError;
use crate::ended::EndedIndex;
use crate::folder::Folder;
use jiff::Timestamp;
use ostler_core::id::{Selector, SessionId};
use ostler_sys::dir::Dir;
use ostler_sys::lock::{self, Held};
use rustix::fs::OFlags;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// `$OSTLER_HOME`.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

/// Why a word names no session.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("no session {0:?}")]
    None(String),
    #[error("{word:?} is ambiguous: {}", .candidates.join(", "))]
    Ambiguous { word: String, candidates: Vec<String> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session found: its id, where it is, whether it was put away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub id: SessionId,
    pub path: PathBuf,
    pub archived: bool,
}

impl Place {
    pub fn open(&self) -> Result<Folder, StoreError> {
        let dir = Dir::open(&self.path).map_err(StoreError::io(self.path.to_string_lossy()))?;
        Ok(Folder::new(dir))
    }
}

/// A folder of session folders, held open.
#[derive(Debug)]
pub struct Shelf {
    pub dir: Dir,
    pub ids: Vec<SessionId>,
    path: PathBuf,
    pub archived: bool,
}

impl Shelf {
    /// `None`: there is no such folder (any more).
    fn open(path: PathBuf, archived: bool) -> Result<Option<Shelf>, StoreError> {
        let dir = match Dir::open(&path) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(path.to_string_lossy())(error)),
        };
        let names = dir.names().map_err(StoreError::io(path.to_string_lossy()))?;
        let ids = names.iter().filter_map(|name| SessionId::parse(name)).collect();
        Ok(Some(Shelf { dir, ids, path, archived }))
    }

    /// The one on which a session stands, with nothing else on it.
    pub fn with(place: &Place) -> Result<Shelf, StoreError> {
        let path = place.path.parent().unwrap_or(&place.path).to_owned();
        let dir = Dir::open(&path).map_err(StoreError::io(path.to_string_lossy()))?;
        Ok(Shelf { dir, ids: vec![place.id], path, archived: place.archived })
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.ids.iter().map(|&id| self.place(id))
    }

    #[must_use]
    pub fn place(&self, id: SessionId) -> Place {
        Place { id, path: self.path.join(id.as_str()), archived: self.archived }
    }
}

impl Home {
    /// `$OSTLER_HOME`, else `$XDG_STATE_HOME/ostler`, else `~/.local/state/ostler`.
    #[must_use]
    pub fn find(variable: &dyn Fn(&str) -> Option<String>) -> Option<Home> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = set("OSTLER_HOME")
            .or_else(|| set("XDG_STATE_HOME").map(|state| state.join("ostler")))
            .or_else(|| set("HOME").map(|home| home.join(".local/state/ostler")))?;
        Some(Home { root: std::path::absolute(root).ok()? })
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    #[must_use]
    pub fn archive(&self) -> PathBuf {
        self.root.join("archive")
    }

    /// Opens a folder of ours, making it and what is above it where needed, for its owner alone.
    pub fn open_or_make(&self, path: &Path) -> Result<Dir, StoreError> {
        match Dir::open(path) {
            Ok(dir) => Ok(dir),
            Err(_) => {
                let above: Vec<&Path> = path.ancestors().skip(1).take_while(|above| !above.is_dir()).collect();
                std::fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(path)
                    .map_err(StoreError::io(path.to_string_lossy()))?;
                // Once in a home's life: what is synced below a folder is lost with it when its own name is.
                for folder in above.iter().chain(&[path]).filter_map(|made| made.parent()) {
                    Dir::open(folder).and_then(|dir| dir.sync()).map_err(StoreError::io(folder.to_string_lossy()))?;
                }
                Dir::open(path).map_err(StoreError::io(path.to_string_lossy()))
            }
        }
    }

    /// Every session that was not put away, in no order. Nothing here yet is an empty list.
    pub fn live_places(&self) -> Result<Vec<Place>, StoreError> {
        Ok(Shelf::open(self.sessions(), false)?.iter().flat_map(Shelf::places).collect())
    }

    /// Everything that was put away.
    pub fn archived_places(&self) -> Result<Vec<Place>, StoreError> {
        Ok(self.archive_shelves()?.iter().flat_map(Shelf::places).collect())
    }

    /// Where sessions are: those of today and, if wanted, those that were put away.
    pub fn shelves(&self, archived: bool) -> Result<Vec<Shelf>, StoreError> {
        let mut shelves: Vec<Shelf> = Shelf::open(self.sessions(), false)?.into_iter().collect();
        if archived {
            shelves.extend(self.archive_shelves()?);
        }
        Ok(shelves)
    }

    fn archive_shelves(&self) -> Result<Vec<Shelf>, StoreError> {
        let archive = self.archive();
        // Whatever else lies there is not ours, and keeps nobody from being listed.
        let months = names(&archive)?.into_iter().filter(|name| is_month(name));
        let shelves = months.map(|month| Shelf::open(archive.join(month), true)).collect::<Result<Vec<_>, _>>()?;
        Ok(shelves.into_iter().flatten().collect())
    }

    /// Names in the sessions folder that are no session ids: left by somebody else, or by a launch that was killed.
    pub fn strays(&self) -> Result<Vec<String>, StoreError> {
        Ok(names(&self.sessions())?.into_iter().filter(|name| SessionId::parse(name).is_none()).collect())
    }

    /// The session a person means: an id, a name, the unique beginning of either, or `@last`. Of sessions with the same name
    /// one that still runs is meant, else the newest, and what was put away is looked at last.
    pub fn select(&self, word: &str) -> Result<Place, NotFound> {
        let selector = Selector::parse(word).ok_or_else(|| NotFound::None(word.to_owned()))?;
        let id = SessionId::parse(word);
        if let Some(place) = id.map(|id| self.live_place(id)).filter(|place| place.path.is_dir()) {
            return Ok(place);
        }
        let index = self.ended_index();
        let found = self.select_known(word, &selector, &index);
        // What the index says of names may be old, in a home that an older ostler uses as well.
        let stale = match &found {
            Ok(place) => index.once(place.id).is_some_and(|known| known.name != name_of(place)),
            Err(_) => false,
        };
        index.save(&self.root);
        if stale { self.select_known(word, &selector, &EndedIndex::default()) } else { found }
    }

    fn select_known(&self, word: &str, selector: &Selector, index: &EndedIndex) -> Result<Place, NotFound> {
        let live: Vec<Known> = known(&self.shelves(false)?, index);
        if *selector == Selector::Newest {
            return newest(live.iter()).ok_or_else(|| NotFound::None(word.to_owned()));
        }
        if let Some(place) = one_of(live.iter().filter(|known| known.name.as_deref() == Some(word))) {
            return Ok(place);
        }
        let begins_name = |known: &&Known| known.name.as_deref().is_some_and(|name| name.starts_with(word));
        let live = live.iter().filter(|known| selector.begins(known.place.id) || begins_name(known));
        // Of those that were put away only the ids are needed for this, and nothing is opened.
        let mut archive = self.archive_shelves()?;
        let all = archive.iter().map(|shelf| shelf.ids.clone()).collect::<Vec<_>>();
        archive.iter_mut().for_each(|shelf| shelf.ids.retain(|&id| selector.begins(id)));
        let archived = known(&archive, index);
        let begun: Vec<&Known> = live.chain(&archived).collect();
        if !begun.is_empty() {
            return the_only(word, &begun);
        }
        archive.iter_mut().zip(all).for_each(|(shelf, ids)| shelf.ids = ids);
        let archived = known(&archive, index);
        if let Some(place) = one_of(archived.iter().filter(|known| known.name.as_deref() == Some(word))) {
            return Ok(place);
        }
        the_only(word, &archived.iter().filter(begins_name).collect::<Vec<_>>())
    }

    fn live_place(&self, id: SessionId) -> Place {
        Place { id, path: self.sessions().join(id.as_str()), archived: false }
    }

    /// Where a session is, if it is anywhere.
    pub fn place_of(&self, id: SessionId) -> Result<Option<Place>, StoreError> {
        let live = self.live_place(id);
        if live.path.is_dir() {
            return Ok(Some(live));
        }
        let archive = self.archive();
        let months = names(&archive)?.into_iter().filter(|name| is_month(name));
        let mut places = months.map(|month| archive.join(month).join(id.as_str()));
        Ok(places.find(|path| path.is_dir()).map(|path| Place { id, path, archived: true }))
    }

    /// The sessions that came from this one, the oldest first.
    pub fn children_of(&self, id: SessionId) -> Result<Vec<Place>, StoreError> {
        let index = self.ended_index();
        let mut children = known(&self.shelves(true)?, &index);
        children.retain(|known| known.parent == Some(id));
        children.sort_by_key(|known| known.created);
        index.save(&self.root);
        Ok(children.into_iter().map(|known| known.place).collect())
    }

    /// What is known of sessions that have ended.
    #[must_use]
    pub fn ended_index(&self) -> EndedIndex {
        EndedIndex::read(&self.root)
    }

    /// Waits until nobody else is giving a session its name.
    pub fn lock_names(&self) -> Result<Held, StoreError> {
        let name = "names.lock";
        let root = self.open_or_make(&self.root)?;
        let file = root.file(name, OFlags::RDWR | OFlags::CREATE).map_err(StoreError::io(name))?;
        lock::exclusive(file).map_err(StoreError::io(name))
    }

    /// Whether a session that has not ended goes by this name.
    pub fn name_is_taken(&self, name: &str) -> Result<Option<SessionId>, StoreError> {
        let index = self.ended_index();
        let known = known(&self.shelves(false)?, &index);
        let taken = known.iter().filter(|known| known.name.as_deref() == Some(name)).find(|known| runs(&known.place));
        index.save(&self.root);
        Ok(taken.map(|known| known.place.id))
    }
}

/// `2026-11`.
fn is_month(name: &str) -> bool {
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2))
}

/// A session, what it is called, when it was created and what it came from; of a damaged folder nothing is known.
struct Known {
    place: Place,
    name: Option<String>,
    created: Option<Timestamp>,
    parent: Option<SessionId>,
}

/// All of them; those that have ended from the index, which learns those that it does not have.
fn known(shelves: &[Shelf], index: &EndedIndex) -> Vec<Known> {
    let known = |shelf: &Shelf, id: SessionId| {
        let place = shelf.place(id);
        if let Some(ended) = index.once(id) {
            let (name, created, parent) = (ended.name.clone(), Some(ended.created), ended.parent);
            return Known { place, name, created, parent };
        }
        let learned = index.learn(&shelf.dir, id).map(|closing| closing.session);
        let session = learned.or_else(|| place.open().and_then(|folder| folder.session()).ok());
        let created = session.as_ref().map(|session| session.created);
        let parent = session.as_ref().and_then(|session| session.parent);
        Known { place, name: session.and_then(|session| session.name), created, parent }
    };
    shelves.iter().flat_map(|shelf| shelf.ids.iter().map(move |&id| known(shelf, id))).collect()
}

fn name_of(place: &Place) -> Option<String> {
    place.open().and_then(|folder| folder.session()).ok().and_then(|session| session.name)
}

/// Of sessions with the same name: one that runs, else the newest.
fn one_of<'a>(namesakes: impl Iterator<Item = &'a Known>) -> Option<Place> {
    let namesakes: Vec<&Known> = namesakes.collect();
    let running = namesakes.iter().find(|known| runs(&known.place)).map(|known| known.place.clone());
    running.or_else(|| newest(namesakes.into_iter()))
}

/// The one that is meant, if only one can be: the only one, or all of them have the same name.
fn the_only(word: &str, candidates: &[&Known]) -> Result<Place, NotFound> {
    match candidates {
        [] => return Err(NotFound::None(word.to_owned())),
        [one] => return Ok(one.place.clone()),
        [first, rest @ ..] => {
            let same = first.name.is_some() && rest.iter().all(|other| other.name == first.name);
            if same && let Some(place) = one_of(candidates.iter().copied()) {
                return Ok(place);
            }
        }
    }
    let describe = |known: &&Known| match &known.name {
        Some(name) => format!("{name} ({})", known.place.id),
        None => known.place.id.to_string(),
    };
    let mut candidates: Vec<String> = candidates.iter().map(describe).collect();
    candidates.sort();
    Err(NotFound::Ambiguous { word: word.to_owned(), candidates })
}

fn runs(place: &Place) -> bool {
    let ended = || {
        let folder = place.open()?;
        let run = folder.newest_run()?;
        folder.run(run)?.outcome()
    };
    !matches!(ended(), Ok(Some(_)))
}

fn newest<'a>(known: impl Iterator<Item = &'a Known>) -> Option<Place> {
    let created = known.filter_map(|known| Some((known.created?, &known.place)));
    created.max_by_key(|(created, _)| *created).map(|(_, place)| place.clone())
}

fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    match Dir::open(folder).and_then(|dir| dir.names()) {
        Ok(names) => Ok(names),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::io(folder.to_string_lossy())(error)),
    }
}
