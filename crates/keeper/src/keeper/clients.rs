//! The connected clients.

use crate::wire::{self, Call, Incoming, Reply};
use ostler_sys::socket::{self, PACKET, Packet};
use rustix::fd::OwnedFd;
use std::io;

/// How long a client may wait to be told that its keys have arrived, while nothing is drawn. The client sends more keys
/// when it knows.
const UNTOLD_MS: u64 = 2;

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
    /// How many of its keys we have, when it has not been told yet.
    received: Option<Untold>,
    pub attached: Option<Attached>,
    /// It shows the session to a person without being attached to its terminal.
    attended: bool,
}

struct Untold {
    received: u64,
    by_ms: u64,
}

/// What a client is told about.
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

    /// The part of it that a client is to be told.
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

/// A request of a client to the keeper.
pub enum Wanted {
    Request {
        id: String,
    },
    Keys {
        position: u64,
        keys: Vec<u8>,
    },
    Window,
    Attached,
    Upgrade {
        binary: String,
    },
    /// The program that had to wait runs, with this slot.
    Begun {
        slot: Option<OwnedFd>,
    },
}

#[derive(Default)]
pub struct Clients {
    list: Vec<Client>,
    /// What the clients have not been told yet.
    changes: Changes,
    /// The buffer into which a packet is received.
    buffer: Vec<u8>,
}

impl Clients {
    /// Accepts every connection that waits.
    pub fn welcome(&mut self, listener: &OwnedFd) -> io::Result<()> {
        while let Some(socket) = socket::accept(listener)? {
            let (watches, behind) = (Watches::Nothing, Changes::default());
            self.list.push(Client { socket, watches, behind, received: None, attached: None, attended: false });
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

    /// The next request of this client. `None`: nothing now. An error means that the client hung up or its connection
    /// failed.
    pub fn hear(&mut self, index: usize) -> io::Result<Option<Wanted>> {
        self.buffer.resize(PACKET, 0);
        loop {
            let Some(client) = self.list.get_mut(index) else {
                return Ok(None);
            };
            let (packet, file) = socket::receive_with_file(&client.socket, &mut self.buffer)?;
            let length = match packet {
                Packet::Done(length) => length,
                Packet::NotNow => return Ok(None),
                Packet::HungUp => {
                    client.watches = Watches::Nothing;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            };
            match wire::parse(&self.buffer[..length]) {
                Incoming::Call(Call::Watch { state_only, attended }) => {
                    client.attended = attended;
                    client.watches = if state_only { Watches::State } else { Watches::Everything };
                    client.tell(Changes::ALL, 0)?;
                }
                Incoming::Call(Call::Request { id }) => return Ok(Some(Wanted::Request { id })),
                Incoming::Call(Call::Attach { client: name, rows, columns, read_only }) => {
                    client.attached = Some(Attached { name, rows, columns, read_only });
                    client.watches = Watches::Everything;
                    client.tell(Changes::ALL, 0)?;
                    return Ok(Some(Wanted::Attached));
                }
                Incoming::Call(Call::Resize { rows, columns }) => {
                    if let Some(attached) = &mut client.attached {
                        (attached.rows, attached.columns) = (rows, columns);
                        return Ok(Some(Wanted::Window));
                    }
                }
                Incoming::Call(Call::Begun) => return Ok(Some(Wanted::Begun { slot: file })),
                Incoming::Call(Call::Upgrade { binary }) => return Ok(Some(Wanted::Upgrade { binary })),
                Incoming::Keys { position, keys } => {
                    return Ok(Some(Wanted::Keys { position, keys: keys.to_vec() }));
                }
                // From a newer client, or not from a client at all.
                Incoming::Call(Call::Unknown) | Incoming::Nonsense => {}
            }
        }
    }

    /// Answers one client. A client that does not read misses the answer and asks again.
    pub fn say(&self, index: usize, reply: &Reply) -> io::Result<()> {
        if let Some(client) = self.list.get(index) {
            socket::transmit(&client.socket, &wire::encode(reply))?;
        }
        Ok(())
    }

    /// This many keys of this client have arrived. The client is told together with what the keys draw, or soon after:
    /// each packet would wake it, and it has to be woken for the echo anyway.
    pub fn acknowledge(&mut self, index: usize, received: u64, now_ms: u64) {
        if let Some(client) = self.list.get_mut(index) {
            let by_ms = client.received.as_ref().map_or(now_ms + UNTOLD_MS, |untold| untold.by_ms);
            client.received = Some(Untold { received, by_ms });
        }
    }

    /// The latest time at which some client is to be told that its keys have arrived.
    pub fn due_ms(&self) -> Option<u64> {
        self.list.iter().filter_map(|client| client.received.as_ref()).map(|untold| untold.by_ms).min()
    }

    /// There is more output.
    pub fn output_changed(&mut self) {
        self.changes.output = true;
    }

    /// Something else has changed that a look at the session would show.
    pub fn state_changed(&mut self) {
        self.changes.state = true;
    }

    /// Tells every watching client what has changed since the last time.
    pub fn tell(&mut self, now_ms: u64) -> io::Result<()> {
        let changes = std::mem::take(&mut self.changes);
        self.list.iter_mut().try_for_each(|client| client.tell(changes.told_to(client.watches), now_ms))
    }

    /// Tells a client whose socket had no room before.
    pub fn catch_up(&mut self, index: usize) -> io::Result<()> {
        match self.list.get_mut(index) {
            Some(client) => client.tell(client.behind, 0),
            None => Ok(()),
        }
    }

    pub fn remove(&mut self, index: usize) -> Option<Client> {
        (index < self.list.len()).then(|| self.list.remove(index))
    }

    /// This client is now the newest one attached. Returns its new index.
    pub fn move_to_front(&mut self, index: usize) -> usize {
        if index < self.list.len() {
            let client = self.list.remove(index);
            self.list.push(client);
        }
        self.list.len().saturating_sub(1)
    }

    /// Whether a person is looking at the session.
    pub fn are_attached(&self) -> bool {
        self.list.iter().any(Client::is_attached)
    }

    /// Tells the clients through which a person looks at the session. A client without room for the packet misses it:
    /// its user sees the session anyway.
    pub fn notify(&self, title: String, text: String) {
        let notify = wire::encode(&Reply::Notify { title, text });
        for client in self.list.iter().filter(|client| client.is_attached()) {
            let _ = socket::transmit(&client.socket, &notify);
        }
    }

    /// The window that counts: that of the newest client which may type.
    pub fn window(&self) -> Option<(u16, u16)> {
        let mut writers = self.list.iter().filter_map(|client| client.attached.as_ref()).filter(|who| !who.read_only);
        writers.next_back().map(|who| (who.rows, who.columns)).filter(|&(rows, columns)| rows > 0 && columns > 0)
    }
}

impl Client {
    fn is_attached(&self) -> bool {
        self.attended || self.attached.is_some()
    }

    /// A client that is told of its keys also looks for output, even if no output has come. So one packet tells both.
    fn tell(&mut self, changes: Changes, now_ms: u64) -> io::Result<()> {
        let mut changes =
            Changes { output: changes.output || self.behind.output, state: changes.state || self.behind.state };
        if let Some(Untold { received, .. }) = self.received.take_if(|untold| changes.output || untold.by_ms <= now_ms)
        {
            // A client that misses the answer asks again.
            let told = socket::transmit(&self.socket, &wire::encode(&Reply::Keys { received }))?;
            changes.output &= told == Packet::NotNow;
        }
        if changes.is_any() {
            let changed = wire::encode(&Reply::Changed { output_only: !changes.state });
            let has_no_room = socket::transmit(&self.socket, &changed)? == Packet::NotNow;
            self.behind = if has_no_room { changes } else { Changes::default() };
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const NOW: u64 = 1000;

    /// The keeper's clients, of which there is one, and the client's end of the connection.
    fn one_client() -> (Clients, OwnedFd) {
        let (socket, theirs) = socket::pair().unwrap();
        let (watches, behind) = (Watches::Nothing, Changes::default());
        let client = Client { socket, watches, behind, received: None, attached: None, attended: false };
        (Clients { list: vec![client], ..Clients::default() }, theirs)
    }

    fn received(socket: &OwnedFd) -> Vec<Reply> {
        let mut buffer = vec![0; PACKET];
        let mut replies = Vec::new();
        while let Packet::Done(length) = socket::receive(socket, &mut buffer).unwrap() {
            replies.push(serde_json::from_slice(&buffer[..length]).unwrap());
        }
        replies
    }

    fn attach(clients: &mut Clients, socket: &OwnedFd) {
        let hello = Call::Attach { client: "me".to_owned(), rows: 24, columns: 80, read_only: false };
        socket::transmit(socket, &wire::encode(&hello)).unwrap();
        assert!(matches!(clients.hear(0).unwrap(), Some(Wanted::Attached)));
        assert_eq!(received(socket), [Reply::Changed { output_only: false }]);
    }

    fn draw(clients: &mut Clients) {
        clients.output_changed();
        clients.tell(NOW).unwrap();
    }

    #[test]
    fn a_key_and_its_echo_are_told_in_one_packet() {
        let (mut clients, theirs) = one_client();
        attach(&mut clients, &theirs);
        socket::transmit(&theirs, &wire::keys(0, b"k")).unwrap();
        assert!(matches!(clients.hear(0).unwrap(), Some(Wanted::Keys { position: 0, keys }) if keys == b"k"));
        clients.acknowledge(0, 1, NOW);
        draw(&mut clients);
        assert_eq!(received(&theirs), [Reply::Keys { received: 1 }]);
        // Later output is told in a packet of its own, and so is a change of the state.
        draw(&mut clients);
        clients.acknowledge(0, 2, NOW);
        clients.state_changed();
        draw(&mut clients);
        let state = Reply::Changed { output_only: false };
        assert_eq!(received(&theirs), [Reply::Changed { output_only: true }, Reply::Keys { received: 2 }, state]);
    }

    #[test]
    fn keys_that_draw_nothing_are_acknowledged_soon() {
        let (mut clients, theirs) = one_client();
        attach(&mut clients, &theirs);
        clients.acknowledge(0, 1, NOW);
        clients.tell(NOW).unwrap();
        assert_eq!(received(&theirs), []);
        let due = clients.due_ms().unwrap();
        // More keys do not postpone it.
        clients.acknowledge(0, 2, due);
        assert_eq!(clients.due_ms(), Some(due));
        clients.tell(due).unwrap();
        assert_eq!(received(&theirs), [Reply::Keys { received: 2 }]);
        assert_eq!(clients.due_ms(), None);
    }

    #[test]
    fn a_client_that_does_not_read_is_told_when_it_does() {
        let (mut clients, theirs) = one_client();
        attach(&mut clients, &theirs);
        while !Clients::is_behind(&clients.list()[0]) {
            draw(&mut clients);
        }
        // Its keys are not acknowledged, and that there is output is not forgotten.
        clients.acknowledge(0, 1, NOW);
        draw(&mut clients);
        assert!(received(&theirs).iter().all(|reply| *reply == Reply::Changed { output_only: true }));
        clients.catch_up(0).unwrap();
        assert_eq!(received(&theirs), [Reply::Changed { output_only: true }]);
        assert!(!Clients::is_behind(&clients.list()[0]));
    }
}
