//! The agent's transcript before it is read again: restored when it is gone, completed from its copies, and copied.

use super::begun;
use crate::environment::Environment;
use crate::error::Result;
use crate::notice::Notice;
use crate::repair::{Note, lost::Kept};
use crate::session_ref::SessionRef;
use jiff::Timestamp;
use ostler_agents::repair::Format;
use ostler_core::limits::size;
use ostler_core::view::View;
use ostler_store::folder::Folder;
use ostler_store::{RunRecord, StoreError, checkpoints};
use ostler_sys::clock;
use ostler_view::proof;
use ostler_view::proof::Begun;
use std::path::Path;

/// Restores a transcript from its last copy when the file is gone or has nothing in it: an agent may delete
/// conversations by itself.
pub fn bring_back(
    environment: &Environment,
    folder: &Folder,
    view: &View,
    tell: &mut dyn FnMut(Notice),
    note: Note<'_>,
) -> Result<()> {
    let before = begun(environment, folder, view)?;
    let Some(transcript) = proof::own_file(folder, view)?.filter(|_| before != Begun::Yes) else {
        return Ok(());
    };
    let all = checkpoints::list(folder)?;
    match all.iter().rfind(|one| one.of == Path::new(&transcript)) {
        Some(last) => {
            let words = format!("its transcript was missing; restored from the last copy ({})", size(last.length));
            let backup = checkpoints::restore(folder, last)?;
            tell(Notice::TranscriptRestored {
                session: SessionRef::from(view),
                words: words.clone(),
                backup: backup.clone(),
            });
            if let Some(backup) = backup {
                note(vec![words], &backup)?;
            }
        }
        None if view.turns > 0 => tell(Notice::TranscriptGone { session: SessionRef::from(view) }),
        None => {}
    }
    Ok(())
}

/// Puts back what a transcript has lost and its copies have, and reports what cannot be put back.
pub fn bring_back_lost(folder: &Folder, view: &View, tell: &mut dyn FnMut(Notice), note: Note<'_>) -> Result<()> {
    let Some(transcript) = proof::own_file(folder, view)?.filter(|path| Path::new(path).is_file()) else {
        return Ok(());
    };
    let format = Format::of_agent(&view.agent);
    let transcript = Path::new(&transcript);
    let kept = Kept { folder, id: view.id, transcript, file: transcript, format };
    let lost = kept.bring_back(&mut |words: &str, backup: &Path| {
        tell(Notice::Repaired { change: words.to_owned(), backup: Some(backup.to_owned()) });
        note(vec![words.to_owned()], backup)
    })?;
    if let Some(lost) = lost {
        tell(Notice::TranscriptLacks { session: SessionRef::from(view), words: lost.words });
    }
    Ok(())
}

/// Copies what is new of the transcript, where that is configured.
pub fn save<T>(
    folder: &Folder,
    view: &View,
    record: &RunRecord,
    save: fn(&Folder, &Path, Timestamp) -> std::result::Result<T, StoreError>,
) -> Result<()> {
    if record.autosave_ms.is_some()
        && let Some(transcript) = proof::own_file(folder, view)?
    {
        save(folder, Path::new(&transcript), clock::now())?;
    }
    Ok(())
}
