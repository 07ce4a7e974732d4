//! The part of D-Bus that one question needs: authentication, one call, and the messages that come back. The wire
//! format is fixed and small; a library for all of it would be larger than the rest of the launch.
//!
//! A peer is a program with a socket of its own, or the bus of a login, over which other programs are reached by name.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::Duration;

/// No message that we need is longer.
const LONGEST: usize = 1 << 20;

const CALL: u8 = 1;
const RETURN: u8 = 2;
const ERROR: u8 = 3;
const SIGNAL: u8 = 4;

/// A connection to a peer that takes calls.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    serial: u32,
}

/// A message that the peer sent by itself, or an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The call with this serial failed, and why.
    Error {
        serial: u32,
        why: String,
    },
    Signal {
        member: String,
        body: Vec<u8>,
    },
    /// What the call with this serial returned.
    Return {
        serial: u32,
        body: Vec<u8>,
    },
    Other,
}

/// Where a call goes.
#[derive(Clone, Copy, Debug)]
pub struct Method<'a> {
    pub destination: &'a str,
    pub path: &'a str,
    pub interface: &'a str,
    pub member: &'a str,
}

impl Connection {
    /// Connects and authenticates with our user id, which the kernel confirms to the peer.
    pub fn open(socket: &Path, patience: Duration) -> io::Result<Connection> {
        Connection::over(UnixStream::connect(socket)?, patience)
    }

    /// The same on a bus, which gives the connection a name of its own. `address`: as `DBUS_SESSION_BUS_ADDRESS` has
    /// it.
    pub fn open_bus(address: &str, patience: Duration) -> io::Result<Connection> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "its address names no socket");
        for socket in address.split(';').filter_map(socket_of) {
            match UnixStream::connect_addr(&socket?) {
                Ok(stream) => {
                    let mut connection = Connection::over(stream, patience)?;
                    let hello = Method {
                        destination: "org.freedesktop.DBus",
                        path: "/org/freedesktop/DBus",
                        interface: "org.freedesktop.DBus",
                        member: "Hello",
                    };
                    connection.ask(&hello, "", &Writer::default())?;
                    return Ok(connection);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Calls, and waits for the result.
    pub fn ask(&mut self, method: &Method<'_>, signature: &str, body: &Writer) -> io::Result<Vec<u8>> {
        let serial = self.call(method, signature, body)?;
        loop {
            match self.hear()? {
                Incoming::Return { serial: of, body } if of == serial => return Ok(body),
                Incoming::Error { serial: of, why } if of == serial => return Err(io::Error::other(why)),
                Incoming::Return { .. } | Incoming::Error { .. } | Incoming::Signal { .. } | Incoming::Other => {}
            }
        }
    }

    fn over(mut stream: UnixStream, patience: Duration) -> io::Result<Connection> {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let uid = rustix::process::geteuid().as_raw().to_string();
        let hex: String = uid.bytes().map(|byte| format!("{byte:02x}")).collect();
        stream.write_all(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
        let mut stream = BufReader::new(stream);
        let mut answer = Vec::new();
        (&mut stream).take(1024).read_until(b'\n', &mut answer)?;
        if !answer.starts_with(b"OK ") {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it refused our user id"));
        }
        stream.get_mut().write_all(b"BEGIN\r\n")?;
        Ok(Connection { stream, serial: 0 })
    }

    /// Sends a call and returns its serial.
    pub fn call(&mut self, method: &Method<'_>, signature: &str, body: &Writer) -> io::Result<u32> {
        self.serial += 1;
        let mut message = Writer::default();
        message.bytes.extend([b'l', CALL, 0, 1]);
        message.u32(body.bytes.len().try_into().map_err(io::Error::other)?);
        message.u32(self.serial);
        message.array(8, |fields| {
            let texts = [
                (1, "o", method.path),
                (2, "s", method.interface),
                (3, "s", method.member),
                (6, "s", method.destination),
            ];
            for (field, kind, text) in texts {
                fields.align(8);
                fields.bytes.push(field);
                fields.signature(kind);
                fields.string(text);
            }
            fields.align(8);
            fields.bytes.push(8);
            fields.signature("g");
            fields.signature(signature);
        });
        message.align(8);
        message.bytes.extend(&body.bytes);
        self.stream.get_mut().write_all(&message.bytes)?;
        Ok(self.serial)
    }

    /// The next message.
    pub fn hear(&mut self) -> io::Result<Incoming> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        if head[0] != b'l' {
            return Err(malformed());
        }
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let (body_length, fields_length) = (number(4), number(12));
        if body_length > LONGEST || fields_length > LONGEST {
            return Err(malformed());
        }
        // The body begins at a multiple of eight; the head has twice that length.
        let mut fields = vec![0; fields_length.next_multiple_of(8)];
        self.stream.read_exact(&mut fields)?;
        fields.truncate(fields_length);
        let mut body = vec![0; body_length];
        self.stream.read_exact(&mut body)?;
        let (mut member, mut name, mut serial) = (String::new(), String::new(), 0);
        let mut reader = Reader { bytes: &fields, at: 0 };
        while !reader.is_at_end() {
            reader.align(8);
            let field = reader.byte()?;
            match (field, reader.signature()?.as_str()) {
                (3, "s") => member = reader.string()?,
                (4, "s") => name = reader.string()?,
                (_, "s" | "o") => drop(reader.string()?),
                (5, "u") => serial = reader.u32()?,
                (_, "u") => drop(reader.u32()?),
                (_, "g") => drop(reader.signature()?),
                (_, _) => return Err(malformed()),
            }
        }
        Ok(match head[1] {
            ERROR => Incoming::Error { serial, why: Reader::new(&body).string().unwrap_or(name) },
            SIGNAL => Incoming::Signal { member, body },
            RETURN => Incoming::Return { serial, body },
            _ => Incoming::Other,
        })
    }
}

/// The socket that one address names; `None` for another kind of address.
fn socket_of(address: &str) -> Option<io::Result<SocketAddr>> {
    let keys = address.strip_prefix("unix:")?;
    keys.split(',').filter_map(|pair| pair.split_once('=')).find_map(|(key, value)| match key {
        "path" => Some(SocketAddr::from_pathname(unescaped(value))),
        "abstract" => Some(SocketAddr::from_abstract_name(unescaped(value))),
        _ => None,
    })
}

/// In an address a byte may be written as `%` and two digits.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it sent an unknown or malformed D-Bus message")
}

/// Values in their wire form.
#[derive(Debug, Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    /// Pads to a multiple of this.
    pub fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    pub fn u32(&mut self, value: u32) {
        self.align(4);
        self.bytes.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.align(8);
        self.bytes.extend(value.to_le_bytes());
    }

    pub fn string(&mut self, text: &str) {
        self.u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    pub fn signature(&mut self, text: &str) {
        self.bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// An array. Its length comes before it, and does not count the gap to the first element.
    pub fn array(&mut self, alignment: usize, elements: impl FnOnce(&mut Writer)) {
        self.u32(0);
        let length_at = self.bytes.len() - 4;
        self.align(alignment);
        let start = self.bytes.len();
        elements(self);
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        self.bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// One element of an array of named values.
    pub fn property(&mut self, name: &str, signature: &str, value: impl FnOnce(&mut Writer)) {
        self.align(8);
        self.string(name);
        self.signature(signature);
        value(self);
    }
}

/// Reads values in their wire form.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Continues at a multiple of this.
    pub fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let end = self.at.checked_add(length).ok_or_else(malformed)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(malformed)?;
        self.at = end;
        Ok(taken)
    }

    /// Whether everything was read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn u32(&mut self) -> io::Result<u32> {
        self.align(4);
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub fn string(&mut self) -> io::Result<String> {
        let length = self.u32()? as usize;
        self.text(length)
    }

    pub fn signature(&mut self) -> io::Result<String> {
        let length = usize::from(self.byte()?);
        self.text(length)
    }

    fn text(&mut self, length: usize) -> io::Result<String> {
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.byte()?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_aligned() {
        let mut writer = Writer::default();
        writer.string("ab");
        writer.array(8, |array| array.property("n", "t", |value| value.u64(5)));
        let expected: &[u8] = &[
            2,
            0,
            0,
            0,
            b'a',
            b'b',
            0,
            0, // the text, its end, a gap
            16 + 8,
            0,
            0,
            0,
            0,
            0,
            0,
            0, // the array's length, a gap to eight
            1,
            0,
            0,
            0,
            b'n',
            0,
            1,
            b't',
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0, // name, signature, a gap to eight
            5,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        assert_eq!(writer.bytes, expected);
    }

    #[test]
    fn an_address_may_name_several_sockets_in_several_ways() {
        let path =
            |address| socket_of(address).and_then(Result::ok).and_then(|socket| Some(socket.as_pathname()?.to_owned()));
        assert_eq!(path("unix:guid=1,path=/run/user/1/bus"), Some("/run/user/1/bus".into()));
        assert_eq!(path("unix:path=/a%20b%"), Some("/a b%".into()));
        let hidden = socket_of("unix:abstract=/tmp/x,guid=2").and_then(Result::ok);
        assert_eq!(hidden.as_ref().and_then(SocketAddr::as_abstract_name), Some(&b"/tmp/x"[..]));
        assert!(socket_of("tcp:host=localhost,port=1").is_none() && socket_of("autolaunch:").is_none());
    }

    #[test]
    fn a_message_that_is_cut_off_or_lies_about_its_length_is_an_error() {
        let mut reader = Reader::new(&[9, 0, 0, 0, b'a']);
        assert!(reader.string().is_err());
        assert!(Reader::new(&[255; 4]).string().is_err());
        assert!(Reader::new(&[1]).u32().is_err());
    }
}
