//! The kernel's list of locks: which process has an flock on a file. The list has device and inode, so the file is
//! looked up first and compared afterwards.

use crate::process::Identity;
use crate::process_table;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;

/// One lock that a process has on a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pid: i32,
    device: (u32, u32),
    inode: u64,
}

/// All locks.
pub fn now() -> io::Result<Vec<Held>> {
    Ok(std::fs::read_to_string("/proc/locks")?.lines().filter_map(parse).collect())
}

/// The processes of this user that have a lock on this file.
pub fn on(file: &Metadata, locks: &[Held]) -> io::Result<Vec<Identity>> {
    let device = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let mut found = Vec::new();
    for lock in locks.iter().filter(|lock| (lock.device, lock.inode) == (device, file.ino())) {
        found.extend(process_table::of_this_user(lock.pid)?);
    }
    Ok(found)
}

/// `1: FLOCK  ADVISORY  WRITE 2550 fe:00:10184402 0 EOF`. A process that only waits for a lock has an arrow before the
/// kind.
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
}
