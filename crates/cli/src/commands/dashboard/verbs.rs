//! What is done to sessions, in other threads: a verb may take as long as a session takes to end, and keys must not
//! wait for it. Each verb runs in a thread with an engine of its own. Its result is sent through a channel, and a
//! socket wakes the dashboard.

use super::input::Verb;
use super::keys::Work;
use crate::commands::land::told;
use crate::commands::stop::{not_saved, summary};
use crate::context::{Context, variable};
use crate::exit::{Failure, Result};
use ostler_core::event::StopHow;
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::record::Mode;
use ostler_engine::limits::Asked;
use ostler_engine::send::{Answer, Sent};
use ostler_engine::stop::{Stop, Stopped};
use ostler_engine::worktrees::Land;
use ostler_engine::{Adopt, Engine, Fork, Launch, Launched, Notice, Place, Resume, SessionRef};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The result of a verb.
pub struct Done {
    pub work: Work,
    /// What was shown while it was being done.
    pub busy: String,
    pub said: std::result::Result<String, String>,
    /// A session that was started, to be selected.
    pub begun: Option<SessionId>,
}

/// The threads that do the verbs.
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

    /// Readable when a verb is done.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Makes [`Workers::fd`] readable.
    pub fn waker(&self) -> Result<UnixStream> {
        Ok(self.waker.try_clone()?)
    }

    /// The verbs that are done, without waiting.
    pub fn done(&mut self) -> Vec<Done> {
        let mut buffer = [0; 64];
        while matches!(self.woken.read(&mut buffer), Ok(1..)) {}
        self.receiver.try_iter().collect()
    }

    /// Starts a verb. `called`: the sessions it is done to, in words. Returns what to show meanwhile.
    pub fn start(&self, work: Work, called: &str) -> Result<String> {
        let busy = busy_words(&work, called);
        let (sender, mut waker, words) = (self.sender.clone(), self.waker.try_clone()?, busy.clone());
        let perform = move || {
            let mut begun = None;
            let said = perform(work.clone(), &mut begun).map_err(|failure| failure.to_string());
            // Errors are ignored: the dashboard may be gone.
            let _ = sender.send(Done { work, busy: words, said, begun });
            let _ = waker.write(&[1]);
        };
        std::thread::Builder::new().spawn(perform)?;
        Ok(busy)
    }
}

fn busy_words(work: &Work, called: &str) -> String {
    match work {
        Work::Answer { .. } => format!("answering {called}"),
        Work::Send { .. } => format!("sending to {called}"),
        Work::Launch { agent, .. } => format!("starting {agent}"),
        Work::Do(Verb::Interrupt, _) => format!("interrupting {called}"),
        Work::Do(Verb::Stop, _) => format!("stopping {called}"),
        Work::Do(Verb::Archive, _) => format!("archiving {called}"),
        Work::Do(Verb::Land, _) => format!("landing {called}"),
        Work::Resume(_) => format!("resuming {called}"),
        Work::Fork(_) => format!("forking {called}"),
        Work::Restore(_) => format!("restoring {called}"),
        Work::Adopt(native_id) => format!("adopting {native_id}"),
    }
}

fn perform(work: Work, begun: &mut Option<SessionId>) -> Result<String> {
    let context = Context::new()?;
    let engine = &context.engine;
    match work {
        Work::Answer { id, answer } => {
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
        Work::Send { to, text } => each(engine, &to, |place| send(engine, place, &text)),
        Work::Launch { agent, folder, terminal, prompt } => {
            engine.config.needs_for_launch()?;
            let mode = if terminal { Mode::Terminal } else { Mode::Headless };
            let cwd = Some(without_tilde(&folder)).filter(|folder| !folder.as_os_str().is_empty());
            let request =
                Launch { agent, prompt, cwd, mode: Some(mode), keep: !terminal, attended: true, ..Launch::default() };
            let Launched { place, .. } = engine.launch(request, &mut ignore)?;
            *begun = Some(place.id);
            Ok(format!("{}: started", place.id))
        }
        Work::Do(Verb::Interrupt, of) => each(engine, &of, |place| {
            engine.interrupt(place)?;
            Ok("interrupted".to_owned())
        }),
        Work::Do(Verb::Stop, of) => each(engine, &of, |place| stop(engine, place)),
        Work::Do(Verb::Archive, of) => each(engine, &of, |place| {
            for archiving in engine.stop_to_archive(vec![place.clone()]) {
                engine.archive(archiving, &mut ignore)?;
            }
            Ok(format!("archived; bring it back: ostler restore {}", place.id))
        }),
        Work::Do(Verb::Land, of) => each(engine, &of, |place| {
            told(engine, place, engine.land(place, &Land::default(), || Ok(None::<OwnedFd>))?, false)
        }),
        Work::Resume(of) => each(engine, &of, |place| {
            engine.config.needs_for_launch()?;
            engine.resume(place, Resume { keep: true, attended: true, ..Resume::default() }, &mut ignore)?;
            *begun = Some(place.id);
            Ok("resumed".to_owned())
        }),
        Work::Fork(of) => each(engine, &of, |place| {
            engine.config.needs_for_launch()?;
            let launched = engine.fork(place, Fork { keep: true, attended: true, ..Fork::default() }, &mut ignore)?;
            *begun = Some(launched.place.id);
            Ok(format!("forked; the copy is {}", launched.place.id))
        }),
        Work::Restore(id) => {
            for place in engine.select_archived(&[id.to_string()])? {
                engine.restore(&place)?;
            }
            *begun = Some(id);
            Ok(format!("{id}: restored"))
        }
        Work::Adopt(native_id) => {
            engine.config.needs_for_launch()?;
            // As the command does it: the conversation was in a terminal before, and continues in one.
            let request = Adopt {
                name: None,
                mode: Mode::Terminal,
                keep: false,
                model: None,
                limits: Asked::default(),
                arguments: Vec::new(),
                attended: true,
            };
            let (Launched { place, .. }, _) =
                engine.adoptable(&native_id, false, &mut ignore)?.adopt(&request, &mut ignore)?;
            *begun = Some(place.id);
            let resume = Resume { attended: true, ..Resume::default() };
            match engine.resume(&place, resume, &mut ignore) {
                Ok(_) => Ok(format!("adopted as {}; Enter attaches", place.id)),
                Err(error) => {
                    let failure = Failure::from(error);
                    let words = format!("{}; adopted as {}, but not started; R tries again", failure.words, place.id);
                    Err(Failure::new(failure.code, words))
                }
            }
        }
    }
}

/// Notices are about files and leftovers; the list shows what happened to the session.
fn ignore(_: Notice) {}

/// A message to a session that has ended resumes it.
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
            Sent::AfterStop => {
                format!("accepted; the session is stopping, send it when it has stopped: ostler resume {}", place.id)
            }
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

/// Does something to each of these sessions, also when it fails for one, and says the results in one line.
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

/// `~` at the beginning is the home folder, as in a shell.
fn without_tilde(folder: &str) -> PathBuf {
    let folder = folder.trim();
    let home = || variable("HOME").filter(|home| !home.is_empty());
    match folder.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')).zip(home()) {
        Some((rest, home)) => PathBuf::from(format!("{home}{rest}")),
        None => PathBuf::from(folder),
    }
}
