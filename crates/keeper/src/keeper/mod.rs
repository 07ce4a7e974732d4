//! The keeper: the clever half. It moves bytes to files, talks to clients, delivers messages, proves, stops. It may be
//! killed at any moment: everything it knows is in files, and its replacement wants the same things again.
//!
//! One thread, one `poll`, no timer while nothing is due: an idle session costs no wake-up at all.
//!
//! * [`streams`] and [`input`] move bytes, [`output`] understands them.
//! * [`wishes`] works through the inbox, [`effects`] does what the life cycle wants.
//! * [`tree`] and [`proof_watch`] serve the hard parts of ending: nothing left behind, nothing lost.
//! * [`clients`] are told that something changed; they read the files themselves. [`making_way`] lets a newer keeper in.

mod clients;
mod effects;
mod input;
mod making_way;
mod output;
mod proof_watch;
pub mod snapshots;
mod streams;
mod tree;
mod wishes;

use crate::control::{self, Heard, News};
use crate::files::{enter_folder, helper_record};
use crate::handles::{self, Handles};
use crate::wire::Reply;
use crate::{HOLDER, VERSION, holder};
use clients::{Clients, Wanted};
use input::Input;
use jiff::Timestamp;
use ostler_agents::Agent;
use ostler_core::event::{Entry, Event, StopHow};
use ostler_core::life::{Process, State, step};
use ostler_core::record::{Mode, Session, Speaks};
use ostler_store::feed::Feed;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::journal::{self, Journal};
use ostler_store::{RunRecord, StoreError, inbox, look, proof, terminal};
use ostler_sys::cgroup::Group;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir;
use ostler_sys::lock::{self, Held};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::signals::{Signals, ignore};
use ostler_sys::{pty, socket};
use output::Output;
use proof_watch::ProofWatch;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::process::Signal;
use rustix::time::Timespec;
use snapshots::Snapshots;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::path::Path;
use streams::Streams;

/// How often a full disk is tried again. There is no event for "room again".
const FULL_DISK_MS: u64 = 250;
/// The grace when it is the machine, not a person, that wants the session to end.
const SHUTDOWN_GRACE_MS: u64 = 3000;

/// Why a keeper had to give up; its replacement tries again.
#[derive(Debug, thiserror::Error)]
enum KeeperError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("nothing is known about agent {0:?}")]
    Agent(String),
}

/// The process called `__keeper`.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    ignore(Signal::PIPE);
    let _ = rustix::thread::set_name(c"ostler-keeper");
    match Keeper::take_over(arguments).and_then(Keeper::keep) {
        Ok(()) => 0,
        Err(error) => {
            note_failure(&error);
            1
        }
    }
}

/// The journal is a keeper's only log, and it may be the journal that failed: then this is lost, and the crash still
/// shows. We work in the session's folder, and our replacement starts only when we are gone.
fn note_failure(error: &KeeperError) {
    let noted = || -> Result<(), KeeperError> {
        let event = Event::Alarm { text: format!("the keeper failed: {error}") };
        Ok(Journal::open(&dir::Dir::open(".")?)?.append(&entry(0, About::default(), event))?)
    };
    let _ = noted();
}

/// Where an event comes from.
#[derive(Clone, Debug, Default)]
struct About {
    out: Option<u64>,
    wish: Option<String>,
    inbox: Option<u64>,
}

fn entry(run: u32, about: About, event: Event) -> Entry {
    let About { out, wish, inbox } = about;
    Entry { at: Timestamp::now(), ms: since_boot_ms(), run, out, wish, inbox, event }
}

struct Keeper {
    folder: Folder,
    run: RunFolder,
    session: Session,
    record: RunRecord,
    agent: &'static dyn Agent,
    process: Identity,
    group: Option<Group>,
    handles: Handles,
    signals: Signals,
    /// Held for as long as we live.
    _lock: Held,
    holder: Option<OwnedFd>,
    holder_pid: Option<i32>,

    journal: Journal,
    /// Entries that did not fit on the disk yet.
    unwritten: VecDeque<Entry>,
    state: State,
    /// What became of wishes: granted, or refused and why.
    answers: HashMap<String, Option<String>>,
    /// Who answered a question first.
    answered: HashMap<String, String>,

    streams: Streams,
    input: Input,
    output: Option<Output>,
    clients: Clients,
    snapshots: Snapshots,
    proof: Option<ProofWatch>,
    window: Option<(u16, u16)>,

    agent_exited: bool,
    /// The next moment at which something is due.
    wake_ms: Option<u64>,
    changed: bool,
    done: bool,
}

/// What woke us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Signals,
    Line,
    Holder,
    Agent,
    Output,
    Room,
    Door,
    Client(usize),
    Proof,
    Snapshot,
}

impl Keeper {
    /// Becomes the keeper of a session: waits for the lock, folds the journal, and says so.
    fn take_over(arguments: &[String]) -> Result<Keeper, KeeperError> {
        let handles = Handles::from_arguments(arguments)?;
        let folder = enter_folder(&handles)?;
        let lock_file = folder.dir().file("keeper.lock", OFlags::RDWR | OFlags::CREATE)?;
        let held = lock::exclusive(lock_file)?;
        let signals = Signals::take(&[Signal::TERM, Signal::HUP, Signal::INT])?;
        folder.even_when_full(|| folder.write_keeper(&helper_record().map_err(full_or("keeper.json"))?))?;

        let session = folder.session()?;
        let run = folder.run(folder.newest_run()?)?;
        let record = run.record()?;
        let agent = ostler_agents::find(&session.agent).ok_or_else(|| KeeperError::Agent(session.agent.clone()))?;
        let process = record.agent.clone().ok_or_else(|| io::Error::other("run.json names no process"))?;
        let found = journal::read(folder.dir(), 0)?;
        let mut state = State::new(record.plan.clone());
        let (mut answers, mut answered) = (HashMap::new(), HashMap::new());
        for entry in found.entries {
            if let Some(wish) = &entry.wish {
                let refused = if let Event::Refused { why } = &entry.event { Some(why.clone()) } else { None };
                answers.insert(wish.clone(), refused);
            }
            if let Event::Answered { request, by, .. } = &entry.event {
                answered.insert(request.clone(), by.clone());
            }
            state = step(state, &entry).0;
        }
        let input = || {
            let file = run.dir().file("in", OFlags::RDWR | OFlags::CREATE).map_err(full_or("in"))?;
            Feed::open(run.dir(), File::from(file))
        };
        let mut keeper = Keeper {
            journal: folder.even_when_full(|| Journal::open(folder.dir()))?,
            unwritten: VecDeque::new(),
            answers,
            answered,
            streams: Streams::new(record.plan.mode),
            input: Input::new(folder.even_when_full(input)?),
            output: None,
            clients: Clients::default(),
            snapshots: Snapshots::new(&run),
            proof: None,
            window: None,
            agent_exited: false,
            wake_ms: None,
            changed: true,
            done: false,
            group: record.cgroup.as_deref().map(Path::new).and_then(Group::open),
            holder: None,
            holder_pid: None,
            _lock: held,
            folder,
            run,
            session,
            record,
            agent,
            process,
            handles,
            signals,
            state,
        };
        keeper.begin()?;
        Ok(keeper)
    }

    fn begin(&mut self) -> Result<(), KeeperError> {
        if self.state.run < self.record.run {
            let first = look::started(&self.record);
            self.write(first)?;
            self.sync_launch();
        }
        if self.record.plan.speaks == Speaks::Turns {
            self.output = Some(Output::new(self.agent, &self.state));
        }
        self.take_back_unanswered()?;
        self.note(Event::KeeperStarted {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            version: VERSION.to_owned(),
        })?;
        match self.folder.holder()?.map(|holder| holder.process) {
            Some(process) => match Pidfd::open(&process)? {
                Some(pidfd) if !pidfd.has_exited()? => {
                    self.holder_pid = Some(process.pid());
                    self.holder = Some(pidfd.into());
                }
                Some(_) | None => self.replace_holder()?,
            },
            None => self.replace_holder()?,
        }
        self.check_exit()?;
        self.resume_half_done()?;
        self.work_inbox()
    }

    /// A message with which an earlier process died: the agent's transcript decides whether it was ever taken in.
    fn take_back_unanswered(&mut self) -> Result<(), KeeperError> {
        let (Some(message), Some(transcript)) = (self.state.unanswered, &self.record.transcript) else {
            return Ok(());
        };
        let Some(wish) = inbox::read_one(self.folder.dir(), message.at)? else {
            return Ok(());
        };
        if !proof::holds(self.agent, Path::new(transcript), &[wish.id])? {
            self.note(Event::Returned { n: message.n, place: message.at })?;
        }
        Ok(())
    }

    /// Does again what a predecessor may have noted without getting to do it. None of it does harm twice.
    fn resume_half_done(&mut self) -> Result<(), KeeperError> {
        if let Some(message) = self.state.feeding {
            self.feed(message)?;
        }
        if self.state.process == Process::Running && self.state.end_asked_ms.is_some() {
            self.ask_to_leave()?;
        }
        Ok(())
    }

    /// The records of a launch reach the disk now that nobody waits for it. A disk that cannot is a disk that shows it soon.
    fn sync_launch(&self) {
        for name in ["session.json", "holder.json", "inbox.jsonl"] {
            if let Ok(file) = self.folder.dir().file(name, OFlags::RDONLY) {
                let _ = rustix::fs::fsync(file);
            }
        }
        if let Ok(file) = self.run.dir().file("run.json", OFlags::RDONLY) {
            let _ = rustix::fs::fsync(file);
        }
        let _ = self.run.dir().sync();
        let _ = self.folder.dir().sync();
        if let Ok(sessions) = dir::Dir::open("..") {
            let _ = sessions.sync();
        }
    }

    fn keep(mut self) -> Result<(), KeeperError> {
        loop {
            self.move_bytes()?;
            self.act()?;
            if self.done {
                return Ok(());
            }
            if std::mem::take(&mut self.changed) {
                self.clients.tell_changed()?;
            }
            for woken in self.poll()? {
                self.heed(woken)?;
                if self.done {
                    return Ok(());
                }
            }
            if self.agent_exited && self.folder.dir().is_deleted()? {
                // Somebody deleted the session under us: there is nowhere to write how it ended.
                let tree = self.tree();
                return Ok(tree.end(&tree.left()?, true)?);
            }
            if inbox::size(self.folder.dir())? > self.state.inbox {
                self.work_inbox()?;
            }
        }
    }

    fn heed(&mut self, woken: Woken) -> Result<(), KeeperError> {
        match woken {
            Woken::Signals => {
                while let Some(signal) = self.signals.next()? {
                    if signal == Signal::TERM.as_raw() {
                        self.wish_shutdown("SIGTERM to the keeper")?;
                    }
                }
            }
            Woken::Line => self.hear_holder()?,
            Woken::Holder => self.replace_holder()?,
            Woken::Agent => {
                self.agent_exited = true;
                self.check_exit()?;
            }
            Woken::Door => {
                if let Some(door) = self.handles.get(handles::DOOR) {
                    self.clients.welcome(door)?;
                }
            }
            Woken::Client(index) => self.hear_client(index)?,
            Woken::Proof => {
                if let Some(watcher) = self.proof.as_ref().and_then(|proof| proof.watcher.as_ref()) {
                    watcher.changed()?;
                }
            }
            Woken::Snapshot => {
                let taken = self.snapshots.taken(&self.run);
                self.trim(taken)?;
            }
            // What these bring is moved at the top of the loop.
            Woken::Output | Woken::Room => {}
        }
        Ok(())
    }

    fn poll(&self) -> io::Result<Vec<Woken>> {
        let mut kinds = Vec::new();
        let mut fds = Vec::new();
        for (kind, handle, flags) in self.watched()? {
            kinds.push(kind);
            fds.push(PollFd::from_borrowed_fd(handle, flags));
        }
        let full = (self.streams.disk_full || !self.unwritten.is_empty()).then(|| since_boot_ms() + FULL_DISK_MS);
        let timeout = self.wake_ms.into_iter().chain(full).min().map(|ms| {
            let wait = ms.saturating_sub(since_boot_ms());
            Timespec {
                tv_sec: i64::try_from(wait / 1000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(wait % 1000).unwrap_or(0) * 1_000_000,
            }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(kinds.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(kind, _)| kind).collect())
    }

    /// Everything that may wake us.
    fn watched(&self) -> io::Result<Vec<(Woken, BorrowedFd<'_>, PollFlags)>> {
        let named = |name| self.handles.get(name).map(AsFd::as_fd);
        let watcher = self.proof.as_ref().and_then(|proof| proof.watcher.as_ref());
        let single = [
            (Woken::Signals, Some(self.signals.as_fd())),
            (Woken::Line, named(handles::HOLDER_LINE)),
            (Woken::Holder, self.holder.as_ref().map(AsFd::as_fd)),
            (Woken::Agent, named(handles::AGENT).filter(|_| !self.agent_exited)),
            (Woken::Door, named(handles::DOOR)),
            (Woken::Proof, watcher.map(AsFd::as_fd)),
            (Woken::Snapshot, self.snapshots.process().map(AsFd::as_fd)),
        ];
        let mut watched: Vec<_> =
            single.into_iter().filter_map(|(kind, handle)| Some((kind, handle?, PollFlags::IN))).collect();
        if !self.snapshots.are_behind(self.out_position()?) {
            let sources = self.streams.sources(&self.handles);
            watched.extend(sources.into_iter().map(|source| (Woken::Output, source.as_fd(), PollFlags::IN)));
        }
        watched.extend(self.input.sink(&self.handles).map(|sink| (Woken::Room, sink.as_fd(), PollFlags::OUT)));
        // Newest first, so that one who leaves does not change the number of one still to be heard.
        for (index, client) in self.clients.list().iter().enumerate().rev() {
            let behind = if Clients::is_behind(client) { PollFlags::OUT } else { PollFlags::empty() };
            watched.push((Woken::Client(index), client.socket.as_fd(), PollFlags::IN | behind));
        }
        Ok(watched)
    }

    /// Everything that can move moves: output to its file and into facts, input from its file.
    fn move_bytes(&mut self) -> Result<(), KeeperError> {
        if self.streams.disk_full || !self.unwritten.is_empty() {
            self.try_disk_again()?;
        }
        if !self.snapshots.are_behind(self.out_position()?) {
            self.changed |= self.streams.pump(&self.handles)?;
        }
        self.understand()?;
        if self.record.plan.mode == Mode::Terminal {
            let position = self.out_position()?;
            self.snapshots.take_when_due(&self.handles, &self.run, position);
        }
        self.input.pump(&self.handles)?;
        if let Some(message) = self.state.feeding
            && self.input.is_taken(&self.handles)?
        {
            self.note(Event::Delivered { n: message.n })?;
        }
        Ok(())
    }

    fn try_disk_again(&mut self) -> Result<(), KeeperError> {
        self.streams.disk_full = false;
        while let Some(entry) = self.unwritten.front() {
            match self.journal.append(entry) {
                Ok(()) => {
                    self.unwritten.pop_front();
                }
                Err(error) if error.is_full_disk() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        match self.input.put_waiting() {
            Err(error) if !error.is_full_disk() => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        if self.state.outcome.is_none() {
            // When there is no room for it yet, the next time will do.
            let _ = self.folder.keep_reserve();
        }
        for index in 0..self.clients.list().len() {
            self.acknowledge_keys(index)?;
        }
        Ok(())
    }

    /// Reads what the agent has said and folds it in.
    fn understand(&mut self) -> Result<(), KeeperError> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        for (out, fact) in output.read(self.run.dir())? {
            if let Some(event) = look::event_of(fact, &self.state) {
                self.note_about(About { out: Some(out), ..About::default() }, event)?;
            }
        }
        Ok(())
    }

    fn out_position(&self) -> io::Result<u64> {
        Ok(self.handles.get(handles::OUT).map(dir::position).transpose()?.unwrap_or(0))
    }

    fn note(&mut self, event: Event) -> Result<(), KeeperError> {
        self.note_about(About::default(), event)
    }

    fn note_about(&mut self, about: About, event: Event) -> Result<(), KeeperError> {
        self.write(entry(self.record.run, about, event))
    }

    /// Journal first, then state. On a full disk the reserve is for this; when even that is used up, memory has to do
    /// until there is room.
    fn write(&mut self, entry: Entry) -> Result<(), KeeperError> {
        if !self.unwritten.is_empty() {
            self.unwritten.push_back(entry.clone());
        } else {
            let journal = &mut self.journal;
            match self.folder.even_when_full(|| journal.append(&entry)) {
                Ok(()) => {}
                Err(error) if error.is_full_disk() => self.unwritten.push_back(entry.clone()),
                Err(error) => return Err(error.into()),
            }
        }
        let state = std::mem::replace(&mut self.state, State::new(self.record.plan.clone()));
        self.state = step(state, &entry).0;
        self.changed = true;
        Ok(())
    }

    fn check_exit(&mut self) -> Result<(), KeeperError> {
        if self.state.process != Process::Exited
            && let Some(exit) = self.run.exit()?
        {
            self.agent_exited = true;
            self.note(Event::Exited { exit })?;
        }
        Ok(())
    }

    fn hear_holder(&mut self) -> Result<(), KeeperError> {
        while let Some(line) = self.handles.get(handles::HOLDER_LINE) {
            match control::hear(line)? {
                Heard::News(Some(News::Exited)) => self.check_exit()?,
                Heard::News(Some(News::Terminated)) => self.wish_shutdown("SIGTERM to the holder")?,
                // The tree is looked at whenever we are awake.
                Heard::News(Some(News::Reaped) | None) => {}
                Heard::Nothing => break,
                Heard::Silence => {
                    self.handles.close(handles::HOLDER_LINE);
                    if self.holder.is_none() {
                        self.replace_holder()?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// The holder is gone. Another process gets the same descriptors and watches in its place.
    fn replace_holder(&mut self) -> Result<(), KeeperError> {
        if self.state.outcome.is_some() || self.folder.dir().is_deleted()? {
            self.holder = None;
            return Ok(());
        }
        let (theirs, ours) = socket::pair()?;
        self.handles.put(handles::HOLDER_LINE, ours);
        let me = Pidfd::open(&Identity::me()?)?.ok_or_else(|| io::Error::other("no pidfd of ourselves"))?;
        let number = self.run.number.to_string();
        let more = [(holder::LINE, theirs.as_fd()), (holder::KEEPER_PROCESS, me.as_fd())];
        let started = self
            .handles
            .start_helper(HOLDER, &more, &["--stand-in", "--run", &number])
            .map_err(|error| io::Error::other(error.to_string()))?;
        self.holder_pid = Some(started.pid);
        self.holder = Some(started.pidfd);
        self.note(Event::HolderReplaced { pid: started.pid })
    }

    fn wish_shutdown(&mut self, why: &str) -> Result<(), KeeperError> {
        if self.state.stop.is_none() {
            self.note(Event::StopWanted {
                by: "the system".to_owned(),
                why: why.to_owned(),
                how: StopHow::Interrupt,
                grace_ms: SHUTDOWN_GRACE_MS,
            })?;
            self.journal.sync()?;
        }
        Ok(())
    }

    fn hear_client(&mut self, index: usize) -> Result<(), KeeperError> {
        self.clients.catch_up(index)?;
        loop {
            let wanted = match self.clients.hear(index) {
                Ok(Some(wanted)) => wanted,
                Ok(None) => return Ok(()),
                Err(_) => {
                    // Gone, or not worth talking to. A window that it had goes back to the next client.
                    self.clients.remove(index);
                    return self.follow_window();
                }
            };
            match wanted {
                Wanted::Wish { id } => {
                    self.work_inbox()?;
                    let refused = match self.answers.get(&id) {
                        Some(answer) => answer.clone(),
                        None => Some("no such wish is in the inbox".to_owned()),
                    };
                    self.clients.say(index, &Reply::Wish { id, refused })?;
                }
                Wanted::Keys { position, keys } => self.take_keys(index, position, &keys)?,
                Wanted::Window | Wanted::Attached => {
                    let newest = self.clients.move_to_front(index);
                    self.follow_window()?;
                    // Said last: whoever hears it finds the program's window to be its own, and so noted in the files.
                    self.acknowledge_keys(newest)?;
                    // It has another number now; what else it wants is heard at once in the next round.
                    return Ok(());
                }
                Wanted::Upgrade { binary } => return self.make_way(index, &binary),
            }
        }
    }

    fn take_keys(&mut self, index: usize, position: u64, keys: &[u8]) -> Result<(), KeeperError> {
        let attached = self.clients.get(index).and_then(|client| client.attached.clone());
        let Some(attached) = attached.filter(|attached| !attached.read_only) else {
            return Ok(());
        };
        match self.input.keys(&attached.name, position, keys) {
            Ok(received) => self.clients.say(index, &Reply::Keys { received })?,
            // Asked for again when there is room.
            Err(error) if error.is_full_disk() => self.streams.disk_full = true,
            Err(error) => return Err(error.into()),
        }
        self.input.pump(&self.handles)?;
        Ok(())
    }

    fn acknowledge_keys(&self, index: usize) -> Result<(), KeeperError> {
        if let Some(attached) = self.clients.get(index).and_then(|client| client.attached.as_ref()) {
            let received = self.input.received(&attached.name);
            self.clients.say(index, &Reply::Keys { received })?;
        }
        Ok(())
    }

    /// Gives the terminal the window of the newest client.
    fn follow_window(&mut self) -> Result<(), KeeperError> {
        let (Some((rows, columns)), Some(terminal)) = (self.clients.window(), self.handles.get(handles::PTY)) else {
            return Ok(());
        };
        if self.window == Some((rows, columns)) || pty::size(terminal) == Some((rows, columns)) {
            self.window = Some((rows, columns));
            return Ok(());
        }
        let at = self.out_position()?;
        // A note that does not fit on a full disk makes a replay less right, not wrong for ever: the program redraws.
        match terminal::note_size(self.run.dir(), terminal::Resize { at, rows, columns }) {
            Err(error) if !error.is_full_disk() => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        pty::resize(terminal, rows, columns)?;
        self.window = Some((rows, columns));
        Ok(())
    }

    /// Drops the oldest terminal output, in large steps and never past the newest snapshot.
    fn trim(&mut self, snapshot: u64) -> Result<(), KeeperError> {
        let Some(limit) = self.record.output_limit else {
            return Ok(());
        };
        let position = self.out_position()?;
        let to = position.saturating_sub(limit).min(snapshot);
        if to < self.state.trimmed + limit / 8 {
            return Ok(());
        }
        if let Some(out) = self.handles.get(handles::OUT) {
            match dir::forget_front(out, to) {
                Ok(()) => self.note(Event::Trimmed { to })?,
                Err(error) => {
                    self.note(Event::Alarm { text: format!("old output cannot be dropped here: {error}") })?;
                    self.record.output_limit = None;
                }
            }
        }
        Ok(())
    }
}

fn full_or(file: &'static str) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::Io { file: file.to_owned(), error }
}
