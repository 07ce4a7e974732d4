//! Writing things down: journal first, then state, also when the disk is full.

use super::streams::Hold;
use super::{About, Keeper, KeeperError, entry};
use crate::abandoned;
use ostler_core::event::{Entry, Event};
use ostler_core::life::{State, step};
use ostler_store::spare;
use ostler_sys::dir;
use rustix::fs::OFlags;

impl Keeper {
    pub(super) fn note(&mut self, event: Event) -> Result<(), KeeperError> {
        self.note_about(About::default(), event)
    }

    pub(super) fn note_about(&mut self, about: About, event: Event) -> Result<(), KeeperError> {
        self.write(entry(self.record.run, about, event))
    }

    /// Journal first, then state. On a full disk the reserve is for this; when even that is used up, memory has to do
    /// until there is room.
    pub(super) fn write(&mut self, entry: Entry) -> Result<(), KeeperError> {
        if !self.unwritten.is_empty() {
            self.unwritten.push_back(entry.clone());
        } else {
            let journal = &mut self.journal;
            match self.folder.even_when_full(|| journal.append(&entry)) {
                Ok(length) => self.noted.appended(length),
                Err(error) if error.is_full_disk() => self.unwritten.push_back(entry.clone()),
                Err(error) => return Err(error.into()),
            }
        }
        self.conversation_lock.note(&entry.event);
        let state = std::mem::replace(&mut self.state, State::new(self.record.plan.clone()));
        self.state = step(state, &entry).0;
        if matches!(entry.event, Event::TurnEnded { .. }) {
            self.count_what_is_open();
        }
        self.clients.state_changed();
        Ok(())
    }

    pub(super) fn try_disk_again(&mut self) -> Result<(), KeeperError> {
        self.try_output_again()?;
        while let Some(entry) = self.unwritten.front() {
            match self.journal.append(entry) {
                Ok(length) => {
                    self.noted.appended(length);
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
        if self.state.outcome.is_none() && self.output.held() != Some(Hold::DiskFull) {
            self.folder.keep_reserve();
        }
        self.check_exit()?;
        for index in 0..self.clients.list().len() {
            self.acknowledge_keys(index)?;
        }
        Ok(())
    }

    /// The records of a launch reach the disk now that nobody waits for it. A disk that cannot is a disk that shows it soon.
    pub(super) fn sync_launch(&self) {
        for name in ["session.json", "holder.json", "inbox.jsonl"] {
            if let Ok(file) = self.folder.dir().file(name, OFlags::RDONLY) {
                let _ = rustix::fs::fsync(file);
            }
        }
        if let Ok(file) = self.run.dir().file("run.json", OFlags::RDONLY) {
            let _ = rustix::fs::fsync(file);
        }
        let _ = self.run.dir().sync();
        let _ = self.folder.dir().open_dir("runs").and_then(|runs| runs.sync());
        let _ = self.folder.dir().sync();
        if let Ok(sessions) = dir::Dir::open("..") {
            let _ = sessions.sync();
        }
    }

    /// The next launch finds its folder made. A failure is not reported: the folder only saves time.
    pub(super) fn prepare_the_next(&self) {
        if self.record.run == 1 && self.folder.has_room().unwrap_or(false) {
            let sessions = dir::Dir::open("..");
            // What cannot be removed or made now will be by the next one.
            let _ = sessions.as_ref().map(|sessions| (spare::make(sessions), abandoned::remove(sessions)));
        }
    }
}
