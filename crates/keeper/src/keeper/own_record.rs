//! What no hook reports: the agent's record of its own process. It is watched while a turn runs in a terminal, for the
//! end of the turn, and while a message waits for the agent to be ready. The file of hooks that write without a signal to
//! the keeper is watched in the same way. An idle session is not watched. When no inotify instance is available, the
//! record is looked at twice a second.

use super::{Keeper, KeeperError};
use jiff::Timestamp;
use ostler_core::life::event_of;
use ostler_core::record::Speaks;
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::notify::Watcher;
use std::path::PathBuf;

/// The interval without inotify.
const LOOK_AGAIN_MS: u64 = 500;

pub(super) struct OwnRecordWatch {
    /// The record; `None` where the file of the hooks is watched, which is read anyway.
    path: Option<PathBuf>,
    pub(super) watcher: Option<Watcher>,
    /// When to look at the record, even if it has not changed.
    pub(super) due_ms: Option<u64>,
}

impl Keeper {
    /// Folds in what the agent's own record says, when it may say something new.
    pub(super) fn consult_own_record(&mut self) -> Result<(), KeeperError> {
        let message_waits =
            (!self.state.is_ready() || self.terminal.dialog.is_awaited()) && !self.state.mail.queue.is_empty();
        let of_interest = self.state.turn_is_told() || message_waits;
        let runs = self.record.plan.speaks() == Speaks::Hooks && self.state.is_running();
        if !runs || !of_interest {
            self.own_record = None;
            return Ok(());
        }
        let now_ms = since_boot_ms();
        if self.own_record.is_none() {
            // Watch first, look afterwards: what is written in between wakes the keeper.
            self.own_record = self.watch_own_record(now_ms);
        }
        let Some(watch) = self.own_record.as_mut().filter(|watch| watch.due_ms.is_some_and(|due| due <= now_ms)) else {
            return Ok(());
        };
        watch.due_ms = watch.watcher.is_none().then_some(now_ms + LOOK_AGAIN_MS);
        let Some(path) = &watch.path else {
            return self.understand();
        };
        // It is the agent's file: when it cannot be read, the hooks are all there is.
        let Ok(record) = std::fs::read(path) else {
            return Ok(());
        };
        // Read after the record: what the hooks reported before the record changed is known now.
        self.understand()?;
        let Some(agent_feed) = self.reader.output() else {
            return Ok(());
        };
        // The time comes from the clock that the agent reads, because the record has the agent's own times.
        let told = agent_feed.own_record(&record, u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0));
        if let (Some(watch), Some(again_ms)) = (&mut self.own_record, told.again_in_ms) {
            watch.due_ms = Some(watch.due_ms.map_or(now_ms + again_ms, |due| due.min(now_ms + again_ms)));
        }
        for fact in told.facts {
            if let Some(event) = event_of(fact.resolved(clock::now()), &self.state) {
                self.note(event)?;
            }
        }
        Ok(())
    }

    /// The record has changed, or a file next to it.
    pub(super) fn own_record_changed(&mut self) -> Result<(), KeeperError> {
        if let Some(watch) = &mut self.own_record {
            if let Some(watcher) = &watch.watcher {
                watcher.changed()?;
            }
            watch.due_ms = Some(since_boot_ms());
        }
        Ok(())
    }

    pub(super) fn watch_own_record(&self, now_ms: u64) -> Option<OwnRecordWatch> {
        if self.agent.reports_in_a_file() {
            // The working directory is the session's folder. Only this file is watched, because the keeper itself
            // writes to the files next to it.
            let file = PathBuf::from(format!("runs/{}/hooks", self.run.number));
            let watcher = Watcher::new().ok().filter(|watcher| watcher.watch(&file).is_ok());
            return Some(OwnRecordWatch { path: None, watcher, due_ms: Some(now_ms) });
        }
        let path = self.agent.own_record(self.process.pid(), &|name| std::env::var(name).ok())?;
        let path = PathBuf::from(path);
        Some(OwnRecordWatch { watcher: Watcher::beside(&path), path: Some(path), due_ms: Some(now_ms) })
    }
}
