//! A terminal session's screen from its files: `size` notes when the window changed, `screen` is a snapshot taken at
//! least every MiB, `out` has the bytes since. Reading them needs no keeper.

use crate::StoreError;
use crate::journal::open_for_append;
use crate::look::read_from;
use ostler_screen::{Screen, Size};
use ostler_sys::dir::{Dir, Sync};
use serde::{Deserialize, Serialize};
use std::io::Write;

/// How much output may come between two snapshots.
pub const SNAPSHOT_EVERY: u64 = 1 << 20;

/// The window had this size from that position of the output on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resize {
    pub at: u64,
    pub rows: u16,
    pub columns: u16,
}

/// Appends to `size`.
pub fn note_size(run: &Dir, resize: Resize) -> Result<(), StoreError> {
    let mut file = open_for_append(run, "size")?;
    file.write_all(&crate::folder::to_json(&resize)).map_err(StoreError::io("size"))
}

fn sizes(run: &Dir) -> Result<Vec<Resize>, StoreError> {
    let bytes = run.read("size").map_err(StoreError::io("size"))?.unwrap_or_default();
    Ok(bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// A screen and the position of the output up to which it is right.
#[derive(Debug)]
pub struct At {
    pub screen: Screen,
    pub position: u64,
}

/// Position of the newest snapshot, 0 when there is none.
pub fn snapshot_position(run: &Dir) -> Result<u64, StoreError> {
    let bytes = run.read("screen").map_err(StoreError::io("screen"))?.unwrap_or_default();
    Ok(parse_snapshot(&bytes).map_or(0, |(position, _)| position))
}

/// The screen at the present end of the output.
pub fn now(run: &Dir) -> Result<At, StoreError> {
    let sizes = sizes(run)?;
    let bytes = run.read("screen").map_err(StoreError::io("screen"))?.unwrap_or_default();
    let stored = parse_snapshot(&bytes)
        .and_then(|(position, state)| Some(At { screen: Screen::restore(state).ok()?, position }));
    // A snapshot that cannot be read costs time, nothing else: everything is in the output.
    let mut at = match stored {
        Some(at) => at,
        None => At {
            screen: Screen::new(sizes.first().map_or(Size { rows: 24, columns: 80 }, size_of_window)),
            position: 0,
        },
    };
    let (screen, mut fed) = (&mut at.screen, at.position);
    let mut changes = sizes.into_iter().filter(|resize| resize.at >= fed).collect::<Vec<_>>().into_iter().peekable();
    read_from(run, "out", &mut at.position, |mut bytes| {
        while let Some(resize) = changes.peek().copied() {
            let before = usize::try_from(resize.at.saturating_sub(fed)).unwrap_or(usize::MAX);
            if before > bytes.len() {
                break;
            }
            let (first, rest) = bytes.split_at(before);
            screen.feed(first);
            screen.resize(size_of_window(&resize));
            fed += first.len() as u64;
            bytes = rest;
            changes.next();
        }
        screen.feed(bytes);
        fed += bytes.len() as u64;
    })?;
    for resize in changes {
        at.screen.resize(size_of_window(&resize));
    }
    Ok(at)
}

fn size_of_window(resize: &Resize) -> Size {
    Size { rows: resize.rows, columns: resize.columns }
}

/// Takes a snapshot at the present end of the output.
pub fn take_snapshot(run: &Dir) -> Result<(), StoreError> {
    let at = now(run)?;
    let mut bytes = format!("{}\n", at.position).into_bytes();
    bytes.extend(at.screen.snapshot());
    run.replace("screen", &bytes, Sync::No).map_err(StoreError::io("screen"))
}

/// The position on the first line, then the state.
fn parse_snapshot(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let position = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    Some((position, &bytes[end + 1..]))
}
