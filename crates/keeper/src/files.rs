//! Small things that both helpers do with files.

use crate::VERSION;
use ostler_store::HelperRecord;
use ostler_store::folder::{Folder, RunFolder};
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::process::{Identity, WaitStatus};
use rustix::fd::OwnedFd;
use std::io;

use crate::handles::{FOLDER, Handles};

/// The session's folder from its handle.
pub fn folder_of(handles: &Handles) -> io::Result<Folder> {
    let handle: OwnedFd = rustix::io::fcntl_dupfd_cloexec(handles.need(FOLDER)?, 3)?;
    Ok(Folder::new(Dir::adopt(handle)))
}

/// The session's folder from its handle, and our working directory. So the session of a helper can be found through
/// /proc, and no foreign file system is kept busy.
pub fn enter_folder(handles: &Handles) -> io::Result<Folder> {
    let handle: OwnedFd = rustix::io::fcntl_dupfd_cloexec(handles.need(FOLDER)?, 3)?;
    rustix::process::fchdir(&handle)?;
    Ok(Folder::new(Dir::adopt(handle)))
}

/// This process, for holder.json or keeper.json.
pub fn helper_record() -> io::Result<HelperRecord> {
    Ok(HelperRecord { process: Identity::me()?, version: VERSION.to_owned(), crashes: 0, gave_up: false, folder: None })
}

/// Writes exit.json, durably; from the reserve when the disk is full. `None`: the process is gone and its exit status
/// is unknown.
pub fn write_exit(folder: &Folder, run: &RunFolder, status: Option<WaitStatus>) -> io::Result<()> {
    let number = |value: Option<i32>| value.map_or("null".to_owned(), |value| value.to_string());
    let code = number(status.and_then(WaitStatus::code));
    let signal = number(status.and_then(WaitStatus::signal));
    let text = format!("{{\"code\":{code},\"signal\":{signal}}}\n");
    loop {
        match run.dir().replace("exit.json", text.as_bytes(), Sync::Yes) {
            Err(error) if ostler_store::is_full_disk(&error) && folder.spend_reserve() => {}
            other => return other,
        }
    }
}
