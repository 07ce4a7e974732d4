//! The connection to the keeper of a terminal session: it says that something changed, and takes keys and the size of the
//! window. It breaks when the keeper dies, and is opened again to the next one under the same name.

use crate::error::{Error, Result};
use crate::notify::Told;
use crate::request::{look_and_record_to, reach};
use crate::settings::Engine;
use ostler_keeper::wire::{self, Call, Reply};
use ostler_store::home::Place;
use ostler_sys::ready::Interest;
use ostler_sys::socket::{self, PACKET, Packet};
use ostler_view::look::Depth;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::VecDeque;

/// Names a client to every keeper that it talks to.
#[derive(Debug)]
pub(super) struct Client {
    pub name: String,
    pub read_only: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    /// What there was no room for yet.
    unsent: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
}

/// What a keeper says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Changed {
        output_only: bool,
    },
    Keys {
        received: u64,
    },
    Told(Told),
    Nothing,
    /// The keeper is gone, or goes.
    Broken,
}

/// What came of sending something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is on its way, or will be.
    Yes,
    Broken,
}

impl Connection {
    /// Connects to the keeper of a session, and starts one where there is none. `None`: it has ended.
    pub fn open(
        engine: &Engine,
        place: &Place,
        client: &Client,
        (rows, columns): (u16, u16),
    ) -> Result<Option<Connection>> {
        let hello =
            wire::encode(&Call::Attach { client: client.name.clone(), rows, columns, read_only: client.read_only });
        loop {
            let Some(socket) = reach(engine, place)? else {
                if look_and_record_to(Depth::Awaited, place)?.ended {
                    return Ok(None);
                }
                return Err(Error::NoKeeper { id: place.id });
            };
            rustix::io::ioctl_fionbio(&socket, true).map_err(std::io::Error::from)?;
            let mut connection = Connection { socket, unsent: VecDeque::new(), buffer: vec![0; PACKET] };
            if connection.send(hello.clone())? == Sent::Yes {
                return Ok(Some(connection));
            }
        }
    }

    /// Sends something, now or as soon as there is room.
    pub fn send(&mut self, packet: Vec<u8>) -> Result<Sent> {
        self.unsent.push_back(packet);
        self.send_unsent()
    }

    /// Tells the program how large the window is.
    pub fn resize(&mut self, (rows, columns): (u16, u16)) -> Result<Sent> {
        self.send(wire::encode(&Call::Resize { rows, columns }))
    }

    /// Sends what could not be sent before.
    pub fn send_unsent(&mut self) -> Result<Sent> {
        while let Some(packet) = self.unsent.front() {
            match socket::transmit(&self.socket, packet)? {
                Packet::Done(_) => {
                    self.unsent.pop_front();
                }
                Packet::NotNow => break,
                Packet::HungUp => return Ok(Sent::Broken),
            }
        }
        Ok(Sent::Yes)
    }

    /// The next thing that was sent to us.
    pub fn receive(&mut self) -> Result<Received> {
        loop {
            let length = match socket::receive(&self.socket, &mut self.buffer)? {
                Packet::Done(length) => length,
                Packet::NotNow => return Ok(Received::Nothing),
                Packet::HungUp => return Ok(Received::Broken),
            };
            match serde_json::from_slice(&self.buffer[..length]) {
                Ok(Reply::Changed { output_only }) => return Ok(Received::Changed { output_only }),
                Ok(Reply::Keys { received }) => return Ok(Received::Keys { received }),
                Ok(Reply::Notify { title, text }) => return Ok(Received::Told(Told { title, text })),
                // It hangs up by itself, and its replacement is found when it has.
                Ok(Reply::Upgrading) => {}
                // Meant for others, or from a newer version.
                Ok(Reply::Request { .. } | Reply::Staying { .. } | Reply::HasSlot | Reply::Unknown) | Err(_) => {}
            }
        }
    }

    /// What to wait for.
    pub fn interest(&self) -> Interest<'_> {
        Interest { fd: self.socket.as_fd(), read: true, write: !self.unsent.is_empty() }
    }
}
