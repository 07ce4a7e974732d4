//! Writes down how far the session has been understood, so that a reader of a long one need not begin at its beginning.
//! It is derived from the journal and the output: when it cannot be written, readers only read more.

use super::Keeper;
use ostler_store::progress;
use ostler_sys::clock::since_boot_ms;
use ostler_view::agent_feed::AgentFeed;

/// What a reader may have to read again: so much of the journal, and so much output.
const JOURNAL: u64 = 16 * 1024;
const OUTPUT: u64 = 32 * 1024;
/// While output comes without a pause, not more often than this.
const PAUSE_MS: u64 = 20;

/// What was written down last.
#[derive(Default)]
pub(super) struct Noted {
    /// What the journal has behind it.
    journal_behind: u64,
    output: u64,
    /// How long it was. A long one is written less often.
    size: u64,
    at_ms: u64,
}

impl Noted {
    pub(super) fn with(journal_behind: u64) -> Noted {
        Noted { journal_behind, ..Noted::default() }
    }

    /// The journal has so much more.
    pub(super) fn appended(&mut self, length: u64) {
        self.journal_behind += length;
    }
}

impl Keeper {
    pub(super) fn note_progress_when_due(&mut self) {
        let heard = self.agent_feed.as_ref().map_or(0, AgentFeed::position);
        let journal_due = self.noted.journal_behind >= JOURNAL.max(self.noted.size);
        let output_due = heard.saturating_sub(self.noted.output) >= OUTPUT.max(4 * self.noted.size);
        // What is not on the disk yet is not in the journal.
        let can = self.unwritten.is_empty() && self.output.held().is_none();
        if !can || !(journal_due || output_due) {
            return;
        }
        let now_ms = since_boot_ms();
        let more_comes = || self.output.waiting(&self.handles).is_ok_and(|bytes| bytes > 0);
        if now_ms < self.noted.at_ms + PAUSE_MS && more_comes() {
            return;
        }
        let heard_now = self.agent_feed.as_ref().and_then(|output| output.heard(self.record.run));
        let written = self
            .journal
            .end()
            .and_then(|end| progress::write(self.folder.dir(), end, self.bad_lines, &self.state, heard_now));
        // Also when it could not be written: then it is tried again when there is more.
        let size = written.unwrap_or(self.noted.size);
        self.noted = Noted { journal_behind: 0, output: heard, size, at_ms: now_ms };
    }
}
