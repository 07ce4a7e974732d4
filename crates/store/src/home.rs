//! Where everything is stored, and how a word that a person types selects a session.

use crate::StoreError;
use crate::ended::{Addition, EndedIndex};
use crate::folder::Folder;
use jiff::Timestamp;
use ostler_core::id::{Selector, SessionId};
use ostler_sys::dir::Dir;
use ostler_sys::lock::{self, Held};
use rustix::fs::OFlags;
use std::borrow::Cow;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// `$OSTLER_HOME`.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

/// The name of a session in the sessions folder until its holder is up.
#[must_use]
pub fn hidden_name(id: &str) -> String {
    format!(".new-{id}")
}

/// Why a word does not select a session.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("no session {0:?}")]
    None(String),
    #[error("{word:?} is ambiguous: {}", .candidates.join(", "))]
    Ambiguous { word: String, candidates: Vec<String> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session that was found: its id, its path, and whether it is archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub id: SessionId,
    pub path: PathBuf,
    pub archived: bool,
}

impl Place {
    pub fn open(&self) -> Result<Folder, StoreError> {
        let dir = Dir::open(&self.path).map_err(StoreError::open(self.path.to_string_lossy(), self.archived))?;
        Ok(Folder::new(dir))
    }

    /// Whether it is archived in one file. A pipe or a device in that place counts as a damaged one.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.archived && std::fs::symlink_metadata(&self.path).is_ok_and(|stat| !stat.is_dir() && !stat.is_symlink())
    }
}

/// A folder of session folders, held open.
#[derive(Debug)]
pub struct SessionsDir {
    pub dir: Dir,
    pub ids: Vec<SessionId>,
    path: PathBuf,
    pub archived: bool,
}

impl SessionsDir {
    /// `None`: there is no such folder (any more).
    fn open(path: PathBuf, archived: bool) -> Result<Option<SessionsDir>, StoreError> {
        SessionsDir::open_with(path, archived, |dir| {
            let mut ids = Vec::new();
            dir.each_name(|name| ids.extend(SessionId::from_bytes(name))).map(|()| ids)
        })
    }

    fn open_with(
        path: PathBuf,
        archived: bool,
        list: impl FnOnce(&Dir) -> io::Result<Vec<SessionId>>,
    ) -> Result<Option<SessionsDir>, StoreError> {
        let dir = match Dir::open(&path) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(path.to_string_lossy())(error)),
        };
        let ids = list(&dir).map_err(StoreError::io(path.to_string_lossy()))?;
        Ok(Some(SessionsDir { dir, ids, path, archived }))
    }

    /// The folder that contains a session, listed with that session only.
    pub fn with(place: &Place) -> Result<SessionsDir, StoreError> {
        let path = place.path.parent().unwrap_or(&place.path).to_owned();
        let dir = Dir::open(&path).map_err(StoreError::io(path.to_string_lossy()))?;
        Ok(SessionsDir { dir, ids: vec![place.id], path, archived: place.archived })
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

    /// The home at this path.
    #[must_use]
    pub fn at(root: PathBuf) -> Home {
        Home { root }
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

    /// Opens a folder of ours. If needed, makes it and the folders above it, for its owner alone.
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
                // Needed once for each home: files that are synced in a folder are lost if the folder's own name is not
                // synced.
                for folder in above.iter().chain(&[path]).filter_map(|made| made.parent()) {
                    Dir::open(folder).and_then(|dir| dir.sync()).map_err(StoreError::io(folder.to_string_lossy()))?;
                }
                Dir::open(path).map_err(StoreError::io(path.to_string_lossy()))
            }
        }
    }

    /// Every session that is not archived, in no particular order. An empty list when there is none yet.
    pub fn live_places(&self) -> Result<Vec<Place>, StoreError> {
        Ok(SessionsDir::open(self.sessions(), false)?.iter().flat_map(SessionsDir::places).collect())
    }

    /// Every archived session.
    pub fn archived_places(&self) -> Result<Vec<Place>, StoreError> {
        Ok(self.archive_dirs()?.iter().flat_map(SessionsDir::places).collect())
    }

    /// The folders that contain sessions: the live ones and, with `archived`, the archived ones.
    pub fn sessions_dirs(&self, archived: bool) -> Result<Vec<SessionsDir>, StoreError> {
        let mut sessions_dirs: Vec<SessionsDir> = SessionsDir::open(self.sessions(), false)?.into_iter().collect();
        if archived {
            sessions_dirs.extend(self.archive_dirs()?);
        }
        Ok(sessions_dirs)
    }

    /// The folders of the archive.
    pub fn months(&self) -> Result<Vec<PathBuf>, StoreError> {
        let archive = self.archive();
        Ok(self.month_names()?.into_iter().map(|month| archive.join(month)).collect())
    }

    /// Anything else in the archive, or in its place, is not ours, and does not prevent a list.
    fn month_names(&self) -> Result<Vec<String>, StoreError> {
        let archive = self.archive();
        if is_another_thing(&archive) {
            return Ok(Vec::new());
        }
        Ok(names(&archive)?
            .into_iter()
            .filter(|name| is_month(name) && !is_another_thing(&archive.join(name)))
            .collect())
    }

    /// What is in the place of a folder of the archive and is not a folder: lists skip it.
    pub fn archive_strays(&self) -> Result<Vec<PathBuf>, StoreError> {
        let archive = self.archive();
        if is_another_thing(&archive) {
            return Ok(vec![archive]);
        }
        let months = names(&archive)?.into_iter().filter(|name| is_month(name)).map(|name| archive.join(name));
        Ok(months.filter(|path| is_another_thing(path)).collect())
    }

    fn archive_dirs(&self) -> Result<Vec<SessionsDir>, StoreError> {
        let archive = self.archive();
        let months = self.month_names()?.into_iter();
        let sessions_dirs =
            months.map(|month| SessionsDir::open(archive.join(month), true)).collect::<Result<Vec<_>, _>>()?;
        Ok(sessions_dirs.into_iter().flatten().collect())
    }

    /// Names in the sessions folder that are not session ids: left by another program, or by a launch that was killed.
    pub fn strays(&self) -> Result<Vec<String>, StoreError> {
        Ok(names(&self.sessions())?.into_iter().filter(|name| SessionId::parse(name).is_none()).collect())
    }

    /// The session that a person means: an id, a name, the unique beginning of either, or `@last`. A whole name has
    /// precedence over the beginning of another one, also when its session is archived. Of sessions with the same name
    /// a running one is meant, otherwise the newest; archived ones come last.
    pub fn select(&self, word: &str) -> Result<Place, NotFound> {
        let selector = Selector::parse(word).ok_or_else(|| NotFound::None(word.to_owned()))?;
        if let Some(id) = SessionId::parse(word)
            && let Some(place) = self.place_of(id)?
        {
            return Ok(place);
        }
        let known = self.known_live()?;
        let found = self.select_known(word, &selector, &known);
        // The names in the index may be outdated, in a home that an older ostler uses as well.
        let stale = match &found {
            Ok(place) => {
                known.index.once(place.id).is_some_and(|known| known.name.as_deref() != name_of(place).as_deref())
            }
            Err(_) => false,
        };
        known.save(self);
        if stale {
            let known =
                KnownDir { index: EndedIndex::default(), sessions_dir: SessionsDir::open(self.sessions(), false)? };
            self.select_known(word, &selector, &known)
        } else {
            found
        }
    }

    fn select_known(&self, word: &str, selector: &Selector, live: &KnownDir) -> Result<Place, NotFound> {
        if *selector == Selector::Newest {
            let mut all: Vec<_> = live.all().filter_map(|known| Some((known.created?, known))).collect();
            all.sort_by_key(|(created, _)| std::cmp::Reverse(*created));
            // A session that a job has started is not the last one that a person has started.
            let driven = |place: &Place| place.open().and_then(|folder| folder.session()).is_ok_and(|one| one.driven);
            let newest = all.iter().map(|(_, known)| known.place()).find(|place| !driven(place));
            return newest.ok_or_else(|| NotFound::None(word.to_owned()));
        }
        let begins_name = |known: &Known<'_>| known.name.as_deref().is_some_and(|name| name.starts_with(word));
        let is_name = |known: &Known<'_>| known.name.as_deref() == Some(word);
        let mut begun: Vec<Known<'_>> =
            live.all().filter(|known| selector.begins(known.id) || begins_name(known)).collect();
        if let Some(place) = one_of(begun.iter().filter(|known| is_name(known))) {
            return Ok(place);
        }
        let archive = self.known_archive()?;
        let (begun_ids, begun_names): (Vec<Known<'_>>, Vec<Known<'_>>) = archive
            .iter()
            .flat_map(KnownDir::all)
            .filter(|known| selector.begins(known.id) || begins_name(known))
            .partition(|known| selector.begins(known.id));
        let named = one_of(begun_ids.iter().chain(&begun_names).filter(|known| is_name(known)));
        begun.extend(begun_ids);
        let found = match named {
            Some(place) => Ok(place),
            None if begun.is_empty() => the_only(word, &begun_names),
            None => the_only(word, &begun),
        };
        drop(begun);
        drop(begun_names);
        archive.into_iter().for_each(|month| month.save(self));
        found
    }

    /// The archived session that a person means, by the same words as [`Home::select`]. `None`: the word does not
    /// select an archived one.
    pub fn select_archived(&self, word: &str) -> Result<Option<Place>, NotFound> {
        let Some(selector) = Selector::parse(word) else {
            return Ok(None);
        };
        let archive = self.known_archive()?;
        let known = || archive.iter().flat_map(KnownDir::all);
        let found = if selector == Selector::Newest {
            let newest = known().filter_map(|known| Some((known.created?, known))).max_by_key(|(created, _)| *created);
            Ok(newest.map(|(_, known)| known.place()))
        } else {
            let named: Vec<Known<'_>> = known().filter(|known| known.name.as_deref() == Some(word)).collect();
            let begins = |known: &Known<'_>| {
                selector.begins(known.id) || known.name.as_deref().is_some_and(|name| name.starts_with(word))
            };
            let begun: Vec<Known<'_>> = known().filter(begins).collect();
            match one_of(named.iter()) {
                Some(place) => Ok(Some(place)),
                None if begun.is_empty() => Ok(None),
                None => the_only(word, &begun).map(Some),
            }
        };
        archive.into_iter().for_each(|month| month.save(self));
        found
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
        self.archived_place_of(id)
    }

    /// Where a session is in the archive, if it is there.
    pub fn archived_place_of(&self, id: SessionId) -> Result<Option<Place>, StoreError> {
        let archive = self.archive();
        let mut places = self.month_names()?.into_iter().map(|month| archive.join(month).join(id.as_str()));
        Ok(places.find(|path| path.is_dir() || path.is_file()).map(|path| Place { id, path, archived: true }))
    }

    /// The sessions that came from this one, the oldest first.
    pub fn children_of(&self, id: SessionId) -> Result<Vec<Place>, StoreError> {
        let mut sessions_dirs = vec![self.known_live()?];
        sessions_dirs.extend(self.known_archive()?);
        let all = sessions_dirs.iter().flat_map(KnownDir::all);
        let mut children: Vec<_> =
            all.filter(|known| known.parent == Some(id)).map(|known| (known.created, known.place())).collect();
        children.sort_by_key(|(created, _)| *created);
        sessions_dirs.into_iter().for_each(|sessions_dir| sessions_dir.save(self));
        Ok(children.into_iter().map(|(_, place)| place).collect())
    }

    /// The sessions that are not archived, and what is known of those that have ended.
    pub fn known_live(&self) -> Result<KnownDir, StoreError> {
        KnownDir::open(self, self.sessions(), false, self.ended_index())
    }

    /// The same for each month of the archive.
    pub fn known_archive(&self) -> Result<Vec<KnownDir>, StoreError> {
        let archive = self.archive();
        let months = self.month_names()?.into_iter();
        let known =
            |month: String| KnownDir::open(self, archive.join(&month), true, EndedIndex::of_month(&self.root, &month));
        months.map(known).collect()
    }

    pub fn count_archived(&self) -> Result<usize, StoreError> {
        let months = self.known_archive()?;
        Ok(months
            .iter()
            .filter_map(|month| month.sessions_dir.as_ref())
            .map(|sessions_dir| sessions_dir.ids.len())
            .sum())
    }

    /// What is known of sessions that have ended.
    #[must_use]
    pub fn ended_index(&self) -> EndedIndex {
        EndedIndex::read(&self.root)
    }

    /// Waits until no other process is giving a name to a session.
    pub fn lock_names(&self) -> Result<Held, StoreError> {
        self.lock("names.lock")
    }

    /// For the process that holds the lock on names and is about to add a session: what is known of the other sessions
    /// stays known.
    #[must_use]
    pub fn begin_addition(&self) -> Option<Addition> {
        Addition::begin(&self.root)
    }

    /// Waits until no other process is starting or looking up the jobs of a file.
    pub fn lock_up(&self) -> Result<Held, StoreError> {
        self.lock("up.lock")
    }

    fn lock(&self, name: &'static str) -> Result<Held, StoreError> {
        let root = self.open_or_make(&self.root)?;
        let file = root.file(name, OFlags::RDWR | OFlags::CREATE).map_err(StoreError::io(name))?;
        lock::exclusive(file).map_err(StoreError::io(name))
    }

    /// The names of sessions that are not archived.
    pub fn live_names(&self) -> Result<Vec<String>, StoreError> {
        let known = self.known_live()?;
        let names = known.all().filter_map(|known| known.name.map(Cow::into_owned)).collect();
        known.save(self);
        Ok(names)
    }

    /// The session with this name that has not ended, if there is one. Of sessions that have ended, only records with
    /// this name are read.
    pub fn name_is_taken(&self, name: &str) -> Result<Option<SessionId>, StoreError> {
        let path = self.sessions();
        let sessions = match Dir::open(&path) {
            Ok(sessions) => sessions,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(path.to_string_lossy())(error)),
        };
        let index = self.ended_index();
        let unknown =
            index.without_record(&self.root, &sessions).map_err(StoreError::io(path.to_string_lossy()))?.into_iter();
        let mut namesakes = unknown.filter(|&id| {
            let session = index.learn(&sessions, id).map(|closing| closing.session);
            let session = session.or_else(|| self.live_place(id).open().and_then(|folder| folder.session()).ok());
            session.is_some_and(|session| session.name.as_deref() == Some(name))
        });
        // A record may be left of a session that was purged.
        let is_there = |id: SessionId| matches!(sessions.changed(id.as_str()), Ok(Some(_)));
        let mut ended =
            index.named(name).filter(|ended| index.still(&sessions, ended.id).is_none() && is_there(ended.id));
        let taken = namesakes
            .find(|&id| runs(&self.live_place(id)))
            .or_else(|| ended.find(|ended| runs(&self.live_place(ended.id))).map(|ended| ended.id));
        drop((namesakes, ended));
        index.save(&self.root);
        Ok(taken)
    }
}

/// Whether a folder of the archive has this form of name: `2026-11`.
#[must_use]
pub fn is_month(name: &str) -> bool {
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2))
}

/// A session, its name, when it was created and its parent; for a damaged folder these are unknown.
struct Known<'a> {
    id: SessionId,
    sessions_dir: &'a SessionsDir,
    index: &'a EndedIndex,
    name: Option<Cow<'a, str>>,
    created: Option<Timestamp>,
    parent: Option<SessionId>,
}

impl Known<'_> {
    fn place(&self) -> Place {
        self.sessions_dir.place(self.id)
    }

    /// Of hundreds of sessions with the same name, folders that are known to be at rest are not opened.
    fn runs(&self) -> bool {
        self.index.still(&self.sessions_dir.dir, self.id).is_none() && runs(&self.place())
    }
}

/// The sessions of a folder, and what is known of those that have ended.
#[derive(Debug)]
pub struct KnownDir {
    /// `None`: there is no such folder.
    pub sessions_dir: Option<SessionsDir>,
    pub index: EndedIndex,
}

impl KnownDir {
    fn open(home: &Home, path: PathBuf, archived: bool, index: EndedIndex) -> Result<KnownDir, StoreError> {
        let sessions_dir = SessionsDir::open_with(path, archived, |dir| index.ids(&home.root, dir))?;
        Ok(KnownDir { sessions_dir, index })
    }

    /// All sessions. Those that have ended come from the index; those that are missing there are added to it.
    fn all(&self) -> impl Iterator<Item = Known<'_>> {
        let ids = self
            .sessions_dir
            .iter()
            .flat_map(|sessions_dir| sessions_dir.ids.iter().map(move |&id| (sessions_dir, id)));
        ids.map(|(sessions_dir, id)| {
            if let Some(ended) = self.index.once(id) {
                return Known {
                    id,
                    sessions_dir,
                    index: &self.index,
                    name: ended.name,
                    created: Some(ended.created),
                    parent: ended.parent,
                };
            }
            let learned = self.index.learn(&sessions_dir.dir, id).map(|closing| closing.session);
            let read = || sessions_dir.place(id).open().and_then(|folder| folder.session()).ok();
            // A copy of a session's folder under another id is no session, and has no name.
            let session = learned.or_else(read).filter(|session| session.id == id);
            let created = session.as_ref().map(|session| session.created);
            let parent = session.as_ref().and_then(|session| session.parent);
            let name = session.and_then(|session| session.name).map(Cow::Owned);
            Known { id, sessions_dir, index: &self.index, name, created, parent }
        })
    }

    fn save(self, home: &Home) {
        self.index.save(&home.root);
    }
}

fn name_of(place: &Place) -> Option<String> {
    place.open().and_then(|folder| folder.session()).ok().and_then(|session| session.name)
}

/// Of sessions with the same name: one that runs, else the newest.
fn one_of<'a, 'b: 'a>(namesakes: impl Iterator<Item = &'a Known<'b>>) -> Option<Place> {
    let namesakes: Vec<&Known<'_>> = namesakes.collect();
    let running = namesakes.iter().find(|known| known.runs());
    let newest = || namesakes.iter().filter(|known| known.created.is_some()).max_by_key(|known| known.created);
    running.or_else(newest).map(|known| known.place())
}

/// The session that is meant, if that is unique: the only candidate, or one of several with the same name.
fn the_only(word: &str, candidates: &[Known<'_>]) -> Result<Place, NotFound> {
    match candidates {
        [] => return Err(NotFound::None(word.to_owned())),
        [one] => return Ok(one.place()),
        [first, rest @ ..] => {
            let same = first.name.is_some() && rest.iter().all(|other| other.name == first.name);
            if same && let Some(place) = one_of(candidates.iter()) {
                return Ok(place);
            }
        }
    }
    let describe = |known: &Known<'_>| match &known.name {
        Some(name) => format!("{name} ({})", known.id),
        None => known.id.to_string(),
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

/// Whether something other than a folder has this path.
fn is_another_thing(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|stat| !stat.is_dir())
}

fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    match Dir::open(folder).and_then(|dir| dir.names()) {
        Ok(names) => Ok(names),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::io(folder.to_string_lossy())(error)),
    }
}
