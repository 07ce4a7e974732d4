//! Being told when a foreign process changes a file.
//!
//! A user has 128 inotify instances in all, so this is used only for writers that cannot notify us (an agent's
//! transcript, foreign sessions), and every user of this module also works without it.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

/// How many watches a user may have; `None` where the system does not say.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub instances: Option<u64>,
    pub watches: Option<u64>,
}

/// The limits of this machine.
#[must_use]
pub fn limits() -> Limits {
    let limit = |name: &str| std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?.trim().parse().ok();
    Limits { instances: limit("max_user_instances"), watches: limit("max_user_watches") }
}

/// One inotify instance.
#[derive(Debug)]
pub struct Watcher(OwnedFd);

/// Identifies one watched path in what [`Watcher::changed`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Watch(i32);

impl Watcher {
    /// Fails when the user has no instance left.
    pub fn new() -> io::Result<Watcher> {
        Ok(Watcher(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
    }

    /// Watches the folder of a file that may not exist yet. `None`: no instance is available, or there is no such
    /// folder.
    #[must_use]
    pub fn beside(file: &Path) -> Option<Watcher> {
        let watcher = Watcher::new().ok()?;
        watcher.watch(file.parent()?).ok()?;
        Some(watcher)
    }

    /// Watches a folder (names that come, go or change) or a file (content that changes).
    pub fn watch(&self, path: &Path) -> io::Result<Watch> {
        let what = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::CLOSE_WRITE;
        Ok(Watch(inotify::add_watch(&self.0, path, what)?))
    }

    pub fn forget(&self, watch: Watch) {
        // An error means that the path is gone, and then the watch is gone too.
        let _ = inotify::remove_watch(&self.0, watch.0);
    }

    /// The watches on which something happened since the last call, each once; never waits.
    pub fn changed(&self) -> io::Result<Vec<Watch>> {
        let mut changed: Vec<Watch> = self.changed_names()?.into_iter().map(|(watch, _)| watch).collect();
        changed.dedup();
        Ok(changed)
    }

    /// The same, with the names in watched folders to which it happened, each once.
    pub fn changed_names(&self) -> io::Result<Vec<(Watch, String)>> {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut space);
        let mut changed = BTreeSet::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                        // Events were dropped: the caller must look at everything, which is expressed by -1.
                        return Ok(vec![(Watch(-1), String::new())]);
                    }
                    let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                    changed.insert((Watch(event.wd()), name.unwrap_or_default()));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(changed.into_iter().collect()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Watch {
    /// Whether it means "something was missed, look everywhere".
    #[must_use]
    pub fn is_everything(self) -> bool {
        self.0 == -1
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
