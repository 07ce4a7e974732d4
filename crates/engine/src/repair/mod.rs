//! Repairing the agents' own transcripts, on request and before every resume.
//!
//! `ostler_transcript` decides what is wrong and what has to change; it writes nothing. This module replaces the file.
//! A conversation that a living process holds is left alone.

pub(crate) mod file;
pub(crate) mod lost;
pub(crate) mod rehearsal;
mod request;
pub(crate) mod split_off;
pub(crate) mod target;

pub use request::{End, Remedy, Repair, Repaired, Step};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::foreign::{self, ConversationOwner};
use crate::notice::Notice;
use file::Looked;
use ostler_agents::repair::Format;
use ostler_core::event::{Entry, Event};
use ostler_core::record::Session;
use ostler_store::RunRecord;
use ostler_store::folder::Folder;
use ostler_store::journal::Journal;
use ostler_sys::clock;
use ostler_transcript::{Branches, Finding};
use std::path::Path;

/// The process that holds this conversation now.
pub fn owner(engine: &Engine, format: Format, native_id: &str) -> Result<Option<ConversationOwner>> {
    let same =
        |owner: &ConversationOwner| owner.agent == format.agent() && owner.native_id.as_deref() == Some(native_id);
    Ok(foreign::owners(&engine.home, &engine.environment.lookup())?.into_iter().find(same))
}

/// Looks at the transcript of a session that is about to be continued, and repairs it, with a notice of each change.
/// The caller holds `keeper.lock`. A transcript that cannot be repaired is left to the agent: it may still be able to
/// read it, and reports an error otherwise.
pub fn before_resume(
    engine: &Engine,
    session: &Session,
    run: &RunRecord,
    tell: &mut dyn FnMut(Notice),
    note: Note<'_>,
) -> Result<()> {
    let (Some(format), Some(transcript)) = (Format::of_agent(&session.agent), run.transcript.as_deref()) else {
        return Ok(());
    };
    let path = Path::new(transcript);
    if !path.is_file() {
        return Ok(());
    }
    let cannot = |error| Error::CannotRepair { path: path.to_owned(), error };
    let looked = Looked::at(path, format, Branches::Join).map_err(cannot)?;
    if !looked.examination.repairs() {
        return Ok(());
    }
    if let Some(id) = &run.native_id
        && owner(engine, format, id)?.is_some()
    {
        return Ok(());
    }
    let written = looked.repair().map_err(cannot)?;
    let changes = changes(&written.findings);
    for change in &changes {
        tell(Notice::Repaired { change: change.clone(), backup: None });
    }
    note(changes, &written.backup)
}

/// Records what was changed, and the path of the backup.
pub type Note<'n> = &'n mut dyn FnMut(Vec<String>, &Path) -> Result<()>;

/// What was changed, in words.
pub fn changes(findings: &[Finding]) -> Vec<String> {
    findings.iter().filter(|finding| finding.remedy() == Remedy::Repair).map(Finding::to_string).collect()
}

/// Writes into the journal of a session what was changed. The caller holds `keeper.lock`.
pub fn note(folder: &Folder, run: u32, changes: Vec<String>, backup: &Path) -> Result<()> {
    let mut journal = Journal::open(folder.dir())?;
    journal.append(&Entry {
        at: clock::now(),
        ms: ostler_sys::clock::since_boot_ms(),
        run,
        out: None,
        request: None,
        inbox: None,
        notify: None,
        event: Event::Repaired { changes, backup: backup.to_string_lossy().into_owned() },
    })?;
    Ok(journal.sync()?)
}
