//! What holder and keeper send each other: one letter per packet. An unknown letter is ignored, so either side may be
//! newer. Nothing depends on a packet arriving: whatever a packet says can also be found in the files.

use ostler_sys::socket::{self, Packet};
use rustix::fd::{AsFd, OwnedFd};
use std::io;

/// From keeper to holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Close the agent's input.
    CloseInput,
    /// Everything is recorded: exit.
    Finish,
    /// Start keepers from the binary that comes with this packet.
    UseBinary,
    /// Start the newest run, which has no process yet. With this packet comes one side of a pipe, for [`carried_out`].
    StartRun,
    /// Keep the socket that comes with this packet: clients can no longer find the earlier one.
    UseListener,
    /// Keep the writer's lock that comes with this packet: the conversation is known now, or has changed.
    UseWriter,
    /// Keep the slot of a queue that comes with this packet.
    UseSlot,
}

/// From holder to keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// exit.json is written.
    Exited,
    /// A process that the agent left behind has ended.
    Reaped,
    /// The holder has received SIGTERM, because the machine or this session is to end.
    Terminated,
}

impl Order {
    fn letter(self) -> u8 {
        match self {
            Order::CloseInput => b'c',
            Order::Finish => b'f',
            Order::UseBinary => b'b',
            Order::StartRun => b's',
            Order::UseListener => b'd',
            Order::UseWriter => b'w',
            Order::UseSlot => b'q',
        }
    }

    fn of(letter: u8) -> Option<Order> {
        [
            Order::CloseInput,
            Order::Finish,
            Order::UseBinary,
            Order::StartRun,
            Order::UseListener,
            Order::UseWriter,
            Order::UseSlot,
        ]
        .into_iter()
        .find(|order| order.letter() == letter)
    }
}

impl News {
    fn letter(self) -> u8 {
        match self {
            News::Exited => b'e',
            News::Reaped => b'r',
            News::Terminated => b't',
        }
    }

    fn of(letter: u8) -> Option<News> {
        [News::Exited, News::Reaped, News::Terminated].into_iter().find(|news| news.letter() == letter)
    }
}

pub fn order(line: impl AsFd, order: Order) -> io::Result<Packet> {
    socket::transmit(line, &[order.letter()])
}

pub fn order_with_file(line: impl AsFd, order: Order, file: impl AsFd) -> io::Result<()> {
    socket::transmit_with_file(line, &[order.letter()], file)
}

/// The next order. The outer `None` means that no order waits, the inner `None` that the order is not known.
pub fn next_order(line: impl AsFd) -> io::Result<Option<(Option<Order>, Option<OwnedFd>)>> {
    let mut letter = [0; 16];
    match socket::receive_with_file(line, &mut letter)? {
        (Packet::Done(_), file) => Ok(Some((Order::of(letter[0]), file))),
        (Packet::NotNow | Packet::HungUp, _) => Ok(None),
    }
}

/// Tells the sender of this end of a pipe that its order was carried out, as far as that was possible. When a holder is
/// killed, the pipe is closed without a byte. A holder that is older than this function closes the pipe when it has
/// carried out the order.
pub fn carried_out(pipe: impl AsFd) {
    // An error means that the reader has exited, and then it has been replaced.
    let _ = rustix::io::write(pipe, b"d");
}

/// Tells the keeper. When the line is full the keeper has enough news waiting to look at everything anyway.
pub fn tell(line: impl AsFd, news: News) -> io::Result<Packet> {
    socket::transmit(line, &[news.letter()])
}

/// The next packet from the holder.
pub enum Heard {
    News(Option<News>),
    Nothing,
    /// The holder is gone.
    Silence,
}

pub fn hear(line: impl AsFd) -> io::Result<Heard> {
    let mut letter = [0; 16];
    Ok(match socket::receive(line, &mut letter)? {
        Packet::Done(_) => Heard::News(News::of(letter[0])),
        Packet::NotNow => Heard::Nothing,
        Packet::HungUp => Heard::Silence,
    })
}
