//! Codex's own lock: whoever writes a thread holds flock on `thread-writer-locks/<id>.lock` below its home.
//!
//! The file stays when the writer has gone; only the kernel's list of locks tells who holds it. That list goes by device
//! and inode, so the file is looked up first and believed afterwards.

use super::processes::{self, describe};
use super::{Evidence, Holder, Variable};
use std::io;
use std::os::unix::fs::MetadataExt;

/// One lock that somebody holds on a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    pid: i32,
    device: (u32, u32),
    inode: u64,
}

/// Every thread that a process of this user writes to.
pub fn locked(variable: Variable<'_>) -> io::Result<Vec<Holder>> {
    let Some(home) = super::folder(variable, "CODEX_HOME", ".codex") else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let entries = std::fs::read_dir(home.join("thread-writer-locks")).into_iter().flatten().flatten();
    let files: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_suffix(".lock")?.to_owned(), entry.metadata().ok()?))
        })
        .collect();
    if files.is_empty() {
        return Ok(found);
    }
    let locks = std::fs::read_to_string("/proc/locks")?;
    let locks: Vec<Held> = locks.lines().filter_map(parse).collect();
    for (native_id, file) in files {
        let device = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
        for lock in locks.iter().filter(|lock| (lock.device, lock.inode) == (device, file.ino())) {
            let process = processes::of_this_user(lock.pid)?.and_then(|living| describe(&living));
            found.extend(process.map(|process| Holder::new("codex", Some(native_id.clone()), Evidence::Lock, process)));
        }
    }
    Ok(found)
}

/// `1: FLOCK  ADVISORY  WRITE 2550 fe:00:10184402 0 EOF`. Who only waits for a lock has an arrow in front of its kind.
fn parse(line: &str) -> Option<Held> {
    let mut words = line.split_ascii_whitespace();
    if words.nth(1)? != "FLOCK" || words.nth(1)? != "WRITE" {
        return None;
    }
    let pid = words.next()?.parse().ok()?;
    let mut place = words.next()?.splitn(3, ':');
    let mut hexadecimal = || u32::from_str_radix(place.next()?, 16).ok();
    let device = (hexadecimal()?, hexadecimal()?);
    Some(Held { pid, device, inode: place.next()?.parse().ok()? })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_lock_is_read_from_the_kernels_list_and_not_who_waits_for_it() {
        let held = parse("12: FLOCK  ADVISORY  WRITE 2550 fe:00:10184402 0 EOF").unwrap();
        assert_eq!(held, Held { pid: 2550, device: (0xfe, 0), inode: 10_184_402 });
        for line in [
            "12: -> FLOCK  ADVISORY  WRITE 2551 fe:00:10184402 0 EOF",
            "3: POSIX  ADVISORY  WRITE 2550 fe:00:10184402 0 EOF",
            "3: FLOCK  ADVISORY  READ 2550 fe:00:10184402 0 EOF",
            "3: FLOCK",
            "",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_lock_file_names_its_thread_only_while_somebody_holds_it() {
        let home = tempfile::tempdir().unwrap();
        let locks = home.path().join(".codex/thread-writer-locks");
        std::fs::create_dir_all(&locks).unwrap();
        let file = std::fs::File::create(locks.join("thread-1.lock")).unwrap();
        std::fs::write(locks.join("thread-2.lock"), "").unwrap();
        let path = home.path().to_string_lossy().into_owned();
        let variable = |name: &str| (name == "HOME").then(|| path.clone());
        assert_eq!(locked(&variable).unwrap(), []);
        file.lock().unwrap();
        let found = locked(&variable).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(found.iter().map(|h| (h.native_id.as_deref(), h.pid)).collect::<Vec<_>>(), [(Some("thread-1"), me)]);
        file.unlock().unwrap();
        assert_eq!(locked(&variable).unwrap(), []);
    }
}
