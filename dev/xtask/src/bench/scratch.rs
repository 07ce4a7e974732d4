//! A place for everything that a run of the benchmarks writes, separate from the user's own sessions, servers and
//! settings.
//!
//! Two folders: one below target/, on a real disk, for data; one with a short name for sockets, whose paths the kernel
//! limits to 107 bytes. Both are deleted when the run is over.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::fs::IFlags;

use crate::workspace;

/// About as many variables as a shell on a desktop exports.
const PERSONS_VARIABLES: usize = 40;

pub struct Scratch {
    data: PathBuf,
    short: PathBuf,
    names_given: Cell<usize>,
}

/// Makes ext4 put each folder that is made in this one far from everything else. Without a journal, ext4 steps over
/// every inode that was deleted in the last minutes. Then creating a file would take ten times as long after a test run
/// as before it, and what one contender deletes would slow down the next.
fn keep_apart(folder: &Path) -> Result<()> {
    const TOP_OF_A_TREE: IFlags = IFlags::from_bits_retain(0x0002_0000);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let open = std::fs::File::open(folder)?;
    // Other file systems have neither the problem nor the flag.
    let _ = rustix::fs::ioctl_getflags(&open).map(|flags| rustix::fs::ioctl_setflags(&open, flags | TOP_OF_A_TREE));
    Ok(())
}

impl Scratch {
    pub fn create() -> Result<Self> {
        let mine = std::process::id();
        let scratch = Self {
            data: workspace::target().join("bench").join(format!("scratch-{mine}")),
            short: std::env::temp_dir().join(format!("ob{mine}")),
            names_given: Cell::new(0),
        };
        keep_apart(&workspace::target().join("bench"))?;
        keep_apart(&scratch.data)?;
        std::fs::create_dir_all(&scratch.short).with_context(|| format!("cannot make {}", scratch.short.display()))?;
        Ok(scratch)
    }

    /// A new, empty folder on disk.
    pub fn folder(&self, about: &str) -> Result<PathBuf> {
        let folder = self.data.join(self.unique(about));
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Like [`Scratch::folder`], as a relative path for commands that are run in the folder of the data: short enough
    /// for a socket, too.
    pub fn nearby_folder(&self, about: &str) -> Result<PathBuf> {
        let folder = self.folder(about)?;
        Ok(folder.strip_prefix(&self.data)?.to_owned())
    }

    /// A path that is short enough for a socket, and that does not exist yet.
    pub fn socket(&self, about: &str) -> PathBuf {
        self.short.join(self.unique(about))
    }

    /// A path on disk that does not exist yet.
    pub fn file(&self, about: &str) -> PathBuf {
        self.data.join(self.unique(about))
    }

    pub fn unique(&self, about: &str) -> String {
        let number = self.names_given.get() + 1;
        self.names_given.set(number);
        // Not the same in two runs: the name of a folder decides where on the disk it is.
        format!("{about}-{}-{number}", std::process::id())
    }

    /// The command with an environment of its own, as long as a person's: pueue, for example, stores it with every
    /// task, so the length of our environment must not affect a comparison, and neither must an empty one.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.data);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
        command.envs(
            (0..PERSONS_VARIABLES).map(|n| (format!("A_PERSONS_VARIABLE_{n}"), "/a/value/of/usual/length:".repeat(2))),
        );
        command.envs([("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("SHELL", "/bin/sh"), ("USER", "bench")]);
        command.env("HOME", &self.data).env("XDG_RUNTIME_DIR", &self.short);
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for folder in [&self.data, &self.short] {
            if let Err(error) = std::fs::remove_dir_all(folder) {
                eprintln!("{} stays behind: {error}", folder.display());
            }
        }
    }
}
