//! The process called `__notify`: puts the notifications that the journal of a session asks for into the spool, and
//! sends what waits there, if no other process does. One sender serves the whole home, however many sessions wait for a
//! server that does not answer.
//!
//! Each way has a thread, so that a server that does not answer delays no other way. What fails is tried again with
//! growing pauses, and given up after an hour. The sender exits when nothing waits any more, also if that is because
//! the folder was deleted. All threads end together: while one waits for a server, more may come for the others
//! ([`Shift`]).
//!
//! A secret may be in a variable that only some sessions were started with. If a sender has the variable and another
//! sender that may not have it is at work, the first one sends only on the way that needs it ([`Part`]).
//!
//! Two races are solved here. A sender that finds another one at work relies on it, while that one may be about to exit:
//! so a sender looks once more after it has released the lock. And a command that finds something in the spool but no
//! sender starts one, which no process starts again if it is killed: so a sender takes the lock before it puts anything into
//! the spool.

use crate::sender_threads::Shift;
use crate::settings::{Settings, Way};
use crate::spool::{Delivery, LIFETIME, Record, Spool, Standing, given_up_at};
use crate::ways::{self, NotSent};
use ostler_store::StoreError;
use ostler_store::folder::Folder;
use ostler_store::home::Home;
use ostler_sys::clock;
use ostler_sys::descriptors::{inherited, path_of};
use ostler_sys::dir::Dir;
use ostler_sys::lock::Held;
use ostler_sys::notify::Watcher;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::ready::{self, Interest};
use rustix::fd::AsFd;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The names of the descriptors that a sender gets: the session's folder, or the home.
const FOLDER: &str = "folder";
const HOME: &str = "home";

/// Reads what config.toml says now; `None` when it asks for nothing.
pub type Configured = fn() -> Option<Settings>;

/// The first pause after a failure, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How often a full disk is tried again: nothing reports that it has room.
const ROOM_AGAIN: Duration = Duration::from_secs(2);

/// How often the folder is looked at where it cannot be watched.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
enum SenderError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The main function of a sender; returns its exit code.
#[must_use]
pub fn main(arguments: &[String], configured: Configured) -> i32 {
    let _ = rustix::thread::set_name(c"ostler-notify");
    pause_points::act_as(Role::Sender);
    pause_points::at(Point::SenderEntered);
    i32::from(run(arguments, configured).is_err())
}

fn run(arguments: &[String], configured: Configured) -> Result<(), SenderError> {
    let Some(settings) = configured() else {
        return Ok(());
    };
    let Some(Collected { spool, held }) = collected_with_room(arguments, &settings)? else {
        return Ok(());
    };
    let mut first = held.map(|held| Part::Whole { _held: held });
    // This process must not work in the folder of a session, which may be moved or deleted meanwhile.
    rustix::process::fchdir(spool.dir().as_fd()).map_err(io::Error::from)?;
    pause_points::at(Point::MomentSpooled);
    while let Some(part) = first.take().map_or_else(|| Part::take(&spool, configured), |part| Ok(Some(part)))? {
        if part.is_whole() {
            spool.tidy()?;
        }
        send_all(&spool, configured, &part);
        let ways = part.ways();
        if part.is_whole() && !spool.records().iter().any(Record::waits) {
            spool.note_rest()?;
        }
        drop(part);
        pause_points::at(Point::SenderUnlocked);
        if !spool.records().iter().any(|record| record.waits_for_any(&ways)) {
            break;
        }
    }
    Ok(())
}

/// What a sender has to do, and the locks that keep other senders from doing it.
enum Part {
    /// It is the only sender of the home.
    Whole { _held: Held },
    /// Another sender is at work, but it may have been started without a variable that these ways need and that we
    /// have.
    Ways(Vec<(Way, Held)>),
}

impl Part {
    /// `None`: other senders do everything that we could do.
    fn take(spool: &Spool, configured: Configured) -> io::Result<Option<Part>> {
        if let Some(held) = spool.try_lock()? {
            return Ok(Some(Part::Whole { _held: held }));
        }
        let Some(settings) = configured() else { return Ok(None) };
        let mut ways = Vec::new();
        for way in Way::ALL.into_iter().filter(|&way| settings.has_variable_for(way)) {
            ways.extend(spool.try_lock_way(way)?.map(|held| (way, held)));
        }
        Ok(Some(Part::Ways(ways)).filter(|part| !part.ways().is_empty()))
    }

    fn is_whole(&self) -> bool {
        match self {
            Part::Whole { .. } => true,
            Part::Ways(_) => false,
        }
    }

    fn ways(&self) -> Vec<Way> {
        match self {
            Part::Whole { .. } => Way::ALL.to_vec(),
            Part::Ways(ways) => ways.iter().map(|(way, _)| *way).collect(),
        }
    }
}

/// The spool, with what the journal asks for, once the disk has room. The session may have ended, and then no other
/// process would try again. After this we hold no file of that session.
fn collected_with_room(arguments: &[String], settings: &Settings) -> Result<Option<Collected>, SenderError> {
    let given_up = Instant::now() + LIFETIME.unsigned_abs();
    let given = Given::take(arguments)?;
    loop {
        // A pause and not an event: no file system reports that it has room again.
        match given.collected(settings) {
            Err(error) if error.is_full_disk() && Instant::now() < given_up => std::thread::sleep(ROOM_AGAIN),
            other => return Ok(other?),
        }
    }
}

/// The spool with what we have put into it.
struct Collected {
    spool: Spool,
    /// The lock of the only sender, taken before. `None`: another process had it then.
    held: Option<Held>,
}

impl Collected {
    fn with(spool: Spool, collect: impl FnOnce(&Spool) -> Result<(), StoreError>) -> Result<Collected, StoreError> {
        let held = spool.try_lock().map_err(StoreError::io("notify"))?;
        spool.note_work().map_err(StoreError::io("notify"))?;
        collect(&spool)?;
        Ok(Collected { spool, held })
    }
}

/// What we were started with: the folder of a session, or the home.
enum Given {
    Session(Folder),
    Home(Dir),
}

impl Given {
    fn take(arguments: &[String]) -> io::Result<Given> {
        if let Some(home) = named(arguments, HOME)? {
            return Ok(Given::Home(home));
        }
        let folder = named(arguments, FOLDER)?.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Given::Session(Folder::new(folder)))
    }

    /// The spool, with what the journal of the session asks for.
    fn collected(&self, settings: &Settings) -> Result<Option<Collected>, StoreError> {
        match self {
            Given::Home(home) => {
                let root = std::fs::read_link(path_of(home)).map_err(StoreError::io("notify"))?;
                Collected::with(Spool::open(&Home::at(root))?, |_| Ok(())).map(Some)
            }
            Given::Session(folder) => {
                let Some(home) = home_of(folder).map_err(StoreError::io("notify"))? else {
                    return Ok(None);
                };
                Collected::with(Spool::open(&home)?, |spool| spool.collect(folder, settings)).map(Some)
            }
        }
    }
}

/// The folder that we were given under this name.
fn named(arguments: &[String], name: &str) -> io::Result<Option<Dir>> {
    let number = arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
    Ok(number.map(inherited).transpose()?.map(Dir::adopt))
}

/// The home that a session is in. A session that was archived meanwhile needs no notification: that of its end was sent
/// before.
fn home_of(folder: &Folder) -> io::Result<Option<Home>> {
    let path = std::fs::read_link(path_of(folder.dir()))?;
    let sessions = path.parent().filter(|sessions| sessions.ends_with("sessions"));
    Ok(sessions.and_then(Path::parent).map(|root| Home::at(root.to_owned())))
}

/// Sends everything that waits, until nothing does.
fn send_all(spool: &Spool, configured: Configured, part: &Part) {
    let (shift, ways) = (Shift::new(), part.ways());
    std::thread::scope(|scope| {
        for &way in &ways {
            let (shift, ways, failed) = (&shift, &ways[..], HashMap::new());
            let is_whole = part.is_whole();
            scope.spawn(move || {
                Worker { way, ways, is_whole, own: None, spool, configured, shift, failed }.work();
            });
        }
    });
}

/// Sends on one way.
struct Worker<'a> {
    way: Way,
    /// All ways that this process sends on.
    ways: &'a [Way],
    /// This process is the only sender. Otherwise it has the lock of the way already.
    is_whole: bool,
    /// The lock of the way, where the only sender needs it: see [`Part::Ways`].
    own: Option<Held>,
    spool: &'a Spool,
    configured: Configured,
    shift: &'a Shift,
    /// How often each notification has failed, and when it is tried next.
    failed: HashMap<String, (u32, Instant)>,
}

impl Worker<'_> {
    fn work(&mut self) {
        // Watched before the first look, so that nothing is missed.
        let watcher = Watcher::new().ok().filter(|watcher| watcher.watch(self.spool.path()).is_ok());
        while !self.shift.is_over() && self.is_needed() {
            self.shift.begin_work();
            let records = self.spool.records();
            let way = self.way;
            for record in records.iter().filter(|record| record.waits_for(way)) {
                self.attempt_when_due(record);
            }
            self.shift.end_work();
            // While something waits for other ways, this thread stays, too: more may come for this way meanwhile.
            if !records.iter().any(|record| record.waits_for_any(self.ways)) && self.shift.ends() {
                return;
            }
            self.wait(watcher.as_ref(), self.next(&records));
        }
    }

    /// A process that sends only what needs its variable has nothing to do when the settings do not use that variable
    /// any more.
    fn is_needed(&self) -> bool {
        self.is_whole || (self.configured)().is_some_and(|settings| settings.has_variable_for(self.way))
    }

    /// Whether this process has the lock of this way.
    fn has_way(&mut self) -> bool {
        if self.is_whole && self.own.is_none() {
            self.own = self.spool.try_lock_way(self.way).ok().flatten();
        }
        !self.is_whole || self.own.is_some()
    }

    fn attempt_when_due(&mut self, record: &Record) {
        let id = &record.message.id;
        let before = record.delivery(self.way).cloned();
        let (tries, error) = before.map_or((0, None), |delivery| (delivery.tries, delivery.error));
        if clock::now() >= given_up_at(record) {
            return self.note(id, Standing::GivenUp, tries, error);
        }
        if self.failed.get(id).is_some_and(|(_, due)| Instant::now() < *due) {
            return;
        }
        // The attempts before this one may have taken long.
        if !self.spool.record(id).is_some_and(|record| record.waits_for(self.way)) {
            return;
        }
        let settings = (self.configured)();
        if settings.as_ref().is_some_and(|settings| settings.has_variable_for(self.way)) && !self.has_way() {
            // The exit of the process that sends this way is not reported, so it is tried again later.
            let failures = self.failed.get(id).map_or(0, |(failures, _)| *failures);
            self.failed.insert(id.clone(), (failures, Instant::now() + LOOK_AGAIN));
            return;
        }
        let sent = match settings {
            Some(settings) => ways::send(self.way, &settings, &record.message),
            None => Err(NotSent::NotConfigured),
        };
        match sent {
            Ok(_) => {
                pause_points::at(Point::MomentSent);
                self.note(id, Standing::Sent, tries + 1, None);
                pause_points::at(Point::MomentSettled);
            }
            Err(NotSent::NotConfigured) => self.note(id, Standing::Dropped, tries, error),
            Err(NotSent::Failed(words)) => {
                let failures = self.failed.get(id).map_or(0, |(failures, _)| *failures) + 1;
                self.failed.insert(id.clone(), (failures, Instant::now() + pause_after(failures)));
                self.note(id, Standing::Waiting, tries + 1, Some(words));
            }
        }
    }

    /// If the result cannot be recorded, the notification is sent again with the same id, after a pause.
    fn note(&mut self, id: &str, state: Standing, tries: u32, error: Option<String>) {
        let noted = self.spool.note(id, self.way, Delivery { state, tries, error });
        if noted.is_err() && state != Standing::Waiting {
            self.failed.insert(id.to_owned(), (tries, Instant::now() + LONGEST_PAUSE));
        }
    }

    /// When the next attempt is due, if nothing changes.
    fn next(&self, records: &[Record]) -> Option<Instant> {
        let due = |record: &Record| self.failed.get(&record.message.id).map_or_else(Instant::now, |(_, due)| *due);
        records.iter().filter(|record| record.waits_for(self.way)).map(due).min()
    }

    /// Waits until the folder changes, the shift is over, or the time is reached.
    fn wait(&self, watcher: Option<&Watcher>, until: Option<Instant>) {
        let over = self.shift.over();
        let is_blind = watcher.is_none() || over.is_none();
        let until = until.into_iter().chain(is_blind.then(|| Instant::now() + LOOK_AGAIN)).min();
        let over = over.map(Interest::read);
        let folder = watcher.map(|watcher| Interest::read(watcher.as_fd()));
        let interests: Vec<Interest<'_>> = folder.into_iter().chain(over).collect();
        let changed = ready::wait(&interests, until).is_ok_and(|ready| ready.contains(&true));
        if let Some(watcher) = watcher.filter(|_| changed) {
            // What has changed is found by reading the folder.
            let _ = watcher.changed();
        }
    }
}

/// How long to wait after this many failures.
fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

/// Whether a sender is at work in this home.
pub fn is_at_work(home: &Path) -> io::Result<bool> {
    match Spool::find(&Home::at(home.to_owned())) {
        Ok(Some(spool)) => Ok(spool.try_lock()?.is_none()),
        Ok(None) => Ok(false),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_five_minutes() {
        let pauses: Vec<u64> = (1..=12).map(|failures| pause_after(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(pause_after(u32::MAX), LONGEST_PAUSE);
    }
}
