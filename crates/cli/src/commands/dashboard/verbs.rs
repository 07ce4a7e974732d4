//! What is done to sessions, beside the dashboard: a verb may take as long as a session takes to end, and keys must not wait for it.
//! Each runs in a thread with an engine of its own; what came of it is told through a pipe that the dashboard waits on.

use super::input::Verb;
use super::keys::Effect;
use crate::commands::stop::{not_saved, summary};
use crate::context::{Context, variable};
use crate::exit::{Failure, Result};
use ostler_core::event::StopHow;
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::record::Mode;
use ostler_engine::send::{Answer, Sent};
use ostler_engine::stop::{Stop, Stopped};
use ostler_engine::{Engine, Fork, Launch, Launched, Notice, Place, Resume, SessionRef};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What came of a verb.
pub struct Done {
    /// What was said while it was being done.
    pub busy: String,
    pub said: std::result::Result<String, String>,
    /// A session that has begun, to be selected.
    pub begun: Option<SessionId>,
}

/// Those that work on something.
pub struct Workers {
    sender: Sender<Done>,
    receiver: Receiver<Done>,
    waker: UnixStream,
    woken: UnixStream,
}

impl Workers {
    pub fn new() -> Result<Workers> {
        let (sender, receiver) = channel();
        let (waker, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        Ok(Workers { sender, receiver, waker, woken })
    }

    /// Readable when something is done.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// What is done, without waiting.
    pub fn done(&mut self) -> Vec<Done> {
        let mut buffer = [0; 64];
        while matches!(self.woken.read(&mut buffer), Ok(1..)) {}
        self.receiver.try_iter().collect()
    }

    /// Begins to do this. `called`: the sessions it is done to, in words. Says what is being done meanwhile.
    pub fn start(&self, effect: Effect, called: &str) -> Result<String> {
        let busy = busy_words(&effect, called);
        let (sender, mut waker, words) = (self.sender.clone(), self.waker.try_clone()?, busy.clone());
        let work = move || {
            let mut begun = None;
            let said = perform(effect, &mut begun).map_err(|failure| failure.to_string());
            // The dashboard may be gone; then nobody needs to know.
            let _ = sender.send(Done { busy: words, said, begun });
            let _ = waker.write(&[1]);
        };
        std::thread::Builder::new().spawn(work)?;
        Ok(busy)
    }
}

fn busy_words(effect: &Effect, called: &str) -> String {
    match effect {
        Effect::Answer { .. } => format!("answering {called}"),
        Effect::Send { .. } => format!("sending to {called}"),
        Effect::Launch { agent, .. } => format!("starting {agent}"),
        Effect::Do(Verb::Interrupt, _) => format!("interrupting {called}"),
        Effect::Do(Verb::Stop, _) => format!("stopping {called}"),
        Effect::Do(Verb::Archive, _) => format!("archiving {called}"),
        Effect::Resume(_) => format!("resuming {called}"),
        Effect::Fork(_) => format!("forking {called}"),
        Effect::Quit
        | Effect::Suspend
        | Effect::Redraw
        | Effect::Attach(_)
        | Effect::Shell(_)
        | Effect::Copy(_)
        | Effect::OpenReply(_)
        | Effect::OpenForm
        | Effect::Scroll(_)
        | Effect::Click(_) => String::new(),
    }
}

fn perform(effect: Effect, begun: &mut Option<SessionId>) -> Result<String> {
    let context = Context::new()?;
    let engine = &context.engine;
    match effect {
        Effect::Answer { id, answer } => {
            let place = engine.select(id.as_str())?;
            let Answer { allow, ref text, .. } = answer;
            let verdict = match (allow, text) {
                (true, Some(_)) => "answered",
                (true, None) => "allowed",
                (false, _) => "denied",
            };
            engine.answer(&place, answer)?;
            Ok(format!("{}: {verdict}", SessionRef::at(&place)))
        }
        Effect::Send { to, text } => each(engine, &to, |place| send(engine, place, &text)),
        Effect::Launch { agent, folder, terminal, prompt } => {
            engine.config.needs_for_launch()?;
            let mode = if terminal { Mode::Terminal } else { Mode::Headless };
            let cwd = Some(without_tilde(&folder)).filter(|folder| !folder.as_os_str().is_empty());
            let request =
                Launch { agent, prompt, cwd, mode: Some(mode), keep: !terminal, attended: true, ..Launch::default() };
            let Launched { place, .. } = engine.launch(request, &mut ignore)?;
            *begun = Some(place.id);
            Ok(format!("{}: started", place.id))
        }
        Effect::Do(Verb::Interrupt, of) => each(engine, &of, |place| {
            engine.interrupt(place)?;
            Ok("interrupted".to_owned())
        }),
        Effect::Do(Verb::Stop, of) => each(engine, &of, |place| stop(engine, place)),
        Effect::Do(Verb::Archive, of) => each(engine, &of, |place| {
            for archiving in engine.stop_to_archive(vec![place.clone()]) {
                engine.archive(archiving, &mut ignore)?;
            }
            Ok(format!("archived; bring it back: ostler restore {}", place.id))
        }),
        Effect::Resume(of) => each(engine, &of, |place| {
            engine.config.needs_for_launch()?;
            engine.resume(place, Resume { keep: true, attended: true, ..Resume::default() }, &mut ignore)?;
            Ok("resumed".to_owned())
        }),
        Effect::Fork(of) => each(engine, &of, |place| {
            engine.config.needs_for_launch()?;
            let launched = engine.fork(place, Fork { keep: true, attended: true, ..Fork::default() })?;
            *begun = Some(launched.place.id);
            Ok(format!("forked; the copy is {}", launched.place.id))
        }),
        Effect::Quit
        | Effect::Suspend
        | Effect::Redraw
        | Effect::Attach(_)
        | Effect::Shell(_)
        | Effect::Copy(_)
        | Effect::OpenReply(_)
        | Effect::OpenForm
        | Effect::Scroll(_)
        | Effect::Click(_) => Ok(String::new()),
    }
}

/// Notices on the way are about files and leftovers; the list shows what became of the session.
fn ignore(_: Notice) {}

/// A message to one that has ended continues it.
fn send(engine: &Engine, place: &Place, text: &str) -> Result<String> {
    let said = if engine.view_without_last(place)?.ended {
        engine.config.needs_for_launch()?;
        let request = Resume { message: Some(text.to_owned()), keep: true, attended: true, ..Resume::default() };
        engine.resume(place, request, &mut ignore)?;
        "resumed with your message".to_owned()
    } else {
        match engine.send(place, text.to_owned(), false)? {
            Sent::Accepted => "accepted".to_owned(),
            Sent::ForNextRun => format!("accepted; the session has ended, send it now: ostler resume {}", place.id),
        }
    };
    engine.draft(place)?.keep("");
    Ok(said)
}

fn stop(engine: &Engine, place: &Place) -> Result<String> {
    let how = Stop { how: StopHow::Interrupt, grace: engine.config.grace, why: "stop".to_owned() };
    Ok(match engine.ask_to_stop(place.clone(), &how)?.wait(&mut ignore)? {
        Stopped::Damaged { damage } => {
            format!("stopped; whether the last turn is saved is unknown, because its folder is damaged: {damage}")
        }
        Stopped::Ended(end) => {
            let words = summary(&end.view, end.was_over);
            let called = format!("{}: ", SessionRef::at(place));
            let words = words.strip_prefix(&called).unwrap_or(&words).to_owned();
            match end.was_over || end.is_saved() {
                true => words,
                false => return Err(Failure::ours(not_saved(&end.view))),
            }
        }
    })
}

/// Does it to each of these, all of them whatever happens to one, and says what came of it in one line.
fn each(engine: &Engine, of: &[SessionId], mut one: impl FnMut(&Place) -> Result<String>) -> Result<String> {
    let mut done = Vec::new();
    let mut failed = Vec::new();
    for id in of {
        let outcome = engine.select(id.as_str()).map_err(Failure::from).and_then(|place| {
            let said = one(&place)?;
            Ok(format!("{}: {said}", SessionRef::at(&place)))
        });
        match outcome {
            Ok(said) => done.push(said),
            Err(failure) => failed.push(failure),
        }
    }
    let several = |count: usize| counted(count as u64, "session", "sessions");
    match (done.len(), failed.len()) {
        (_, 0) if of.len() == 1 => Ok(done.remove(0)),
        (count, 0) => Ok(format!("done for {}", several(count))),
        (0, 1) => Err(failed.remove(0)),
        (count, bad) => {
            let first = failed.remove(0);
            let others = if bad > 1 { format!(" (and {} more)", bad - 1) } else { String::new() };
            let words = format!("done for {}; {}{others}", several(count), first);
            Err(Failure::new(first.code, words))
        }
    }
}

/// `~` at the beginning is the home folder, as a shell has it.
fn without_tilde(folder: &str) -> PathBuf {
    let folder = folder.trim();
    let home = || variable("HOME").filter(|home| !home.is_empty());
    match folder.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')).zip(home()) {
        Some((rest, home)) => PathBuf::from(format!("{home}{rest}")),
        None => PathBuf::from(folder),
    }
}
