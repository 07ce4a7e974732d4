//! The engine, and what it was opened with.

use crate::config::Config;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::own_run::OwnJob;
use crate::selecting::Several;
use crate::session_ref::SessionRef;
use crate::suggest::nearest;
use ostler_core::id::{Selector, SessionId, is_name};
use ostler_core::record::{Request, RequestKind};
use ostler_keeper::launcher_process::Launcher;
use ostler_store::home::{Home, NotFound, Place};
use ostler_sys::clock;
use ostler_sys::threads::each_in_parallel;
use std::collections::HashSet;
use std::path::PathBuf;

/// Does everything that ostler can do, in one home with one set of settings.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Where the sessions are.
    pub home: Home,
    /// The settings found there.
    pub config: Config,
    /// The variables and the working folder that were passed in.
    pub environment: Environment,
    /// Where the binary of ostler is: this process itself, unless a program that embeds the engine says otherwise.
    pub launcher: Launcher,
}

impl Engine {
    /// Opens the home that the environment names, with the settings found there. Nothing is created.
    pub fn open(environment: Environment) -> Result<Engine> {
        let home = Home::find(&environment.lookup()).ok_or(Error::NoHome)?;
        let config = Config::load(&environment.lookup());
        Ok(Engine { home, config, environment, launcher: Launcher::ThisProgram })
    }

    /// The same in a program that is not ostler itself: `program` is the binary of ostler, from which sessions are
    /// started.
    pub fn embedded(environment: Environment, program: PathBuf) -> Result<Engine> {
        Ok(Engine { launcher: Launcher::Program(program), ..Engine::open(environment)? })
    }

    /// The session that a word names: an id, the beginning of one, a name, or `@last`; or a group or a label that only
    /// one session has. In a job of `up`, the name of a job of the same run is that job.
    pub fn select(&self, word: &str) -> Result<Place> {
        if let Some(several) = Several::parse(word) {
            return self.only_one(word, &several);
        }
        match self.job_of_own_run(word)? {
            Some(OwnJob::Begun(place)) => return Ok(place),
            Some(OwnJob::NotThere) => {
                return Err(Error::NotFound { error: NotFound::None(word.to_owned()), nearest: None });
            }
            None => {}
        }
        self.home.select(word).map_err(|error| {
            let nearest = if matches!(error, NotFound::None(_)) { self.nearest_name(word) } else { None };
            Error::NotFound { error, nearest }
        })
    }

    /// The sessions that these words name in full, each once: an id, the beginning of one, or a whole name. For what
    /// cannot be undone, the beginning of a name is not enough: the session that had this whole name may just be gone.
    pub fn select_exactly(&self, words: &[String]) -> Result<Vec<Place>> {
        for word in words.iter().filter(|word| Several::parse(word).is_none()) {
            let place = self.select(word)?;
            if self.job_of_own_run(word)?.is_some() {
                continue;
            }
            let by_id = Selector::parse(word).is_some_and(|selector| selector.begins(place.id));
            let begun = |name: &String| name != word && name.starts_with(word.as_str());
            if let Some(name) = SessionRef::at(&place).name.filter(|name| !by_id && begun(name)) {
                return Err(Error::NotFound { error: NotFound::None(word.clone()), nearest: Some(name) });
            }
        }
        self.select_all(words)
    }

    /// The name of a session that was probably meant. Looked up only when there is none of that name.
    fn nearest_name(&self, word: &str) -> Option<String> {
        let names = self.home.live_names().ok()?;
        nearest(word, names.iter().map(String::as_str)).map(str::to_owned)
    }

    /// The sessions that these words name, each once. Fails at the first word that names none.
    pub fn select_all(&self, words: &[String]) -> Result<Vec<Place>> {
        each_once(words, |word| self.select_several(word))
    }

    /// The same for what is done with archived sessions: a word that names one means that one, also when another
    /// session has the same name by now.
    pub fn select_archived(&self, words: &[String]) -> Result<Vec<Place>> {
        let archived =
            |word: &str| self.home.select_archived(word).map_err(|error| Error::NotFound { error, nearest: None });
        let is_called = |place: &Place, word: &str| SessionRef::at(place).name.as_deref() == Some(word);
        each_once(words, |word| match self.select_several_archived(word)? {
            Some(places) => Ok(places),
            None => Ok(vec![match archived(word)? {
                None => self.select(word)?,
                Some(found) if found.id.as_str() == word || is_called(&found, word) => found,
                // The word is only the beginning of its id or name, and may be the whole name of another session.
                Some(found) => self.select(word).ok().filter(|other| is_called(other, word)).unwrap_or(found),
            }]),
        })
    }

    /// The author of requests, for the journal: a person or another session, and the process.
    #[must_use]
    pub fn actor(&self) -> String {
        let pid = std::process::id();
        let session = self.own_session();
        let name = match session {
            Some(id) => format!("session {id}"),
            None => {
                let uid = rustix::process::getuid().as_raw();
                let mut told = ["USER", "LOGNAME"].into_iter().filter_map(|name| self.environment.variable(name));
                told.find(|name| is_name(name))
                    .or_else(|| ostler_sys::users::name_of(uid).filter(|name| is_name(name)))
                    .unwrap_or_else(|| format!("uid {uid}"))
            }
        };
        format!("{name} (pid {pid})")
    }

    /// The session that this process runs in.
    #[must_use]
    pub fn own_session(&self) -> Option<SessionId> {
        self.environment.variable("OSTLER_SESSION").and_then(|id| SessionId::parse(&id))
    }

    /// A request of ours.
    #[must_use]
    pub fn request(&self, run: u32, kind: RequestKind) -> Request {
        Request { id: uuid::Uuid::new_v4().to_string(), at: clock::now(), by: self.actor(), run, kind }
    }
}

/// From this many words on, they are looked up by several threads.
const MANY: usize = 64;

pub(crate) fn each_once(words: &[String], select: impl Fn(&str) -> Result<Vec<Place>> + Sync) -> Result<Vec<Place>> {
    let select = |word: &String| select(word);
    let found: Result<Vec<Vec<Place>>> = if words.len() < MANY {
        words.iter().map(select).collect()
    } else {
        each_in_parallel(8, words, select).into_iter().collect()
    };
    let mut seen = HashSet::new();
    Ok(found?.into_iter().flatten().filter(|place| seen.insert((place.id, place.archived))).collect())
}
