//! What goes into the agent: appended to `in`, and moved on from there by the kernel at the pace at which the agent reads.

use crate::handles::{self, Handles};
use ostler_store::StoreError;
use ostler_store::feed::Feed;
use ostler_sys::dir::position;
use ostler_sys::pipes::{Moved, shift};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::io;

pub struct Input {
    feed: Feed,
    /// Pieces that are not wholly in the file yet, because the disk is full. Nothing may come between their halves.
    waiting: VecDeque<(String, Vec<u8>)>,
    /// The agent does not read as fast as we could give.
    pub blocked: bool,
}

impl Input {
    pub fn new(feed: Feed) -> Input {
        Input { feed, waiting: VecDeque::new(), blocked: false }
    }

    /// Puts a whole piece in. Doing it again under the same name, after whatever death, adds only what is missing.
    pub fn put(&mut self, from: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.waiting.push_back((from.to_owned(), bytes));
        self.put_waiting()
    }

    /// Goes on with what did not fit.
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

    /// Keys of a client, which begin at this place of all it has typed. Returns how many of them we have now.
    pub fn keys(&mut self, client: &str, place: u64, keys: &[u8]) -> Result<u64, StoreError> {
        let have = self.feed.received(client);
        if self.waiting.is_empty()
            && let Some(known) = have.checked_sub(place).and_then(|known| usize::try_from(known).ok())
            && let Some(rest) = keys.get(known..)
        {
            self.feed.put(client, rest)?;
        }
        Ok(self.feed.received(client))
    }

    /// Where what this source has put in ends, if it has.
    pub fn end_of(&self, from: &str) -> Option<u64> {
        self.feed.end_of(from)
    }

    pub fn received(&self, client: &str) -> u64 {
        self.feed.received(client)
    }

    /// True when everything that was put in has been taken.
    pub fn is_taken(&self, handles: &Handles) -> io::Result<bool> {
        let taken = handles.get(handles::IN).map(position).transpose()?.unwrap_or(0);
        Ok(self.waiting.is_empty() && taken >= self.feed.size())
    }

    /// What to poll for room.
    pub fn sink<'a>(&self, handles: &'a Handles) -> Option<&'a OwnedFd> {
        if !self.blocked {
            return None;
        }
        handles.get(handles::STDIN_WRITE).or(handles.get(handles::PTY))
    }

    /// Moves on what there is room for.
    pub fn pump(&mut self, handles: &Handles) -> io::Result<()> {
        let Some(file) = handles.get(handles::IN) else {
            return Ok(());
        };
        if let Some(stdin) = handles.get(handles::STDIN_WRITE) {
            self.blocked = self.flow(|| shift(file, stdin))?;
        } else if let (Some(pty), Some(write), Some(read)) =
            (handles.get(handles::PTY), handles.get(handles::KEYS_WRITE), handles.get(handles::KEYS_READ))
        {
            loop {
                let terminal_full = self.flow(|| shift(read, pty))? && ostler_sys::pipes::waiting(read)? > 0;
                self.blocked = terminal_full;
                // Into the pipe only what will leave it again.
                if terminal_full || !matches!(shift(file, write)?, Moved::Some(_)) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Moves until nothing more can be; true when that is for want of room.
    fn flow(&self, mut step: impl FnMut() -> io::Result<Moved>) -> io::Result<bool> {
        loop {
            match step()? {
                Moved::Some(_) => {}
                Moved::NotNow => return Ok(true),
                Moved::End => return Ok(false),
            }
        }
    }
}
