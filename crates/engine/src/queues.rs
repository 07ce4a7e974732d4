//! Sessions whose program starts later: what was asked for, and their places in queues.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::LaunchRefusal;
use jiff::{SignedDuration, Timestamp};
use ostler_core::id::SessionId;
use ostler_core::record::Session;
use ostler_core::start_when::{After, InQueue, StartWhen};
use ostler_core::view::View;
use ostler_keeper::agent_program;
use ostler_keeper::launch::LaunchError;
use ostler_store::RunRecord;
use ostler_store::home::Home;
use ostler_store::queue::{Queue, waiting};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::spawn::StartError;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

pub use ostler_store::queue::DEFAULT as DEFAULT_QUEUE;

/// When the program of a new session starts; the default is at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartLater {
    /// Not before this time.
    pub at: Option<StartTime>,
    /// Not before these sessions have ended in the required way.
    pub after: Vec<After>,
    /// Not before this queue of config.toml has a free slot.
    pub queue: Option<String>,
    /// A session with a higher priority comes first in the queue.
    pub priority: i32,
}

/// A time to start at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTime {
    /// At this time of the clock, also if the clock is set meanwhile.
    At(Timestamp),
    /// After this duration, whether or not the clock is set meanwhile.
    In(Duration),
}

impl StartLater {
    /// As soon as this queue has a free slot, or at once.
    #[must_use]
    pub fn in_queue(queue: Option<InQueue>) -> StartLater {
        let priority = queue.as_ref().map_or(0, |queue| queue.priority);
        StartLater { queue: queue.map(|queue| queue.name), priority, ..StartLater::default() }
    }

    /// Takes the queue out of the request: of a job, the sessions wait in the queue and not the job itself.
    #[must_use]
    pub fn take_queue(&mut self) -> Option<InQueue> {
        let priority = std::mem::take(&mut self.priority);
        self.queue.take().map(|name| InQueue { name, priority })
    }
}

impl Engine {
    /// Refuses a queue that is not configured.
    pub fn check_start(&self, start: &StartLater) -> Result<()> {
        let Some(name) = &start.queue else {
            return Ok(());
        };
        self.config.needs("queues")?;
        if !self.config.queues.contains_key(name) {
            let known = self.config.queues.keys().cloned().collect();
            return Err(LaunchRefusal::NoSuchQueue { name: name.clone(), known }.into());
        }
        Ok(())
    }

    /// What the program of a new session waits for; `None`: nothing.
    pub fn start_when(&self, start: &StartLater) -> Result<Option<Box<StartWhen>>> {
        self.check_start(start)?;
        let (at, at_ms) = match start.at {
            None => (None, None),
            Some(StartTime::At(time)) => (Some(time), None),
            Some(StartTime::In(duration)) => {
                let far = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
                let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                let at = clock::now().saturating_add(far).unwrap_or(Timestamp::MAX);
                (Some(at), Some(since_boot_ms().saturating_add(ms)))
            }
        };
        let queue = start.queue.clone().map(|name| InQueue { name, priority: start.priority });
        self.configure_queue(queue.as_ref())?;
        let when = StartWhen { at, at_ms, after: start.after.clone(), queue, arrived: None };
        Ok((!when.is_now()).then(|| Box::new(when)))
    }

    /// Applies the settings of config.toml to the queue.
    pub(crate) fn configure_queue(&self, queue: Option<&InQueue>) -> Result<()> {
        if let Some(queue) = queue
            && let Some(settings) = self.config.queues.get(&queue.name)
        {
            Queue::open(&self.home, &queue.name)?.configure(settings)?;
        }
        Ok(())
    }

    /// Refuses a program that does not exist: now, and not only when it is to be started.
    pub(crate) fn check_program(&self, session: &Session, record: &RunRecord) -> Result<()> {
        let program = record.argv.first().map(String::as_str).unwrap_or_default();
        let found = if program.contains('/') {
            Path::new(&session.cwd).join(program).exists()
        } else {
            self.environment.variable("PATH").is_none_or(|path| agent_program::find_on(&path, program).is_some())
        };
        if found {
            return Ok(());
        }
        Err(Error::from(LaunchError::Program(format!("{program}: {}", StartError::NotFound))))
    }
}

/// The places of sessions in their queues. Each queue is read once.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<HashMap<String, HashMap<SessionId, u32>>>);

impl Places {
    /// Sets the place of a session that waits in a queue.
    pub fn fill(&self, home: &Home, view: &mut View) {
        let Some(waits) = view.waits.as_mut() else {
            return;
        };
        let Some(queue) = &waits.when.queue else {
            return;
        };
        let mut queues = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let places = queues
            .entry(queue.name.clone())
            .or_insert_with(|| (waiting(home, &queue.name).into_iter().zip(1..)).collect());
        waits.place = places.get(&view.id).copied();
    }
}
