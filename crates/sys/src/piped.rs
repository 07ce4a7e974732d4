//! What standard input is, and which processes can write to it.
//!
//! A program started by a CI runner, over ssh or by another agent often inherits a pipe that stays open and empty. To
//! the reader it looks like a slow pipeline. The difference is which process has the write end: in a pipeline it is a
//! process next to us, and for an inherited idle pipe only our parents.

use crate::process::is_self_or_ancestor;
use crate::process_table;
use rustix::fd::AsFd;
use rustix::fs::{FileType, fstat};
use std::io;

/// What standard input is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Closed, a terminal or another device, a folder: nothing is piped in.
    Nothing,
    File,
    /// A pipe or a socket: its end may come late.
    Stream,
}

/// What a descriptor is connected to. [`Source::Nothing`] if it is closed.
pub fn source(input: impl AsFd) -> Source {
    let Ok(stat) = fstat(input) else {
        return Source::Nothing;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Source::File,
        FileType::Fifo | FileType::Socket => Source::Stream,
        FileType::Directory
        | FileType::Symlink
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Source::Nothing,
    }
}

/// Whether only our parents can write to this pipe or socket. `false` also when the writer cannot be seen, for example
/// because it belongs to another user.
pub fn is_held_by_parents_only(input: impl AsFd) -> io::Result<bool> {
    let stat = fstat(input)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Socket {
        // Shells connect programs by pipes. A socket comes from the program that started us or our shell.
        return Ok(true);
    }
    let mut parent_writes = false;
    for pid in process_table::pids()? {
        if !writes_to(pid, (stat.st_dev, stat.st_ino)) {
            continue;
        }
        if pid != 1 && !is_self_or_ancestor(pid)? {
            return Ok(false);
        }
        parent_writes = true;
    }
    Ok(parent_writes)
}

/// Whether a process has this pipe open for writing.
fn writes_to(pid: i32, pipe: (u64, u64)) -> bool {
    process_table::opened(pid).any(|opened| opened.for_writing && opened.file() == Some(pipe))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_only_we_hold_is_told_from_one_that_a_child_writes_to() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert_eq!(source(&reader), Source::Stream);
        assert!(is_held_by_parents_only(&reader).unwrap(), "we hold it ourselves");
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(writer.try_clone().unwrap())
            .spawn()
            .unwrap();
        assert!(!is_held_by_parents_only(&reader).unwrap(), "cat can write to it");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(is_held_by_parents_only(&reader).unwrap(), "cat has ended");
        drop(writer);
    }

    #[test]
    fn devices_and_folders_are_nothing_that_is_piped_in() {
        for path in ["/dev/null", "/"] {
            assert_eq!(source(std::fs::File::open(path).unwrap()), Source::Nothing, "{path}");
        }
        assert_eq!(source(std::fs::File::open("/proc/self/exe").unwrap()), Source::File);
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(source(&one), Source::Stream);
        assert!(is_held_by_parents_only(&one).unwrap());
        drop(other);
    }
}
