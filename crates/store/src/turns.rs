//! `turns.jsonl`: which snapshots of its working tree a session has.

use crate::StoreError;
use crate::folder::{Folder, to_json};
use ostler_core::turns::{Entry, History};
use ostler_sys::dir::Sync;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Write;

const FILE: &str = "turns.jsonl";

/// Reads all entries. A line that cannot be read is torn: its snapshot was taken but is not named, so the next snapshot
/// contains its changes.
pub fn read(folder: &Folder) -> Result<History, StoreError> {
    let text = folder.dir().read(FILE).map_err(StoreError::io(FILE))?.unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n');
    Ok(History(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()))
}

/// Appends one entry, durably.
pub fn note(folder: &Folder, entry: &Entry) -> Result<(), StoreError> {
    let write = || {
        // A process that was killed while it wrote has left a line without an end.
        let torn = folder.dir().read(FILE)?.is_some_and(|text| !text.is_empty() && !text.ends_with(b"\n"));
        let mut file = File::from(folder.dir().file(FILE, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)?);
        let line = if torn { [&b"\n"[..], &to_json(entry)].concat() } else { to_json(entry) };
        file.write_all(&line)?;
        file.sync_data()
    };
    write().map_err(StoreError::io(FILE))
}

/// Replaces all entries.
pub fn replace(folder: &Folder, history: &History) -> Result<(), StoreError> {
    let text: Vec<u8> = history.0.iter().flat_map(to_json).collect();
    folder.dir().replace(FILE, &text, Sync::Yes).map_err(StoreError::io(FILE))
}
