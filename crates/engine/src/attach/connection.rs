//! The connection to the keeper of a terminal session. The keeper reports changes over it, and receives keys and the
//! size of the window. When the keeper dies, the connection breaks, and is opened again to the next keeper under the
//! same client name.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::notify::Told;
use crate::request::{look_and_record_to, reach};
use ostler_keeper::wire::{self, Call, Reply};
use ostler_store::home::Place;
use ostler_sys::ready::Interest;
use ostler_sys::socket::{self, PACKET, Packet};
use ostler_view::look::Depth;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::VecDeque;

/// How a client identifies itself to every keeper that it connects to.
#[derive(Debug)]
pub(super) struct Client {
    pub name: String,
    pub read_only: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    /// Packets for which the socket had no room yet.
    unsent: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
}

/// What a keeper sends.
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
    /// The keeper has closed the connection: it has exited or is exiting.
    Broken,
}

/// The result of sending something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It was sent, or will be sent as soon as there is room.
    Yes,
    Broken,
}

impl Connection {
    /// Connects to the keeper of a session, and starts one where there is none. `None`: the session has ended.
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

    /// Sends a packet, now or as soon as there is room.
    pub fn send(&mut self, packet: Vec<u8>) -> Result<Sent> {
        self.unsent.push_back(packet);
        self.send_unsent()
    }

    /// Sends the new size of the window.
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

    /// What the keeper has sent next.
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
                // The keeper closes the connection itself; its replacement is found after that.
                Ok(Reply::Upgrading) => {}
                // Replies to other kinds of calls, or from a newer version.
                Ok(Reply::Request { .. } | Reply::Staying { .. } | Reply::HasSlot | Reply::Unknown) | Err(_) => {}
            }
        }
    }

    /// What to wait for.
    pub fn interest(&self) -> Interest<'_> {
        Interest { fd: self.socket.as_fd(), read: true, write: !self.unsent.is_empty() }
    }
}
