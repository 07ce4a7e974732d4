//! `inbox.jsonl`: the requests to a session. Any client appends, under a lock on the file, and the request is on the
//! disk before the client is told "accepted". The keeper reads it in order; nothing in it is ever changed.

use crate::StoreError;
use crate::folder::Folder;
use crate::journal::append_line;
use ostler_core::record::{Request, RequestKind};
use ostler_sys::dir::{Dir, Sync};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

pub const NAME: &str = "inbox.jsonl";

/// Appends a request, durably. On a full disk, requests other than messages use the reserve: they are small.
pub fn append(folder: &Folder, request: &Request) -> Result<(), StoreError> {
    append_to(folder, request, Sync::Yes)
}

/// The same in a folder that has no name itself yet: when it gets its name, the keeper syncs the names in it as well.
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

/// A request and its position in the file.
#[derive(Debug)]
pub struct Placed {
    pub request: Request,
    /// Position of its line.
    pub at: u64,
    /// Position after its line.
    pub end: u64,
}

/// Whole requests from `position` on, and the position after the last of them.
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
        // A torn line that was ended by the next writer is not a request: its sender was never told that it was
        // accepted.
        let end = at + line.len() as u64;
        if let Ok(request) = serde_json::from_slice(&line) {
            requests.push(Placed { request, at, end });
        }
        at = end;
    }
}

/// The request at this position; `None` if there is no such line, or no inbox any more.
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

/// Positions come from the journal, which may be damaged; the kernel does not accept a larger one than this.
fn is_nowhere(position: u64) -> bool {
    i64::try_from(position).is_err()
}

/// Bytes in the file.
pub fn size(dir: &Dir) -> Result<u64, StoreError> {
    Ok(dir.stat(NAME).map_err(StoreError::io(NAME))?.map_or(0, |stat| stat.size))
}
