//! A queue: `$OSTLER_HOME/queues/<name>/`.
//!
//! | file | what |
//! | --- | --- |
//! | `lock` | held while the order of the queue is looked at or changed, for microseconds |
//! | `settings.json` | how many slots there are, as config.toml said at the newest launch |
//! | `slots/<n>` | a named pipe; the session that has the slot holds its lock ([`ostler_sys::fifo`]) |
//! | `waiting/<order>-<id>` | a named pipe; the session that waits holds its lock. The names sort in the order of the queue |
//!
//! There is no process that hands out slots. Each session that waits watches the one before it, and the first one
//! watches the slots. A session takes a slot only while it holds the queue's lock and no living session is before it.
//! So the order is right whichever process woke which, and a session that is woken too often only looks again. A
//! session that enters before others wakes the one after it, which then watches it. When a process dies, the kernel
//! releases its lock, and the next process that looks removes its pipe.

use crate::StoreError;
use crate::folder::{read, to_json};
use crate::home::Home;
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_sys::clock;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::fifo;
use ostler_sys::lock::{self, Held};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// The queue of sessions that do not name one.
pub const DEFAULT: &str = "default";
/// How many slots a queue has that is not configured.
pub const SLOTS: u32 = 4;
/// The most slots that a queue may have: a session that waits for a slot opens all of them.
pub const MOST_SLOTS: u32 = 200;

/// What a queue allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueSettings {
    pub slots: u32,
    /// So many bytes of memory have to be free before the next session starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_free_memory: Option<u64>,
    /// The machine's load has to be below this before the next session starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_load: Option<f64>,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings { slots: SLOTS, min_free_memory: None, max_load: None }
    }
}

/// A queue, open.
#[derive(Debug)]
pub struct Queue {
    dir: Dir,
    waiting: Dir,
    slots: Dir,
}

/// A place in a queue. It is given up when the lock is released, even if the process that has it is killed.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    pub lock: OwnedFd,
}

/// The position of a session in a queue.
#[derive(Debug)]
pub enum Standing {
    /// It is behind another session, whose pipe hangs up when that session is gone.
    Behind(OwnedFd),
    /// It is the first. One of these pipes hangs up when a slot is free.
    First(Vec<OwnedFd>),
    /// It has a slot. The queue is locked until this is dropped.
    Admitted { slot: Held, order: Held },
}

fn path(home: &Home, name: &str) -> PathBuf {
    home.root().join("queues").join(name)
}

impl Queue {
    /// Opens a queue, and makes it when it is not there.
    pub fn open(home: &Home, name: &str) -> Result<Queue, StoreError> {
        let path = path(home, name);
        let waiting = home.open_or_make(&path.join("waiting"))?;
        let slots = home.open_or_make(&path.join("slots"))?;
        Ok(Queue { dir: home.open_or_make(&path)?, waiting, slots })
    }

    fn failed(error: io::Error) -> StoreError {
        StoreError::io("queue")(error)
    }

    fn lock(&self) -> Result<Held, StoreError> {
        let file = self.dir.file("lock", OFlags::RDWR | OFlags::CREATE).map_err(Queue::failed)?;
        lock::exclusive(file).map_err(Queue::failed)
    }

    /// What it allows. Settings that cannot be read count as the defaults.
    #[must_use]
    pub fn settings(&self) -> QueueSettings {
        read(&self.dir, "settings.json").ok().flatten().unwrap_or_default()
    }

    /// Notes what it allows. A change takes effect the next time that a session looks for a slot.
    pub fn configure(&self, settings: &QueueSettings) -> Result<(), StoreError> {
        if self.settings() == *settings {
            return Ok(());
        }
        self.dir.replace("settings.json", &to_json(settings), Sync::No).map_err(Queue::failed)
    }

    /// Joins the queue, behind all sessions of the same priority. A session that was in it before joins behind those
    /// that had come before it.
    pub fn join(&self, id: SessionId, priority: i32, arrived: Option<Timestamp>) -> Result<Entry, StoreError> {
        let _order = self.lock()?;
        let name = entry_name(id, priority, arrival(arrived));
        fifo::make(&self.waiting, &name).map_err(Queue::failed)?;
        let lock = fifo::own(&self.waiting, &name).map_err(Queue::failed)?;
        let lock = lock.ok_or_else(|| Queue::failed(io::ErrorKind::AlreadyExists.into()))?;
        // The session behind us watches another one, or assumes that it is the first.
        if let Some(next) = self
            .nearest(|other, best| other > name.as_str() && best.is_none_or(|best| other < best))
            .map_err(Queue::failed)?
        {
            fifo::nudge(&self.waiting, &next).map_err(Queue::failed)?;
        }
        Ok(Entry { name, lock: lock.into_file() })
    }

    /// Takes a slot if it is our turn, or returns what to wait for.
    pub fn stand(&self, entry: &str) -> Result<Standing, StoreError> {
        let order = self.lock()?;
        if let Some(before) = self.before(entry).map_err(Queue::failed)? {
            return Ok(Standing::Behind(before));
        }
        let mut watched = Vec::new();
        for number in 0..self.settings().slots.clamp(1, MOST_SLOTS) {
            let name = number.to_string();
            fifo::make(&self.slots, &name).map_err(Queue::failed)?;
            watched.push(fifo::watch(&self.slots, &name).map_err(Queue::failed)?);
            if let Some(slot) = fifo::own(&self.slots, &name).map_err(Queue::failed)? {
                return Ok(Standing::Admitted { slot, order });
            }
        }
        Ok(Standing::First(watched))
    }

    /// The nearest living session before us. The pipes of those that have died are removed.
    fn before(&self, entry: &str) -> io::Result<Option<OwnedFd>> {
        while let Some(name) = self.nearest(|other, best| other < entry && best.is_none_or(|best| other > best))? {
            let watched = match fifo::watch(&self.waiting, &name) {
                // It has left the queue since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            if fifo::is_owned(&watched)? {
                return Ok(Some(watched));
            }
            self.waiting.remove(&name)?;
        }
        Ok(None)
    }

    /// Gives up a place. The session behind us is woken when the lock of the entry is released.
    pub fn leave(&self, entry: &str) -> Result<(), StoreError> {
        self.waiting.remove(entry).map_err(Queue::failed)
    }

    /// The name that is better than all others. The names are read one by one: a waiting process should use little
    /// memory.
    fn nearest(&self, better: impl Fn(&str, Option<&str>) -> bool) -> io::Result<Option<String>> {
        let mut best: Option<String> = None;
        self.waiting.each_name(|name| {
            if let Ok(name) = std::str::from_utf8(name)
                && better(name, best.as_deref())
            {
                best = Some(name.to_owned());
            }
        })?;
        Ok(best)
    }
}

/// Which sessions wait in a queue, in its order; none where there is no such queue.
#[must_use]
pub fn waiting(home: &Home, name: &str) -> Vec<SessionId> {
    let names = Dir::open(path(home, name).join("waiting")).and_then(|waiting| waiting.names());
    let mut names = names.unwrap_or_default();
    names.sort_unstable();
    names.iter().filter_map(|name| SessionId::from_bytes(name.rsplit('-').next()?.as_bytes())).collect()
}

/// A name that sorts by priority, then by arrival.
fn entry_name(id: SessionId, priority: i32, arrival: u128) -> String {
    let turn = i64::from(i32::MAX) - i64::from(priority);
    format!("{turn:010}-{arrival:020}-{id}")
}

/// A session that came before this boot has a smaller number.
const BOOT: i128 = 10_000_000_000_000_000_000;

/// The time of arrival in nanoseconds since boot, by the clock that is never set. A time of day is converted by how
/// long ago it was.
fn arrival(arrived: Option<Timestamp>) -> u128 {
    let time = clock_gettime(ClockId::Boottime);
    let ago = arrived.map_or(0, |arrived| clock::now().as_nanosecond().saturating_sub(arrived.as_nanosecond()));
    let since_boot = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u128::try_from((BOOT + since_boot).saturating_sub(ago.max(0))).unwrap_or(0)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(number: u64) -> SessionId {
        SessionId::from_random(number)
    }

    fn is_first(standing: &Standing) -> bool {
        match standing {
            Standing::Behind(_) => false,
            Standing::First(_) | Standing::Admitted { .. } => true,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn names_sort_by_priority_and_then_by_arrival(one in any::<(i32, u64)>(), other in any::<(i32, u64)>()) {
            let name = |(priority, arrival): (i32, u64)| entry_name(id(1), priority, arrival.into());
            let wanted = other.0.cmp(&one.0).then(one.1.cmp(&other.1));
            prop_assert_eq!(name(one).cmp(&name(other)), wanted);
        }

        #[test]
        fn sessions_are_admitted_in_order_and_never_more_than_there_are_slots(
            priorities in prop::collection::vec(-2..3_i32, 1..12),
            slots in 1..4_u32,
            dies in prop::collection::vec(any::<bool>(), 12),
        ) {
            let home = tempfile::tempdir().unwrap();
            let home = Home::at(home.path().to_owned());
            let queue = Queue::open(&home, "q").unwrap();
            queue.configure(&QueueSettings { slots, ..QueueSettings::default() }).unwrap();
            let mut entries: Vec<(i32, usize, Entry)> = Vec::new();
            for (number, &priority) in priorities.iter().enumerate() {
                // Some die before their turn, and leave their pipe behind.
                let entry = queue.join(id(number as u64), priority, None).unwrap();
                if !dies[number] {
                    entries.push((priority, number, entry));
                }
            }
            entries.sort_by_key(|(priority, number, _)| (-priority, *number));
            let mut running: Vec<Held> = Vec::new();
            while !entries.is_empty() {
                // Asked in the wrong order, only the first gets a slot.
                for (_, _, entry) in entries.iter().skip(1).rev() {
                    prop_assert!(!is_first(&queue.stand(&entry.name).unwrap()));
                }
                match queue.stand(&entries[0].2.name).unwrap() {
                    Standing::Admitted { slot, .. } => {
                        let (_, _, entry) = entries.remove(0);
                        queue.leave(&entry.name).unwrap();
                        running.push(slot);
                        prop_assert!(running.len() <= slots as usize);
                    }
                    Standing::First(watched) => {
                        prop_assert_eq!((watched.len(), running.len()), (slots as usize, slots as usize));
                        running.remove(running.len() / 2);
                    }
                    Standing::Behind(_) => prop_assert!(false, "nothing that lives is before it"),
                }
            }
        }
    }

    #[test]
    fn one_that_was_there_before_has_its_place_again_also_when_that_was_before_this_boot() {
        let home = tempfile::tempdir().unwrap();
        let home = Home::at(home.path().to_owned());
        let queue = Queue::open(&home, DEFAULT).unwrap();
        let ago = |seconds: i64| Some(Timestamp::from_second(clock::now().as_second() - seconds).unwrap());
        let _all = [
            queue.join(id(1), 0, None).unwrap(),
            queue.join(id(2), 0, ago(60)).unwrap(),
            queue.join(id(3), 0, ago(100 * 365 * 86_400)).unwrap(),
            queue.join(id(4), 0, ago(3600)).unwrap(),
            queue.join(id(5), 1, None).unwrap(),
        ];
        assert_eq!(waiting(&home, DEFAULT), [5, 3, 4, 2, 1].map(id));
    }

    #[test]
    fn one_that_comes_in_front_wakes_only_the_one_behind_it() {
        let home = tempfile::tempdir().unwrap();
        let home = Home::at(home.path().to_owned());
        let queue = Queue::open(&home, DEFAULT).unwrap();
        let low: Vec<Entry> = (0..3).map(|number| queue.join(id(number), 0, None).unwrap()).collect();
        let woken = |entry: &Entry| ostler_sys::ready::is_readable(rustix::fd::AsFd::as_fd(&entry.lock)).unwrap();
        assert!(!low.iter().any(woken));
        let high = queue.join(id(9), 1, None).unwrap();
        assert_eq!(low.iter().map(woken).collect::<Vec<_>>(), [true, false, false]);
        assert!(matches!(queue.stand(&low[0].name).unwrap(), Standing::Behind(_)));
        assert!(matches!(queue.stand(&high.name).unwrap(), Standing::Admitted { .. }));
        assert_eq!(waiting(&home, DEFAULT), [id(9), id(0), id(1), id(2)]);
    }
}
