//! Moments of which a person is to be notified: each is marked in its entry of the journal, and a short-lived process
//! sends it.
//!
//! That process is not a part of the session, and the keeper does not wait for it: a server that does not answer delays
//! no turn, no stop and no outcome. The process may outlive the session by up to an hour, after which it gives up. When
//! nothing is configured, there is neither a mark nor a process.

use super::Keeper;
use crate::handles::{BINARY, FOLDER, HOME, Handles};
use crate::launcher_process::Launcher;
use crate::{NOTIFY, Settings};
use ostler_core::event::Event;
use ostler_core::life::State;
use ostler_core::moment::{self, Moment, Wanted};
use ostler_core::record::beginning_of;
use ostler_store::folder::Folder;
use ostler_store::home::Home;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir::Dir;
use ostler_sys::pause_points::{self, Point};
use ostler_sys::process::WaitStatus;
use ostler_sys::spawn::{self, StartError, Started};
use rustix::fd::{AsFd, OwnedFd};

/// How often a sender that was killed is started again, with growing pauses. After that the next moment starts one.
const ATTEMPTS: u32 = 6;
const PAUSE_MS: u64 = 500;

/// The senders that were started and have not ended.
#[derive(Default)]
pub(super) struct Senders {
    running: Vec<Started>,
    /// When a sender is to be started.
    due_ms: Option<u64>,
    killed: u32,
}

impl Senders {
    /// What to poll for the ends of the senders.
    pub fn processes(&self) -> impl Iterator<Item = &OwnedFd> {
        self.running.iter().map(|process| &process.pidfd)
    }

    /// A moment was noted, or a predecessor may have noted one but was killed before it could send it.
    pub fn are_needed(&mut self, now_ms: u64) {
        self.due_ms = Some(now_ms);
        self.killed = 0;
    }

    fn start_when_due(&mut self, handles: &Handles, folder: &Folder, now_ms: u64) {
        if self.due_ms.take_if(|due| *due <= now_ms).is_none() {
            return;
        }
        match start(handles, folder) {
            Ok(sender) => self.running.push(sender),
            Err(_) => self.try_again(now_ms),
        }
    }

    fn try_again(&mut self, now_ms: u64) {
        self.killed += 1;
        self.due_ms = (self.killed < ATTEMPTS).then(|| now_ms + (PAUSE_MS << self.killed));
    }

    /// A sender has ended. If it was killed, what it had to send still waits in files.
    fn ended(&mut self, index: usize, now_ms: u64) {
        if index < self.running.len() {
            let sender = self.running.remove(index);
            if spawn::collect(sender.pid).and_then(WaitStatus::code) != Some(0) {
                self.try_again(now_ms);
            }
        }
    }
}

impl Keeper {
    /// The moment that an event is, when a person is to be notified of it, and how.
    pub(super) fn moment_of(&self, event: &Event) -> Option<(Moment, Wanted)> {
        moment_of(self.settings, &self.state, event, self.clients.are_attached())
    }

    /// Notifies the person of a moment that is noted in the journal. `text`: what the agent said, for attached clients.
    pub(super) fn tell(&mut self, moment: Moment, wanted: &Wanted, text: Option<String>) {
        pause_points::at(Point::MomentNoted);
        if wanted.by_sender {
            self.senders.are_needed(since_boot_ms());
        }
        if let Some(text) = text.filter(|_| wanted.in_terminals) {
            let title = format!("{} {}", self.session.title(), moment.says());
            self.clients.notify(beginning_of(&title), beginning_of(&text));
        }
    }

    /// A predecessor may have been killed between the note and the start of a sender.
    pub(super) fn send_what_was_noted(&mut self) {
        if self.state.run > 0 && (self.settings.notify)().is_some_and(|wanted| wanted.by_sender) {
            self.senders.are_needed(since_boot_ms());
        }
    }

    /// When a sender is to be started. It reads the journal, so the journal must be complete: on a full disk the sender
    /// waits for room, as the journal does.
    pub(super) fn sender_due_ms(&self) -> Option<u64> {
        self.senders.due_ms.filter(|_| self.journal.is_written())
    }

    pub(super) fn start_sender_when_due(&mut self) {
        if self.sender_due_ms().is_some() {
            self.senders.start_when_due(&self.handles, &self.folder, since_boot_ms());
            pause_points::at(Point::SenderStarted);
        }
    }

    pub(super) fn sender_ended(&mut self, index: usize) {
        self.senders.ended(index, since_boot_ms());
    }
}

/// The moment that an event is, when a person is to be notified of it. `state`: before the event.
pub(super) fn moment_of(settings: Settings, state: &State, event: &Event, attached: bool) -> Option<(Moment, Wanted)> {
    // Most events are no moments, and for those the settings are not read.
    if moment::of(state, event).is_empty() {
        return None;
    }
    let wanted = (settings.notify)()?;
    Some((wanted.choose(state, event, since_boot_ms(), attached)?, wanted))
}

/// Starts a sender for what is noted in the journal of this session. It gets no other descriptor.
pub(super) fn start(handles: &Handles, folder: &Folder) -> Result<Started, StartError> {
    handles.start_with(NOTIFY, FOLDER, folder.dir().as_fd())
}

/// The same from a process that is not a keeper: a command that records an end that no keeper recorded. It waits for
/// nothing.
pub fn start_sender(launcher: &Launcher, folder: &Folder) -> Result<(), StartError> {
    start(&from_binary(launcher)?, folder).map(|_| ())
}

/// The same for notifications that already wait in a home.
pub fn start_sender_in(launcher: &Launcher, home: &Home) -> Result<(), StartError> {
    let root = Dir::open(home.root()).map_err(StartError::Descriptors)?;
    from_binary(launcher)?.start_with(NOTIFY, HOME, root.as_fd()).map(|_| ())
}

fn from_binary(launcher: &Launcher) -> Result<Handles, StartError> {
    let mut handles = Handles::default();
    handles.put(BINARY, launcher.open_program().map_err(StartError::Fork)?);
    Ok(handles)
}
