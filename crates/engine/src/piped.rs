//! What is piped into a face: a prompt's continuation, or the input of a command.
//!
//! A pipe that was only inherited (from a CI runner, over ssh, inside an agent's tool) may stay open and empty for
//! ever. So after a few seconds of silence ostler checks which processes hold its other end.

use ostler_sys::piped::is_held_by_parents_only;
pub use ostler_sys::piped::{Source, source};
use ostler_sys::ready::{Interest, wait};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

/// How long a pipe may be silent before ostler checks which processes could write to it.
pub const SILENCE: Duration = Duration::from_secs(3);

/// What was found out about a pipe that is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silent {
    /// Only our parents can write to it, and nothing came: it counts as empty.
    LeftOut,
    /// Something may still come, and it is waited for.
    Awaited,
}

/// Reads a pipe or a socket to its end, or until more than `limit` bytes were read. `silent` is called once when
/// nothing comes for [`SILENCE`].
pub fn read_to_end(input: BorrowedFd<'_>, limit: usize, silent: &mut dyn FnMut(Silent)) -> io::Result<Vec<u8>> {
    let mut file = File::from(input.try_clone_to_owned()?);
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let mut patience = Some(SILENCE);
    while bytes.len() <= limit {
        let until = patience.map(|patience| Instant::now() + patience);
        if !wait(&[Interest::read(input)], until)?[0] {
            if until.is_none_or(|until| Instant::now() < until) {
                continue;
            }
            patience = None;
            if bytes.is_empty() && is_held_by_parents_only(input)? {
                silent(Silent::LeftOut);
                return Ok(bytes);
            }
            silent(Silent::Awaited);
            continue;
        }
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// What is piped in, for a command that reads on after the face has exited. `None`: a terminal or another device, or
/// nothing.
pub fn for_command(input: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let Ok(input) = input.try_clone_to_owned() else {
        // Started without a standard input.
        return Ok(None);
    };
    let file = File::from(input);
    let kind = file.metadata()?.file_type();
    Ok((!kind.is_char_device()).then(|| file.into()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_is_read_to_its_end_or_just_behind_the_limit() {
        let read = |limit| {
            let (reader, mut writer) = std::io::pipe().unwrap();
            writer.write_all(b"one two").unwrap();
            drop(writer);
            read_to_end(reader.as_fd(), limit, &mut |_| {}).unwrap()
        };
        assert_eq!(read(100), b"one two");
        assert!(read(3).len() > 3);
    }

    #[test]
    fn a_device_is_nothing_that_is_piped_in() {
        let null = File::open("/dev/null").unwrap();
        assert!(for_command(null.as_fd()).unwrap().is_none());
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(for_command(reader.as_fd()).unwrap().is_some());
    }
}
