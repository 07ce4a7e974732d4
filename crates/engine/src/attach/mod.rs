//! Shows a terminal session in another terminal: first its screen, then every byte as it comes. Keys go the other way.
//!
//! Output is read from the session's files and keys are acknowledged by their position, so when a keeper dies and is
//! replaced, no byte or key is lost or repeated.
//!
//! * `output`: what is to be shown.
//! * `keys`: keys that the keeper has not acknowledged yet.
//! * `connection`: the socket to the keeper.

mod connection;
mod keys;
mod output;

use crate::engine::Engine;
use crate::error::Result;
use crate::notify::Told;
use connection::{Client, Connection, Received, Sent};
use keys::Keys;
use ostler_screen::Screen;
use ostler_store::home::Place;
use ostler_sys::ready::Interest;
use output::Output;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long to wait after connecting until the keeper has set the program's window to our size. After that the screen
/// is drawn without waiting longer.
const WINDOW_TIMEOUT: Duration = Duration::from_millis(500);

/// Rows and columns of a window, as far as they are known.
pub type Window = Option<(u16, u16)>;

/// How to attach.
#[derive(Clone, Debug, Default)]
pub struct Attach {
    /// The window in which the session is shown.
    pub window: Window,
    /// Keys and the size of the window are not passed on.
    pub read_only: bool,
    /// A line that is shown before the session, so that a person who scrolls up finds it.
    pub greeting: String,
}

/// A terminal session that is shown. A face waits until [`Attached::interest`] is ready or [`Attached::due`] has come,
/// calls [`Attached::advance`], and shows [`Attached::next_bytes`] until that is empty. Dropping it detaches.
#[derive(Debug)]
pub struct Attached<'a> {
    engine: &'a Engine,
    place: Place,
    client: Client,
    window: Window,
    /// `None`: the session has ended.
    connection: Option<Connection>,
    output: Output,
    drawing: Drawing,
    keys: Keys,
    greeting: String,
    told: VecDeque<Told>,
}

/// Whether the screen was drawn.
#[derive(Debug)]
enum Drawing {
    /// Not yet: the keeper is setting the program's window to our size, so that the first drawing already fits it.
    WaitsForWindow {
        until: Instant,
    },
    Drawn,
}

impl Engine {
    /// Attaches to a terminal session. When it has no keeper, one is started.
    pub fn attach(&self, place: &Place, attach: Attach) -> Result<Attached<'_>> {
        let folder = place.open()?;
        let client = Client { name: uuid::Uuid::new_v4().to_string(), read_only: attach.read_only };
        let connection = Connection::open(self, place, &client, attach.window.unwrap_or((0, 0)))?;
        Ok(Attached {
            engine: self,
            place: place.clone(),
            client,
            window: attach.window,
            connection,
            output: Output::new(folder.run(folder.newest_run()?)?)?,
            drawing: Drawing::WaitsForWindow { until: Instant::now() + WINDOW_TIMEOUT },
            keys: Keys::default(),
            greeting: attach.greeting,
            told: VecDeque::new(),
        })
    }
}

impl Attached<'_> {
    /// The descriptor to wait for, and for which events. `None`: the session has ended, and only the rest of its output
    /// follows.
    #[must_use]
    pub fn interest(&self) -> Option<Interest<'_>> {
        self.connection.as_ref().map(Connection::interest)
    }

    /// When to call [`Attached::advance`] even if nothing is ready.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let drawing = match self.drawing {
            Drawing::WaitsForWindow { until } => Some(until),
            Drawing::Drawn => None,
        };
        let again = self.connection.as_ref().and_then(|_| self.keys.due());
        drawing.into_iter().chain(again).min()
    }

    /// Whether the session has ended. The rest of its output can still be read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.connection.is_none()
    }

    /// Receives what the keeper has sent, and sends keys that it has not acknowledged.
    pub fn advance(&mut self) -> Result<()> {
        self.receive()?;
        self.send_keys()
    }

    /// The next bytes for the terminal that shows the session; empty when everything has been shown. A call may return
    /// a part of an escape sequence, so the terminal has to get the bytes of all calls, in order.
    pub fn next_bytes(&mut self) -> Result<&[u8]> {
        match self.drawing {
            Drawing::WaitsForWindow { until } if self.connection.is_some() && Instant::now() < until => return Ok(&[]),
            Drawing::WaitsForWindow { .. } => self.draw_first()?,
            Drawing::Drawn => {}
        }
        self.output.next(self.window)
    }

    /// Whether more bytes may be available immediately.
    #[must_use]
    pub fn has_more_bytes(&self) -> bool {
        self.output.has_more()
    }

    /// The next notification for the user; each is returned once. It is shown between two parts of the output.
    pub fn next_told(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Types keys. They are sent now, or as soon as the keeper has acknowledged the keys before them.
    pub fn type_keys(&mut self, keys: &[u8]) -> Result<()> {
        if self.client.read_only {
            return Ok(());
        }
        self.keys.push(keys);
        self.send_keys()
    }

    /// Whether the session has all the keys that were typed.
    #[must_use]
    pub fn has_all_keys(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether so many keys wait that no more should be read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.keys.is_full()
    }

    /// Sets the size of the window in which the session is shown. The program's window gets the same size.
    pub fn resize(&mut self, window: Window) -> Result<()> {
        let same = std::mem::replace(&mut self.window, window) == window;
        if self.client.read_only || same {
            return Ok(());
        }
        if let (Some(connection), Some(size)) = (&mut self.connection, window)
            && connection.resize(size)? == Sent::Broken
        {
            self.reconnect()?;
        }
        Ok(())
    }

    /// Makes the next bytes draw the whole screen again, for a terminal that shows something else.
    pub fn redraw(&mut self) -> Result<()> {
        self.output.draw(self.window)
    }

    /// Bytes that reset a terminal to the state that a shell expects, with the cursor below what was shown.
    #[must_use]
    pub fn reset(&self) -> Vec<u8> {
        let mut bytes = Screen::reset().to_vec();
        match self.output.last_row() {
            Some(0) => bytes.extend_from_slice(b"\x1b[H"),
            Some(row) => bytes.extend_from_slice(format!("\x1b[{row};1H\r\n").as_bytes()),
            // The emulator does not know what the terminal shows after the reset, so the cursor stays at the bottom.
            None => bytes.extend_from_slice(b"\r\n"),
        }
        bytes
    }

    fn draw_first(&mut self) -> Result<()> {
        self.drawing = Drawing::Drawn;
        self.output.draw_first(self.window, &self.greeting)
    }

    fn send_keys(&mut self) -> Result<()> {
        while let Some(connection) = &mut self.connection
            && let Some(packet) = self.keys.packet(Instant::now())
            && connection.send(packet)? == Sent::Broken
        {
            self.reconnect()?;
        }
        Ok(())
    }

    /// Receives one packet. What it reports is shown before the next packet is received; until then the socket stays
    /// readable.
    fn receive(&mut self) -> Result<()> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        if connection.send_unsent()? == Sent::Broken {
            return self.reconnect();
        }
        match connection.receive()? {
            Received::Nothing => {}
            Received::Told(told) => self.told.push_back(told),
            Received::Keys { received } => {
                self.keys.acknowledge(received);
                self.output.look_again();
                // The keeper sends this when it has set the program's window to our size.
                if matches!(self.drawing, Drawing::WaitsForWindow { .. }) {
                    self.draw_first()?;
                }
            }
            Received::Changed { output_only } => {
                self.output.look_again();
                // The session may have ended.
                if !output_only && self.output.run().outcome()?.is_some() {
                    self.connection = None;
                }
            }
            Received::Broken => return self.reconnect(),
        }
        Ok(())
    }

    /// Connects to the replacement of a keeper that has exited, so that keys that the previous one may not have
    /// received are sent again.
    fn reconnect(&mut self) -> Result<()> {
        self.connection = match self.output.run().outcome()? {
            Some(_) => None,
            None => {
                let window = self.window.unwrap_or((0, 0));
                Connection::open(self.engine, &self.place, &self.client, window)?
            }
        };
        self.keys.start_again();
        self.output.look_again();
        Ok(())
    }
}
