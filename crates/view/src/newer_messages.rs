//! What the inbox has that the keeper has not read yet: messages that wait, and what was decided about older ones.

use ostler_core::record::RequestKind;
use ostler_store::folder::Folder;
use ostler_store::{StoreError, inbox};
use ostler_sys::dir::Dir;

/// The contents of the inbox after the part that was read before.
#[derive(Clone, Debug, Default)]
pub struct Newer {
    messages: u32,
    /// The numbers of messages that are withdrawn, and of messages that are to be given again.
    withdrawn: Vec<u64>,
    again: Vec<u64>,
}

impl Newer {
    /// How many messages wait, if so many did before. A withdrawn message may have been one of those, or one of those
    /// that may have been delivered (`unclear`).
    pub fn with(&self, waiting: u32, unclear: &[u64]) -> u32 {
        let count = |numbers: &[u64], wanted: bool| {
            let count = numbers.iter().filter(|n| unclear.contains(n) == wanted).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let more = self.messages.saturating_add(count(&self.again, true));
        waiting.saturating_add(more).saturating_sub(count(&self.withdrawn, false))
    }

    /// Which of these may still have been delivered, as far as is known.
    pub fn still(&self, unclear: &[u64]) -> Vec<u64> {
        let decided = |n: &u64| self.withdrawn.contains(n) || self.again.contains(n);
        unclear.iter().filter(|n| !decided(n)).copied().collect()
    }

    pub fn any_waits(&self) -> bool {
        self.with(0, &[]) > 0
    }
}

fn newer_than(dir: &Dir, position: u64) -> Result<Newer, StoreError> {
    let (requests, _) = inbox::read(dir, position)?;
    let mut newer = Newer::default();
    for placed in requests {
        match placed.request.kind {
            RequestKind::Message { .. } => newer.messages = newer.messages.saturating_add(1),
            RequestKind::Withdraw { n } => newer.withdrawn.push(n),
            RequestKind::Again { n } => newer.again.push(n),
            RequestKind::Answer { .. }
            | RequestKind::Ask { .. }
            | RequestKind::Interrupt
            | RequestKind::GoOn
            | RequestKind::Stop { .. }
            | RequestKind::Unknown => {}
        }
    }
    Ok(newer)
}

pub fn newer_messages(folder: &Folder, seen: u64) -> Result<Newer, StoreError> {
    if inbox::size(folder.dir())? > seen { newer_than(folder.dir(), seen) } else { Ok(Newer::default()) }
}
