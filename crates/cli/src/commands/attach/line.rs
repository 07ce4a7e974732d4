//! The line to the keeper, from which we hear that something changed and to which we give keys and our window's size. It
//! breaks when the keeper dies and is opened again to the next one, under the same name.

use crate::exit::{Failure, Result};
use ostler_engine::request::look_and_record_to;
use ostler_keeper::launch;
use ostler_keeper::launcher::Launcher;
use ostler_keeper::wire::{self, Call, Reply};
use ostler_store::home::Place;
use ostler_sys::socket::{self, PACKET, Packet};
use ostler_view::look::Depth;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::VecDeque;

/// Names us to every keeper that we talk to.
pub struct Caller {
    pub name: String,
    pub read_only: bool,
}

pub struct Line {
    socket: OwnedFd,
    /// What there was no room for yet.
    unsent: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
}

/// What a keeper says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Changed,
    Keys {
        received: u64,
    },
    Nothing,
    /// The keeper is gone, or goes.
    Broken,
}

impl Line {
    /// Reaches whoever keeps the session, and has somebody keep it where nobody does. `None`: it has ended.
    pub fn open(place: &Place, caller: &Caller, (rows, columns): (u16, u16)) -> Result<Option<Line>> {
        let hello =
            wire::encode(&Call::Attach { client: caller.name.clone(), rows, columns, read_only: caller.read_only });
        loop {
            let Some(socket) = launch::reach(place, &Launcher::ThisProgram)? else {
                if look_and_record_to(Depth::Awaited, place)?.ended {
                    return Ok(None);
                }
                return Err(Failure::ours(format!(
                    "{} has no keeper, and none can be started; see ostler doctor",
                    place.id
                )));
            };
            rustix::io::ioctl_fionbio(&socket, true).map_err(std::io::Error::from)?;
            let mut line = Line { socket, unsent: VecDeque::new(), buffer: vec![0; PACKET] };
            if line.say(hello.clone())? == Said::Yes {
                return Ok(Some(line));
            }
        }
    }

    /// Says something, now or as soon as there is room.
    pub fn say(&mut self, packet: Vec<u8>) -> Result<Said> {
        self.unsent.push_back(packet);
        self.say_unsent()
    }

    pub fn resize(&mut self, (rows, columns): (u16, u16)) -> Result<Said> {
        self.say(wire::encode(&Call::Resize { rows, columns }))
    }

    pub fn say_unsent(&mut self) -> Result<Said> {
        while let Some(packet) = self.unsent.front() {
            match socket::transmit(&self.socket, packet)? {
                Packet::Done(_) => {
                    self.unsent.pop_front();
                }
                Packet::NotNow => break,
                Packet::HungUp => return Ok(Said::Broken),
            }
        }
        Ok(Said::Yes)
    }

    /// The next thing that was said to us.
    pub fn hear(&mut self) -> Result<Heard> {
        loop {
            let length = match socket::receive(&self.socket, &mut self.buffer)? {
                Packet::Done(length) => length,
                Packet::NotNow => return Ok(Heard::Nothing),
                Packet::HungUp => return Ok(Heard::Broken),
            };
            match serde_json::from_slice(&self.buffer[..length]) {
                Ok(Reply::Changed { .. }) => return Ok(Heard::Changed),
                Ok(Reply::Keys { received }) => return Ok(Heard::Keys { received }),
                // It hangs up by itself, and its replacement is found when it has.
                Ok(Reply::Upgrading) => {}
                // Meant for others, or from a newer version.
                Ok(Reply::Request { .. } | Reply::Staying { .. } | Reply::Unknown) | Err(_) => {}
            }
        }
    }

    /// What to poll, and for what.
    pub fn watched(&self) -> (BorrowedFd<'_>, PollFlags) {
        let room = if self.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        (self.socket.as_fd(), PollFlags::IN | room)
    }
}

/// What came of saying something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is on its way, or will be.
    Yes,
    Broken,
}
