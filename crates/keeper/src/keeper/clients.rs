//! The connected clients.

use crate::wire::{self, Call, Incoming, Reply};
use ostler_sys::socket::{self, PACKET, Packet};
use rustix::fd::OwnedFd;
use std::io;

/// A client that shows the terminal.
#[derive(Clone, Debug)]
pub struct Attached {
    pub name: String,
    pub rows: u16,
    pub columns: u16,
    pub read_only: bool,
}

pub struct Client {
    pub socket: OwnedFd,
    watches: Watches,
    /// What changed, when the client could not be told yet.
    behind: Changes,
    pub attached: Option<Attached>,
}

/// What a client is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watches {
    Nothing,
    State,
    Everything,
}

/// What has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub output: bool,
    pub state: bool,
}

impl Changes {
    pub const ALL: Changes = Changes { output: true, state: true };

    /// What of it a client is to be told.
    fn told_to(self, watches: Watches) -> Changes {
        match watches {
            Watches::Nothing => Changes::default(),
            Watches::State => Changes { output: false, ..self },
            Watches::Everything => self,
        }
    }

    fn is_any(self) -> bool {
        self != Changes::default()
    }
}

/// Something a client wants of the keeper.
pub enum Wanted {
    Request { id: String },
    Keys { position: u64, keys: Vec<u8> },
    Window,
    Attached,
    Upgrade { binary: String },
}

#[derive(Default)]
pub struct Clients {
    list: Vec<Client>,
}

impl Clients {
    /// Lets everyone in who waits outside.
    pub fn welcome(&mut self, listener: &OwnedFd) -> io::Result<()> {
        while let Some(socket) = socket::accept(listener)? {
            self.list.push(Client { socket, watches: Watches::Nothing, behind: Changes::default(), attached: None });
        }
        Ok(())
    }

    pub fn list(&self) -> &[Client] {
        &self.list
    }

    pub fn get(&self, index: usize) -> Option<&Client> {
        self.list.get(index)
    }

    pub fn is_behind(client: &Client) -> bool {
        client.behind.is_any()
    }

    /// The next thing this client wants. `None`: nothing now. A client that hung up is gone after this.
    pub fn hear(&mut self, index: usize) -> io::Result<Option<Wanted>> {
        let mut buffer = vec![0; PACKET];
        loop {
            let Some(client) = self.list.get_mut(index) else {
                return Ok(None);
            };
            let length = match socket::receive(&client.socket, &mut buffer)? {
                Packet::Done(length) => length,
                Packet::NotNow => return Ok(None),
                Packet::HungUp => {
                    client.watches = Watches::Nothing;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            };
            match wire::parse(&buffer[..length]) {
                Incoming::Call(Call::Watch { state_only }) => {
                    client.watches = if state_only { Watches::State } else { Watches::Everything };
                    client.tell(Changes::ALL)?;
                }
                Incoming::Call(Call::Request { id }) => return Ok(Some(Wanted::Request { id })),
                Incoming::Call(Call::Attach { client: name, rows, columns, read_only }) => {
                    client.attached = Some(Attached { name, rows, columns, read_only });
                    client.watches = Watches::Everything;
                    client.tell(Changes::ALL)?;
                    return Ok(Some(Wanted::Attached));
                }
                Incoming::Call(Call::Resize { rows, columns }) => {
                    if let Some(attached) = &mut client.attached {
                        (attached.rows, attached.columns) = (rows, columns);
                        return Ok(Some(Wanted::Window));
                    }
                }
                Incoming::Call(Call::Upgrade { binary }) => return Ok(Some(Wanted::Upgrade { binary })),
                Incoming::Keys { position, keys } => {
                    return Ok(Some(Wanted::Keys { position, keys: keys.to_vec() }));
                }
                // From a newer client, or not from a client at all.
                Incoming::Call(Call::Unknown) | Incoming::Nonsense => {}
            }
        }
    }

    /// Answers one client. One that does not listen misses the answer and asks again.
    pub fn say(&self, index: usize, reply: &Reply) -> io::Result<()> {
        if let Some(client) = self.list.get(index) {
            socket::transmit(&client.socket, &wire::encode(reply))?;
        }
        Ok(())
    }

    /// Tells everyone who watches.
    pub fn tell(&mut self, changes: Changes) -> io::Result<()> {
        self.list.iter_mut().try_for_each(|client| client.tell(changes.told_to(client.watches)))
    }

    /// Tells a client that had no room to be told before.
    pub fn catch_up(&mut self, index: usize) -> io::Result<()> {
        match self.list.get_mut(index) {
            Some(client) => client.tell(client.behind),
            None => Ok(()),
        }
    }

    pub fn remove(&mut self, index: usize) -> Option<Client> {
        (index < self.list.len()).then(|| self.list.remove(index))
    }

    /// This client is the newest at the window now. Returns its new number.
    pub fn move_to_front(&mut self, index: usize) -> usize {
        if index < self.list.len() {
            let client = self.list.remove(index);
            self.list.push(client);
        }
        self.list.len().saturating_sub(1)
    }

    /// The window that counts: that of the newest client which may type.
    pub fn window(&self) -> Option<(u16, u16)> {
        let mut writers = self.list.iter().filter_map(|client| client.attached.as_ref()).filter(|who| !who.read_only);
        writers.next_back().map(|who| (who.rows, who.columns)).filter(|&(rows, columns)| rows > 0 && columns > 0)
    }
}

impl Client {
    fn tell(&mut self, changes: Changes) -> io::Result<()> {
        let changes =
            Changes { output: changes.output || self.behind.output, state: changes.state || self.behind.state };
        if changes.is_any() {
            let changed = wire::encode(&Reply::Changed { output_only: !changes.state });
            let has_no_room = socket::transmit(&self.socket, &changed)? == Packet::NotNow;
            self.behind = if has_no_room { changes } else { Changes::default() };
        }
        Ok(())
    }
}
