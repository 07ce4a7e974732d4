//! Forking: a new session that begins as a copy of a conversation and continues independently. The original is not
//! changed, and may be working meanwhile. The agent itself makes the copy in its first run, with the rights that the
//! original was given and no others.

use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::Result;
use crate::launch::{COMMAND, Launched, new_id};
use crate::notice::Notice;
use crate::prepare::prepare;
use crate::resume::{ForkRefusal, begun};
use crate::session_ref::SessionRef;
use crate::worktrees;
use ostler_core::id::SessionId;
use ostler_core::record::{self, Mode, Session, beginning_of};
use ostler_core::view::{Phase, View};
use ostler_store::checkpoints;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_sys::clock;
use ostler_sys::notify::Watcher;
use ostler_view::proof::Begun;
use ostler_view::{look, proof};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long after a turn a conversation may take to be on disk. Measured: 102 ms at the worst.
const WRITING: Duration = Duration::from_secs(5);
/// How often to look again: a folder cannot be watched when it does not exist yet, or when no inotify instance is left.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How the copy begins.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    /// Its first message.
    pub message: Option<String>,
    /// It waits for further messages after its last turn, and is started without one.
    pub keep: bool,
    /// A name that no other session has.
    pub name: Option<String>,
    /// A person is there who can answer questions.
    pub attended: bool,
    /// The id of the copy, when the caller has reserved one: a repeated request finds the copy that was made before.
    pub id: Option<SessionId>,
    /// It gets a git worktree of its own.
    pub worktree: Option<worktrees::Asked>,
}

/// A session whose conversation can be copied.
#[derive(Debug)]
pub struct Forkable<'e> {
    engine: &'e Engine,
    place: Place,
    /// Its current state.
    pub view: View,
    native_id: String,
}

impl Engine {
    /// Starts a new session with a copy of a session's conversation. When this returns, its program runs.
    pub fn fork(&self, place: &Place, request: Fork, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
        if let Some(place) = request.id.map(|id| self.settled(id)).transpose()?.flatten() {
            let session = place.open()?.session()?;
            return Ok(Launched { place, session });
        }
        self.forkable(place)?.start(request, tell)
    }

    /// The first half of [`Engine::fork`], for a face that reads a message in between: refuses what cannot be copied.
    pub fn forkable(&self, place: &Place) -> Result<Forkable<'_>> {
        let view = look::look(place)?;
        let session = SessionRef::from(&view);
        if view.agent == COMMAND {
            return Err(ForkRefusal::Command { session }.into());
        }
        let folder = place.open()?;
        let written = is_written(&self.environment, &folder, &view)?;
        // The conversation was begun, and another program has removed its transcript.
        if !written
            && view.turns > 0
            && let Some(transcript) = proof::own_file(&folder, &view)?.filter(|path| !Path::new(path).exists())
        {
            let copied = checkpoints::list(&folder)?.iter().any(|one| one.of == Path::new(&transcript));
            return Err(ForkRefusal::TranscriptLost { session, copied }.into());
        }
        let Some(native_id) = view.native_id.clone().filter(|_| written) else {
            return Err(ForkRefusal::NotBegun { session }.into());
        };
        // Agents behind a protocol, recordings and some other agents cannot copy a conversation.
        let opens = place.open()?.run(view.run)?.record()?.plan.opens();
        let copies = ostler_agents::find(&view.agent).is_none_or(|agent| agent.copies_conversations());
        if opens || !copies || view.agent.starts_with(ostler_agents::replay::PREFIX) {
            return Err(ForkRefusal::CannotCopy { agent: view.agent, id: place.id }.into());
        }
        Ok(Forkable { engine: self, place: place.clone(), view, native_id })
    }
}

impl Forkable<'_> {
    /// Refuses a request that [`Forkable::start`] would refuse because of the request itself.
    pub fn check(&self, request: &Fork) -> Result<()> {
        if request.message.is_none() && !request.keep && self.view.mode == Mode::Headless {
            return Err(ForkRefusal::MessageMissing { id: self.place.id }.into());
        }
        let elsewhere = ostler_agents::find(&self.view.agent).is_some_and(|agent| agent.copies_elsewhere());
        if request.worktree.is_some() && !elsewhere {
            return Err(ForkRefusal::SameFolder { agent: self.view.agent.clone(), id: self.place.id }.into());
        }
        Ok(())
    }

    /// Starts the copy.
    pub fn start(self, mut request: Fork, tell: &mut dyn FnMut(Notice)) -> Result<Launched> {
        self.check(&request)?;
        let Forkable { engine, place, view, native_id } = self;
        let agent = ostler_agents::find(&view.agent);
        let found = agent
            .and_then(|agent| proof::find_transcript_with(agent, &native_id, &view.cwd, &engine.environment.lookup()));
        let transcript = proof::own_file(&place.open()?, &view)?.or(found);
        if agent.is_some_and(|agent| agent.forks_from_file()) && transcript.is_none() {
            return Err(ForkRefusal::TranscriptGone { agent: view.agent }.into());
        }
        // When several commands ask for one name at the same time, one gets it: the lock is held until the session
        // exists.
        let tree_name = request.worktree.as_ref().and_then(|asked| asked.name.clone());
        let _names = request.name.as_ref().or(tree_name.as_ref()).map(|_| engine.home.lock_names()).transpose()?;
        request.name = engine.name_for(request.name, tree_name)?;
        let original = place.open()?.session()?;
        let mut tokens = view.tokens.unwrap_or_default();
        tokens += original.fork.as_ref().map(|fork| fork.tokens).unwrap_or_default();
        tokens += original.adopted.as_ref().map(|adopted| adopted.tokens).unwrap_or_default();
        let mut session = Session {
            id: request.id.unwrap_or_else(new_id),
            name: request.name,
            keep: request.keep,
            parent: Some(original.id),
            fork: Some(record::Fork { native_id, transcript, tokens }),
            origin: None,
            adopted: None,
            prompt: request.message.as_deref().map(beginning_of).or_else(|| original.prompt.clone()),
            attended: original.attended || request.attended,
            rules: ostler_core::rules::Rules::default(),
            created: clock::now(),
            ..original
        };
        let message = request.message;
        let start = |session: &Session, _: &mut dyn FnMut(Notice)| {
            let prepared = prepare(engine, session, 1, &uuid::Uuid::new_v4().to_string(), false)?;
            engine.start(session, &prepared, message.into_iter(), None)
        };
        let place = match &request.worktree {
            Some(asked) => engine.in_worktree(&mut session, asked, tell, start)?,
            None => start(&session, tell)?,
        };
        Ok(Launched { place, session })
    }
}

/// Whether the conversation is on disk. Agents write it with a delay, so it is waited for when a turn has begun.
fn is_written(environment: &Environment, session: &Folder, view: &View) -> Result<bool> {
    let comes = !view.ended && (view.turns > 0 || view.state == Phase::Working);
    let deadline = Instant::now() + WRITING;
    // Without a watcher, the loop still looks again at intervals.
    let watcher = Watcher::new().ok();
    let folder = || Path::new(view.transcript.as_deref()?).ancestors().skip(1).find(|folder| folder.is_dir());
    loop {
        if let (Some(watcher), Some(folder)) = (&watcher, folder()) {
            let _ = watcher.watch(folder);
        }
        if begun(environment, session, view)? == Begun::Yes {
            return Ok(true);
        }
        if !comes || Instant::now() >= deadline {
            return Ok(false);
        }
        let mut fds: Vec<PollFd<'_>> = watcher.iter().map(|watcher| PollFd::new(watcher, PollFlags::IN)).collect();
        let _ = poll(&mut fds, Timespec::try_from(LOOK_AGAIN).ok().as_ref());
        if let Some(watcher) = &watcher {
            let _ = watcher.changed();
        }
    }
}
