//! `$OSTLER_HOME/notify/`: what is to be sent, one file for each notification, named like its id. Nothing is only in
//! the memory of a process, so a sender may be killed at any time.
//!
//! A file is put there once and never again: after its notification was sent, it stays for as long as the journal could
//! still ask for it. So a notification arrives once, whichever keeper or sender is killed in between. (If a sender is
//! killed between the answer of a server and the record of it here, the server gets the same id again, and only the
//! server can recognise it.)

use crate::message::Message;
use crate::settings::{Settings, Way};
use jiff::{SignedDuration, Timestamp};
use ostler_core::event::Event;
use ostler_core::id::SessionId;
use ostler_core::moment::Moment;
use ostler_store::StoreError;
use ostler_store::folder::Folder;
use ostler_store::home::Home;
use ostler_store::journal;
use ostler_sys::clock;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::lock::{self, Held};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The notification of a moment that is longer ago is given up, or not made at all.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// How long sent notifications are remembered: longer than a journal can ask for them.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(2);

/// How long notifications that were given up are shown.
const SHOWN: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Held by the only sender. The file is not empty while something may wait.
const SENDER_LOCK: &str = "sender.lock";
/// Held while a notification's file is read and rewritten.
const FILES_LOCK: &str = "files.lock";

/// The state of one notification on one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Whether it has arrived.
    pub state: Standing,
    /// How often it was tried.
    #[serde(default)]
    pub tries: u32,
    /// Why it has not arrived, by the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether something has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Not yet.
    Waiting,
    /// It has.
    Sent,
    /// It has not arrived within an hour, and is not tried any more.
    GivenUp,
    /// It is not to be sent any more: the way is not configured now, or a person cleared it.
    Dropped,
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What is sent.
    pub message: Message,
    /// By the word of the way.
    pub ways: BTreeMap<String, Delivery>,
}

impl Record {
    /// Its state on this way, if it is to be sent this way.
    #[must_use]
    pub fn delivery(&self, way: Way) -> Option<&Delivery> {
        self.ways.get(way.word())
    }

    /// Whether it waits to be sent this way.
    #[must_use]
    pub fn waits_for(&self, way: Way) -> bool {
        self.delivery(way).is_some_and(|delivery| delivery.state == Standing::Waiting)
    }

    /// Whether it waits to be sent one of these ways.
    #[must_use]
    pub fn waits_for_any(&self, ways: &[Way]) -> bool {
        ways.iter().any(|&way| self.waits_for(way))
    }

    /// Whether it waits to be sent any way that is known here.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.waits_for_any(&Way::ALL)
    }

    /// The ways on which it never arrived, and why.
    pub fn given_up(&self) -> impl Iterator<Item = (&str, &Delivery)> {
        self.ways
            .iter()
            .filter(|(_, delivery)| delivery.state == Standing::GivenUp)
            .map(|(way, delivery)| (way.as_str(), delivery))
    }

    /// How long ago the moment was; if the clock was set back, it does not get older.
    #[must_use]
    pub fn age(&self) -> SignedDuration {
        clock::now().duration_since(self.message.at)
    }

    fn is_to_be_forgotten(&self) -> bool {
        !self.waits() && self.age() > if self.given_up().next().is_some() { SHOWN } else { REMEMBERED }
    }
}

/// The folder.
#[derive(Debug)]
pub struct Spool {
    dir: Dir,
    path: PathBuf,
}

impl Spool {
    /// Where it is in a home.
    #[must_use]
    pub fn path_in(home: &Home) -> PathBuf {
        home.root().join("notify")
    }

    /// Opens it, and creates it where needed.
    pub fn open(home: &Home) -> Result<Spool, StoreError> {
        let path = Spool::path_in(home);
        Ok(Spool { dir: home.open_or_make(&path)?, path })
    }

    /// Opens it; `None` when nothing was ever to be sent from this home.
    pub fn find(home: &Home) -> Result<Option<Spool>, StoreError> {
        let path = Spool::path_in(home);
        match Dir::open(&path) {
            Ok(dir) => Ok(Some(Spool { dir, path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(path.to_string_lossy())(error)),
        }
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path, to be watched.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Takes the lock of the only sender. `None`: another process holds it.
    pub fn try_lock(&self) -> io::Result<Option<Held>> {
        lock::try_exclusive(self.dir.file(SENDER_LOCK, OFlags::RDWR | OFlags::CREATE)?)
    }

    /// Records that something may wait from now on, until a sender finds that nothing does.
    pub fn note_work(&self) -> io::Result<()> {
        let file = self.dir.file(SENDER_LOCK, OFlags::RDWR | OFlags::CREATE)?;
        rustix::io::pwrite(&file, b"1", 0)?;
        Ok(())
    }

    /// Records that nothing waits. The caller is the sender.
    pub fn note_rest(&self) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(self.dir.file(SENDER_LOCK, OFlags::RDWR | OFlags::CREATE)?, 0)?)
    }

    /// Whether something may wait, as far as the size of one file shows.
    #[must_use]
    pub fn may_have_work(home: &Home) -> bool {
        std::fs::metadata(Spool::path_in(home).join(SENDER_LOCK)).is_ok_and(|about| about.len() > 0)
    }

    /// Takes the lock of one way, where only some processes know its secret. `None`: another process holds it.
    pub fn try_lock_way(&self, way: Way) -> io::Result<Option<Held>> {
        lock::try_exclusive(self.dir.file(&format!("{}.lock", way.word()), OFlags::RDWR | OFlags::CREATE)?)
    }

    /// Adds the notifications that the journal of a session asks for, unless they are here already.
    pub fn collect(&self, folder: &Folder, settings: &Settings) -> Result<(), StoreError> {
        let ways = settings.ways();
        let session = folder.session()?;
        let now = clock::now();
        for (position, mut entry) in journal::noted(folder.dir())? {
            entry.notify = entry.notify.and_then(|noted| wanted(noted, &entry.event, settings));
            let Some(message) = Message::of(&session, position, &entry) else { continue };
            let is_quiet = settings.quiet.is_some_and(|quiet| quiet.contains(entry.at));
            if ways.is_empty() || is_quiet || now.duration_since(entry.at) > LIFETIME {
                continue;
            }
            let waiting = Delivery { state: Standing::Waiting, tries: 0, error: None };
            let ways = ways.iter().map(|way| (way.word().to_owned(), waiting.clone())).collect();
            let name = file_name(&message.id);
            let bytes = to_bytes(&Record { message, ways });
            self.dir.publish_once(&name, &bytes).map_err(StoreError::io(name))?;
        }
        Ok(())
    }

    /// Everything that is here, the oldest first. A file that cannot be read is left out.
    pub fn records(&self) -> Vec<Record> {
        let names = self.dir.names().unwrap_or_default();
        let read = |name: &String| self.read(name).ok().flatten();
        let mut records: Vec<Record> = names.iter().filter(|name| is_record(name)).filter_map(read).collect();
        records.sort_by_key(|record| record.message.at);
        records
    }

    /// One of them, as it is now.
    #[must_use]
    pub fn record(&self, id: &str) -> Option<Record> {
        self.read(&file_name(id)).ok().flatten()
    }

    /// Records the state on one way. Nothing is recorded for a notification that was deleted meanwhile. A notification
    /// that a person has cleared meanwhile stays cleared, unless it has arrived.
    pub fn note(&self, id: &str, way: Way, delivery: Delivery) -> io::Result<()> {
        self.change(id, |record| {
            if record.waits_for(way) || delivery.state == Standing::Sent {
                record.ways.insert(way.word().to_owned(), delivery);
            }
        })
    }

    /// Drops everything that waits or was given up. What was sent is still remembered, so that it is not sent again.
    pub fn clear(&self) -> io::Result<usize> {
        let mut cleared = 0;
        for record in self.records() {
            let is_open = |state| matches!(state, Standing::Waiting | Standing::GivenUp);
            if !record.ways.values().any(|delivery| is_open(delivery.state)) {
                continue;
            }
            cleared += 1;
            self.change(&record.message.id, |record| {
                for delivery in record.ways.values_mut().filter(|delivery| is_open(delivery.state)) {
                    delivery.state = Standing::Dropped;
                }
            })?;
        }
        Ok(cleared)
    }

    /// Deletes everything about one session.
    pub fn forget(&self, session: SessionId) -> io::Result<()> {
        let _held = self.lock_files()?;
        for name in self.dir.names()?.iter().filter(|name| is_record(name) && is_of(name, session)) {
            self.dir.remove(name)?;
        }
        Ok(())
    }

    /// Deletes notifications that neither wait nor have to be remembered or shown any more. The caller is the sender.
    pub fn tidy(&self) -> io::Result<()> {
        let _held = self.lock_files()?;
        for record in self.records().iter().filter(|record| record.is_to_be_forgotten()) {
            self.dir.remove(&file_name(&record.message.id))?;
        }
        Ok(())
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Record)) -> io::Result<()> {
        let _held = self.lock_files()?;
        let name = file_name(id);
        match self.read(&name)? {
            Some(mut record) => {
                change(&mut record);
                self.dir.replace(&name, &to_bytes(&record), Sync::Yes)
            }
            None => Ok(()),
        }
    }

    fn lock_files(&self) -> io::Result<Held> {
        lock::exclusive(self.dir.file(FILES_LOCK, OFlags::RDWR | OFlags::CREATE)?)
    }

    fn read(&self, name: &str) -> io::Result<Option<Record>> {
        let bytes = self.dir.read(name)?;
        Ok(bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    }
}

/// The moment that the settings ask for. The end of a session that ended with no keeper is recorded by processes that
/// do not know the settings.
fn wanted(noted: Moment, event: &Event, settings: &Settings) -> Option<Moment> {
    let is_wanted = |moment: &Moment| settings.wanted.moments.contains(moment);
    let end = matches!(event, Event::Ended { .. }).then_some(Moment::Ended);
    [Some(noted), end].into_iter().flatten().find(is_wanted)
}

/// Records are plain data and always have a JSON form.
fn to_bytes(record: &Record) -> Vec<u8> {
    serde_json::to_vec(record).unwrap_or_default()
}

fn file_name(id: &str) -> String {
    format!("{id}.json")
}

fn is_record(name: &str) -> bool {
    !name.starts_with('.') && name.ends_with(".json")
}

fn is_of(name: &str, session: SessionId) -> bool {
    name.strip_prefix(session.as_str()).is_some_and(|rest| rest.starts_with('-'))
}

/// When a notification is given up, if it has not arrived by then.
#[must_use]
pub fn given_up_at(record: &Record) -> Timestamp {
    record.message.at.checked_add(LIFETIME).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn spool() -> (tempfile::TempDir, Spool) {
        let root = tempfile::tempdir().unwrap();
        let spool = Spool::open(&Home::at(root.path().to_owned())).unwrap();
        (root, spool)
    }

    fn put(spool: &Spool, id: &str, at: Timestamp, state: Standing) {
        let delivery = Delivery { state, tries: 1, error: None };
        let ways = BTreeMap::from([("webhook".to_owned(), delivery)]);
        let record = Record { message: Message::test(id.to_owned(), at), ways };
        assert!(spool.dir.publish_once(&file_name(id), &to_bytes(&record)).unwrap());
    }

    fn ids(spool: &Spool) -> Vec<String> {
        spool.records().into_iter().map(|record| record.message.id).collect()
    }

    #[test]
    fn what_was_sent_is_known_until_no_journal_asks_for_it_and_what_was_given_up_is_shown_for_days() {
        let (_root, spool) = spool();
        let ago = |hours| clock::now().checked_sub(SignedDuration::from_hours(hours)).unwrap();
        put(&spool, "abcd2345-1", ago(3), Standing::Sent);
        put(&spool, "abcd2345-2", ago(1), Standing::Sent);
        put(&spool, "abcd2345-3", ago(3), Standing::GivenUp);
        put(&spool, "abcd2345-4", ago(8 * 24), Standing::GivenUp);
        put(&spool, "abcd2345-5", ago(9 * 24), Standing::Waiting);
        spool.tidy().unwrap();
        assert_eq!(ids(&spool), ["abcd2345-5", "abcd2345-3", "abcd2345-2"]);
    }

    #[test]
    fn what_was_cleared_during_an_attempt_is_not_tried_again_and_has_arrived_when_it_has() {
        let (_root, spool) = spool();
        put(&spool, "abcd2345-1", clock::now(), Standing::Waiting);
        assert_eq!(spool.clear().unwrap(), 1);
        let noted = |state| {
            spool.note("abcd2345-1", Way::Webhook, Delivery { state, tries: 2, error: None }).unwrap();
            spool.record("abcd2345-1").unwrap().delivery(Way::Webhook).unwrap().state
        };
        assert_eq!(noted(Standing::Waiting), Standing::Dropped);
        assert_eq!(noted(Standing::GivenUp), Standing::Dropped);
        assert_eq!(noted(Standing::Sent), Standing::Sent);
        assert!(spool.record("abcd2345-2").is_none());
    }

    #[test]
    fn clearing_ends_what_waits_and_forgetting_deletes_one_session() {
        let (_root, spool) = spool();
        put(&spool, "abcd2345-1", clock::now(), Standing::Waiting);
        put(&spool, "abcd2345-2", clock::now(), Standing::Sent);
        put(&spool, "abcd2346-1", clock::now(), Standing::GivenUp);
        std::fs::write(spool.path().join("bad.json"), "{").unwrap();
        assert_eq!(spool.clear().unwrap(), 2);
        assert!(spool.records().iter().all(|record| !record.waits() && record.given_up().next().is_none()));
        assert_eq!(spool.clear().unwrap(), 0);
        spool.forget(SessionId::parse("abcd2345").unwrap()).unwrap();
        assert_eq!(ids(&spool), ["abcd2346-1"]);
        // Nothing is recorded for a notification that was deleted.
        let sent = Delivery { state: Standing::Sent, tries: 1, error: None };
        spool.note("abcd2345-1", Way::Webhook, sent).unwrap();
        assert_eq!(ids(&spool), ["abcd2346-1"]);
    }
}
