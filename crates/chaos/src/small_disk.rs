//! A disk of its own, as small as we like. Needs root.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Unmounted when dropped, which must be after everything that works on it.
#[derive(Debug)]
pub struct SmallDisk(TempDir);

impl SmallDisk {
    #[must_use]
    pub fn mount(size: &str) -> SmallDisk {
        let disk = SmallDisk(tempfile::tempdir().expect("a folder"));
        let options = format!("size={size},mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "ostler-chaos"]).arg(disk.path());
        assert!(mount.status().expect("mount").success(), "{mount:?}");
        disk
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a failed run may have left something on it.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}
