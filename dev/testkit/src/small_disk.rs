//! A separate disk of any small size. Needs root.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Unmounted when dropped, which must be after everything that uses it: a harness that keeps its sessions below it
/// ([`crate::Harness::keep_sessions_below`]) ends them first.
#[derive(Debug)]
pub struct SmallDisk(TempDir);

impl SmallDisk {
    #[must_use]
    pub fn mount(size: &str) -> SmallDisk {
        let disk = SmallDisk(tempfile::tempdir().expect("a folder"));
        disk.mounts(&["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "ostler-test"]);
        disk
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn grow(&self, size: &str) {
        // With the device named, `mount` does not look for it in a table that other tests change at this moment.
        self.mounts(&["-t", "tmpfs", "-o", &format!("remount,size={size}"), "ostler-test"]);
    }

    fn mounts(&self, arguments: &[&str]) {
        let status = Command::new("mount").args(arguments).arg(self.path()).status().expect("mount");
        assert!(status.success(), "mount {arguments:?}");
    }

    /// Takes all free space, except what sessions have reserved.
    #[must_use]
    pub fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut file = std::fs::File::create(&ballast).expect("a file");
        for size in [1 << 16, 4096, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that another thread starts at this moment has our open files until its exec.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}
