//! `inbox.jsonl`: what people want of a session. Any client appends, under a lock of the file, and it is on the disk
//! before the client is told "accepted". The keeper reads it in order; nothing in it is ever changed.

use crate::StoreError;
use crate::folder::Folder;
use crate::journal::append_line;
use ostler_core::record::{Request, RequestKind};
use ostler_sys::dir::{Dir, Sync};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

pub const NAME: &str = "inbox.jsonl";

/// Appends a request, durably; on a full disk out of the reserve. Requests to end come first there: they are small.
pub fn append(folder: &Folder, request: &Request) -> Result<(), StoreError> {
    append_to(folder, request, Sync::Yes)
}

/// The same in a folder that has no name itself yet: with that, the keeper syncs the names in it.
pub fn append_unnamed(folder: &Folder, request: &Request) -> Result<(), StoreError> {
    append_to(folder, request, Sync::Bytes)
}

fn append_to(folder: &Folder, request: &Request, sync: Sync) -> Result<(), StoreError> {
    let line = crate::folder::to_json(request);
    let _dropped = folder.drop_summary()?;
    let once = || append_line(folder.dir(), NAME, &line, sync);
    match &request.kind {
        RequestKind::Message { .. } => once(),
        RequestKind::Withdraw { .. }
        | RequestKind::Again { .. }
        | RequestKind::Answer { .. }
        | RequestKind::Ask { .. }
        | RequestKind::Interrupt
        | RequestKind::GoOn
        | RequestKind::Stop { .. }
        | RequestKind::Unknown => folder.even_when_full(once),
    }
}

/// A request and where it stands in the file.
#[derive(Debug)]
pub struct Placed {
    pub request: Request,
    /// Position of its line.
    pub at: u64,
    /// Position behind it.
    pub end: u64,
}

/// Whole requests from `position` on, and the position behind the last of them.
pub fn read(dir: &Dir, position: u64) -> Result<(Vec<Placed>, u64), StoreError> {
    let file = match dir.file(NAME, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), position)),
        Err(error) => return Err(StoreError::io(NAME)(error)),
    };
    if is_nowhere(position) {
        return Ok((Vec::new(), position));
    }
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(position)).map_err(StoreError::io(NAME))?;
    let (mut requests, mut at) = (Vec::new(), position);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(StoreError::io(NAME))?;
        if !line.ends_with(b"\n") {
            return Ok((requests, at));
        }
        // A torn line that was ended by the next writer is not a request: nobody was told that it was accepted.
        let end = at + line.len() as u64;
        if let Ok(request) = serde_json::from_slice(&line) {
            requests.push(Placed { request, at, end });
        }
        at = end;
    }
}

/// The request that stands at this position; none where there is no such line, or no inbox any more.
pub fn read_one(dir: &Dir, at: u64) -> Result<Option<Request>, StoreError> {
    let mut file = match dir.file(NAME, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io(NAME)(error)),
    };
    if is_nowhere(at) {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(at)).map_err(StoreError::io(NAME))?;
    let mut line = Vec::new();
    BufReader::new(file.take(u64::MAX)).read_until(b'\n', &mut line).map_err(StoreError::io(NAME))?;
    Ok(serde_json::from_slice(&line).ok())
}

/// Positions come from the journal, which may be damaged; beyond this the kernel knows none.
fn is_nowhere(position: u64) -> bool {
    i64::try_from(position).is_err()
}

/// Bytes in the file.
pub fn size(dir: &Dir) -> Result<u64, StoreError> {
    Ok(dir.stat(NAME).map_err(StoreError::io(NAME))?.map_or(0, |stat| stat.size))
}
