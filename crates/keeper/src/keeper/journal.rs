//! Recording events: journal first, then state, also when the disk is full.

use super::streams::Hold;
use super::{About, Keeper, KeeperError, entry};
use crate::abandoned;
use ostler_core::event::{Entry, Event};
use ostler_core::life::{State, step};
use ostler_core::moment;
use ostler_store::folder::Folder;
use ostler_store::journal::Journal;
use ostler_store::{StoreError, spare_folder};
use ostler_sys::dir;
use rustix::fs::OFlags;
use std::collections::VecDeque;

/// The journal, and what did not fit on the disk yet.
pub(super) struct Log {
    journal: Journal,
    /// The entries in the order in which they will be written.
    unwritten: VecDeque<Entry>,
    /// How many bytes have been written since the progress was noted.
    behind: u64,
}

impl Log {
    /// `behind`: how many bytes of the journal come after the progress that was noted.
    pub fn new(journal: Journal, behind: u64) -> Log {
        Log { journal, unwritten: VecDeque::new(), behind }
    }

    /// Writes an entry. On a full disk the reserve is used for it; when that is used up too, the entry is kept in
    /// memory until there is room.
    fn write(&mut self, folder: &Folder, entry: &Entry) -> Result<(), StoreError> {
        let journal = &mut self.journal;
        self.unwritten.push_back(entry.clone());
        if self.unwritten.len() > 1 {
            // Not before the entries that wait already.
            return Ok(());
        }
        write_waiting(&mut self.unwritten, &mut self.behind, |entry| folder.even_when_full(|| journal.append(entry)))
    }

    /// Writes what did not fit.
    fn write_waiting(&mut self) -> Result<(), StoreError> {
        let journal = &mut self.journal;
        write_waiting(&mut self.unwritten, &mut self.behind, |entry| journal.append(entry))
    }

    /// Whether everything is in the file.
    pub fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// The entries that are not in the file yet.
    pub fn unwritten(&self) -> impl Iterator<Item = &Entry> {
        self.unwritten.iter()
    }

    /// Waits until the journal is on the disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.journal.sync()
    }

    /// Something has happened that is not in the journal yet.
    pub fn touch(&self) -> Result<(), StoreError> {
        self.journal.touch()
    }

    /// Where the journal ends.
    pub fn end(&self) -> Result<(u64, u64), StoreError> {
        self.journal.end()
    }

    /// How many bytes were written since the progress was noted.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// The progress is noted now.
    pub fn progress_noted(&mut self) {
        self.behind = 0;
    }
}

/// Writes entries as long as there is room, in their order.
fn write_waiting(
    waiting: &mut VecDeque<Entry>,
    behind: &mut u64,
    mut append: impl FnMut(&Entry) -> Result<u64, StoreError>,
) -> Result<(), StoreError> {
    while let Some(entry) = waiting.front() {
        match append(entry) {
            Ok(length) => {
                *behind += length;
                waiting.pop_front();
            }
            Err(error) if error.is_full_disk() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Keeper {
    pub(super) fn note(&mut self, event: Event) -> Result<(), KeeperError> {
        self.note_about(About::default(), event)
    }

    pub(super) fn note_about(&mut self, about: About, event: Event) -> Result<(), KeeperError> {
        let Some((moment, wanted)) = self.moment_of(&event) else {
            return self.write(entry(self.record.run, about, event));
        };
        // A client reports the end itself: it may have seen the outcome and exited before the keeper could send it.
        let text = (!matches!(event, Event::Ended { .. })).then(|| moment::text_of(&event));
        self.write(entry(self.record.run, About { notify: Some(moment), ..about }, event))?;
        self.tell(moment, &wanted, text);
        Ok(())
    }

    /// The same without a notification: the event ends a run, and the session continues.
    pub(super) fn note_silently(&mut self, event: Event) -> Result<(), KeeperError> {
        self.write(entry(self.record.run, About::default(), event))
    }

    /// Journal first, then state.
    pub(super) fn write(&mut self, entry: Entry) -> Result<(), KeeperError> {
        self.journal.write(&self.folder, &entry)?;
        self.conversation_lock.note(&entry.event);
        let state = std::mem::replace(&mut self.state, State::new(self.record.plan.clone()));
        self.state = step(state, &entry).0;
        if matches!(entry.event, Event::TurnEnded { .. }) {
            self.count_what_is_open();
            self.turn_snapshots.turn_ended(self.state.turns);
        }
        self.clients.state_changed();
        Ok(())
    }

    pub(super) fn try_disk_again(&mut self) -> Result<(), KeeperError> {
        self.try_output_again()?;
        self.journal.write_waiting()?;
        if !self.journal.is_written() {
            return Ok(());
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

    /// Syncs the records of a launch, now that no process waits for it. Errors are ignored: a failing disk is noticed
    /// soon anyway.
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

    /// Makes the folder for the next launch in advance. A failure is not reported: the folder only saves time.
    pub(super) fn prepare_the_next(&self) {
        if self.record.run == 1 && self.folder.has_room().unwrap_or(false) {
            let sessions = dir::Dir::open("..");
            // What cannot be removed or made now is left to the next keeper.
            let _ = sessions.as_ref().map(|sessions| (spare_folder::make(sessions), abandoned::remove(sessions)));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn alarm(text: &str) -> Entry {
        entry(1, About::default(), Event::Alarm { text: text.to_owned() })
    }

    fn text(entry: &Entry) -> &str {
        match &entry.event {
            Event::Alarm { text } => text,
            _ => "",
        }
    }

    #[test]
    fn entries_that_found_no_room_are_written_later_in_their_order() {
        let full = || StoreError::Io { file: "journal".to_owned(), error: rustix::io::Errno::NOSPC.into() };
        let (mut waiting, mut behind, mut written) = (VecDeque::from([alarm("one"), alarm("two")]), 0, Vec::new());
        // There is room for one.
        let first = |entry: &Entry| {
            if written.is_empty() {
                written.push(text(entry).to_owned());
                return Ok(10);
            }
            Err(full())
        };
        write_waiting(&mut waiting, &mut behind, first).unwrap();
        assert_eq!((waiting.len(), behind), (1, 10));
        waiting.push_back(alarm("three"));
        write_waiting(&mut waiting, &mut behind, |entry| {
            written.push(text(entry).to_owned());
            Ok(10)
        })
        .unwrap();
        assert_eq!((written, waiting.len(), behind), (["one", "two", "three"].map(str::to_owned).to_vec(), 0, 30));
        // Any other error than a full disk is returned, and the entry is not lost.
        waiting.push_back(alarm("four"));
        let broken = |_: &Entry| Err(StoreError::Io { file: String::new(), error: rustix::io::Errno::IO.into() });
        assert!(write_waiting(&mut waiting, &mut behind, broken).is_err());
        assert_eq!(waiting.len(), 1);
    }

    #[test]
    fn a_log_counts_what_is_behind_the_noted_progress() {
        let folder = tempfile::tempdir().unwrap();
        let dir = dir::Dir::open(folder.path()).unwrap();
        let mut log = Log::new(Journal::open(&dir).unwrap(), 5);
        let folder = Folder::new(dir);
        log.write(&folder, &alarm("one")).unwrap();
        let end = log.end().unwrap().0;
        assert_eq!((log.is_written(), log.behind()), (true, 5 + end));
        log.progress_noted();
        log.write(&folder, &alarm("two")).unwrap();
        assert_eq!(log.behind(), log.end().unwrap().0 - end);
        assert_eq!(log.unwritten().count(), 0);
    }
}
