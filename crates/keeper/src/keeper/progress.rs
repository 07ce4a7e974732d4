//! Records how far the session has been understood, so that a reader of a long session does not have to begin at its
//! beginning. The record is derived from the journal and the output: when it cannot be written, readers only read more.

use super::Keeper;
use ostler_store::progress;
use ostler_sys::clock::since_boot_ms;

/// How many bytes of the journal, and of the output, a reader may have to read again.
const JOURNAL: u64 = 16 * 1024;
const OUTPUT: u64 = 32 * 1024;
/// The shortest pause between two records while output comes continuously.
const PAUSE_MS: u64 = 20;

/// The progress that was written last.
#[derive(Default)]
pub(super) struct Noted {
    /// Lines of the journal that could not be read; their number is a part of the progress.
    bad_lines: u32,
    output: u64,
    /// The size of the record. A long record is written less often.
    size: u64,
    at_ms: u64,
}

impl Noted {
    pub(super) fn with(bad_lines: u32) -> Noted {
        Noted { bad_lines, ..Noted::default() }
    }

    /// Whether a reader would have to read much: this many bytes of the journal, and the output up to here.
    fn is_due(&self, journal_behind: u64, heard: u64) -> bool {
        let journal_due = journal_behind >= JOURNAL.max(self.size);
        let output_due = heard.saturating_sub(self.output) >= OUTPUT.max(4 * self.size);
        journal_due || output_due
    }

    /// Progress was written now, up to here. `None`: it could not be written, and is tried again when there is more.
    fn wrote(&mut self, heard: u64, size: Option<u64>, now_ms: u64) {
        (self.output, self.at_ms) = (heard, now_ms);
        self.size = size.unwrap_or(self.size);
    }
}

impl Keeper {
    pub(super) fn note_progress_when_due(&mut self) {
        let heard = self.reader.position();
        // Entries that are not on the disk yet are not in the journal.
        let can = self.journal.is_written() && self.output.held().is_none();
        if !can || !self.noted.is_due(self.journal.behind(), heard) {
            return;
        }
        let now_ms = since_boot_ms();
        let more_comes = || self.output.waiting(&self.handles).is_ok_and(|bytes| bytes > 0);
        if now_ms < self.noted.at_ms + PAUSE_MS && more_comes() {
            return;
        }
        let heard_now = self.reader.heard(self.record.run);
        let written = self
            .journal
            .end()
            .and_then(|end| progress::write(self.folder.dir(), end, self.noted.bad_lines, &self.state, heard_now));
        self.noted.wrote(heard, written.ok(), now_ms);
        self.journal.progress_noted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_noted_after_much_journal_or_output_and_a_long_one_less_often() {
        let mut noted = Noted::with(0);
        assert!(!noted.is_due(JOURNAL - 1, OUTPUT - 1));
        assert!(noted.is_due(JOURNAL, 0) && noted.is_due(0, OUTPUT));
        noted.wrote(OUTPUT, Some(10 * OUTPUT), 1000);
        assert!(!noted.is_due(JOURNAL, 2 * OUTPUT), "it is long by now");
        assert!(noted.is_due(10 * OUTPUT, 0) && noted.is_due(0, 41 * OUTPUT));
        // A record that could not be written counts as written until there is more.
        noted.wrote(41 * OUTPUT, None, 2000);
        assert!(!noted.is_due(0, 41 * OUTPUT));
    }
}
