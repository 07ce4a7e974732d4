//! What killed launches leave behind: folders under a hidden name, of sessions that were never shown to anyone. The
//! keeper of the next session that is started removes them.
//!
//! The race this solves: the folder of a launch that is still under way looks the same. So a launch holds a lock on its
//! folder from the beginning, and the copy of the launcher that becomes the holder inherits this lock.

use ostler_store::folder::Folder;
use ostler_store::home::hidden_name;
use ostler_sys::clock;
use ostler_sys::dir::Dir;
use ostler_sys::lock;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FlockOperation, OFlags, flock, statat};
use std::io;

/// Between making the folder and locking it a launch needs microseconds.
const FIRST_MOMENTS_S: i64 = 5;

/// Locks the folder of a launch, for as long as any process lives that inherits this open folder.
pub fn hold(folder: &Folder) -> io::Result<()> {
    loop {
        // A process that looks for abandoned folders holds the lock for a moment.
        match flock(folder.dir().as_fd(), FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Removes what killed launches have left among the sessions.
pub fn remove(sessions: &Dir) -> io::Result<()> {
    let hidden = hidden_name("");
    for name in sessions.names()?.iter().filter(|name| name.starts_with(&hidden)) {
        let folder = match sessions.file(name, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(folder) => folder,
            // Another process has removed the folder, or it has its real name by now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let Some(held) = lock::try_exclusive(folder)? else {
            continue;
        };
        // Removed by its name, which must still be the name of the folder that is locked.
        let stat = rustix::fs::fstat(held.file())?;
        let same = statat(sessions.as_fd(), name.as_str(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|there| (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino));
        // An older ostler locks nothing, but its holder is named in the folder.
        let holder = Folder::new(sessions.open_dir(name)?).holder();
        let kept = holder.ok().flatten().is_some_and(|holder| holder.process.may_live());
        if same && !kept && clock::now().as_second() - stat.st_ctime > FIRST_MOMENTS_S {
            sessions.remove_all(name)?;
        }
    }
    Ok(())
}
