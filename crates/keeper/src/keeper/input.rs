//! What goes into the agent: appended to `in`, and moved from there by the kernel as fast as the agent reads.

use crate::handles::{self, Handles};
use ostler_store::StoreError;
use ostler_store::feed::Feed;
use ostler_sys::dir::position;
use ostler_sys::pipes::{Moved, shift, waiting};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::io;

pub struct Input {
    feed: Feed,
    /// Pieces that are not completely in the file yet, because the disk is full. Nothing may come between the parts of
    /// a piece.
    waiting: VecDeque<(String, Vec<u8>)>,
    /// How many bytes have been taken from the file, and how many of these are in the pipe before a terminal. Only the
    /// keeper moves these bytes, so the kernel is asked only once, for what a predecessor has left.
    taken: u64,
    between: u64,
    /// The agent reads more slowly than we could write.
    blocked: bool,
}

impl Input {
    pub fn new(feed: Feed, handles: &Handles) -> io::Result<Input> {
        let taken = handles.get(handles::IN).map(position).transpose()?.unwrap_or(0);
        let between = handles.get(handles::KEYS_READ).map(waiting).transpose()?.unwrap_or(0);
        Ok(Input { feed, waiting: VecDeque::new(), taken, between, blocked: false })
    }

    /// Puts a whole piece in. Doing it again under the same name, after any process has died, adds only what is
    /// missing.
    pub fn put(&mut self, from: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.waiting.push_back((from.to_owned(), bytes));
        self.put_waiting()
    }

    /// Continues with what did not fit.
    pub fn put_waiting(&mut self) -> Result<(), StoreError> {
        while let Some((from, bytes)) = self.waiting.front() {
            let have = usize::try_from(self.feed.received(from)).unwrap_or(usize::MAX);
            if let Some(rest) = bytes.get(have..) {
                self.feed.put(from, rest)?;
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Keys of a client, which begin at this position in everything that it has typed. Returns how many of its keys we
    /// have now.
    pub fn keys(&mut self, client: &str, place: u64, keys: &[u8]) -> Result<u64, StoreError> {
        let have = self.feed.received(client);
        if self.waiting.is_empty()
            && let Some(known) = have.checked_sub(place).and_then(|known| usize::try_from(known).ok())
            && let Some(rest) = keys.get(known..)
        {
            self.feed.put_typed(client, rest)?;
        }
        Ok(self.feed.received(client))
    }

    /// Where the input from this source ends, if there is any.
    pub fn end_of(&self, from: &str) -> Option<u64> {
        self.feed.end_of(from)
    }

    pub fn received(&self, client: &str) -> u64 {
        self.feed.received(client)
    }

    /// True when everything that was put in has been taken.
    pub fn is_taken(&self) -> bool {
        self.waiting.is_empty() && self.taken >= self.feed.size()
    }

    /// What to poll for room.
    pub fn sink<'a>(&self, handles: &'a Handles) -> Option<&'a OwnedFd> {
        if !self.blocked {
            return None;
        }
        handles.get(handles::STDIN_WRITE).or(handles.get(handles::PTY))
    }

    /// Moves as many bytes as there is room for.
    pub fn pump(&mut self, handles: &Handles) -> io::Result<()> {
        let Some(file) = handles.get(handles::IN) else {
            return Ok(());
        };
        if let Some(stdin) = handles.get(handles::STDIN_WRITE) {
            self.blocked = false;
            while self.taken < self.feed.size() && !self.blocked {
                match shift(file, stdin)? {
                    Moved::Some(count) => self.taken += count as u64,
                    Moved::NotNow => self.blocked = true,
                    Moved::End => break,
                }
            }
        } else if let (Some(pty), Some(write), Some(read)) =
            (handles.get(handles::PTY), handles.get(handles::KEYS_WRITE), handles.get(handles::KEYS_READ))
        {
            // Nothing more is put into the pipe before it is empty.
            while self.empty_pipe(read, pty)? && self.taken < self.feed.size() {
                let Moved::Some(count) = shift(file, write)? else {
                    break;
                };
                self.taken += count as u64;
                self.between += count as u64;
            }
        }
        Ok(())
    }

    /// Moves what is in the pipe to the terminal; false when the terminal has no room for all of it.
    fn empty_pipe(&mut self, pipe: &OwnedFd, terminal: &OwnedFd) -> io::Result<bool> {
        self.blocked = false;
        while self.between > 0 && !self.blocked {
            match shift(pipe, terminal)? {
                Moved::Some(count) => self.between = self.between.saturating_sub(count as u64),
                Moved::NotNow => self.blocked = true,
                Moved::End => self.between = 0,
            }
        }
        Ok(!self.blocked)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_sys::dir::Dir;
    use ostler_sys::pipes::Pipe;
    use ostler_sys::pty::Pty;
    use rustix::fs::OFlags;
    use std::fs::File;

    /// The input of a run in this folder, for an agent at a pipe or at a terminal.
    struct Fixture {
        dir: Dir,
        handles: Handles,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Fixture {
            let folder = tempfile::tempdir().unwrap();
            let dir = Dir::open(folder.path()).unwrap();
            let mut handles = Handles::default();
            handles.put(handles::IN, dir.file("in", OFlags::RDWR | OFlags::CREATE).unwrap());
            Fixture { dir, handles, _folder: folder }
        }

        /// The input as a keeper finds it, with what earlier keepers have left.
        fn input(&self) -> Input {
            let file = File::from(self.dir.file("in", OFlags::RDWR).unwrap());
            Input::new(Feed::open(&self.dir, file).unwrap(), &self.handles).unwrap()
        }
    }

    fn read(from: &OwnedFd) -> Vec<u8> {
        let mut bytes = vec![0; 256 * 1024];
        let length = rustix::io::read(from, &mut bytes).unwrap();
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn a_slow_reader_gets_everything_once_also_from_a_replacement_keeper() {
        let mut fixture = Fixture::new();
        let pipe = Pipe::blocking().unwrap();
        fixture.handles.put(handles::STDIN_WRITE, pipe.write);
        let text: Vec<u8> = (0..200_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut input = fixture.input();
        input.put("message-1", text.clone()).unwrap();
        input.pump(&fixture.handles).unwrap();
        assert!(!input.is_taken() && input.sink(&fixture.handles).is_some(), "the pipe is full");
        let mut arrived = Vec::new();
        while arrived.len() < text.len() {
            arrived.extend(read(&pipe.read));
            // The next keeper finds how far it got, and puts the message in again.
            input = fixture.input();
            input.put("message-1", text.clone()).unwrap();
            input.pump(&fixture.handles).unwrap();
        }
        assert!(arrived == text && input.is_taken() && input.sink(&fixture.handles).is_none());
    }

    #[test]
    fn keys_reach_a_terminal_once_also_from_the_pipe_that_a_dead_keeper_left() {
        let mut fixture = Fixture::new();
        let (pty, pipe) = (Pty::open(24, 80).unwrap(), Pipe::blocking().unwrap());
        rustix::io::write(&pipe.write, b"be").unwrap();
        for (name, handle) in
            [(handles::PTY, pty.ours), (handles::KEYS_WRITE, pipe.write), (handles::KEYS_READ, pipe.read)]
        {
            fixture.handles.put(name, handle);
        }
        let mut input = fixture.input();
        assert_eq!(input.keys("client", 0, b"for").unwrap(), 3);
        // Sent again from an older position, as after a reconnection.
        assert_eq!(input.keys("client", 1, b"ore\n").unwrap(), 5);
        input.pump(&fixture.handles).unwrap();
        assert!(input.is_taken());
        assert_eq!(read(&pty.theirs), b"before\n");
    }
}
