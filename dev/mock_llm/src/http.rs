//! The part of HTTP/1.1 that the agents' clients use on loopback: requests with a known length or in chunks, answers in
//! one piece or as server-sent events, several per connection. Not a general server: its clients are children of a
//! test.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A request as it was received.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub method: String,
    /// With the query, as sent.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub name: Option<&'static str>,
    pub data: String,
    /// Sent after the script's pause.
    pub paced: bool,
}

impl Event {
    pub fn new(name: Option<&'static str>, data: &Value) -> Event {
        Event { name, data: data.to_string(), paced: false }
    }

    pub fn paced(self) -> Event {
        Event { paced: true, ..self }
    }
}

/// The next request of a connection; `None` when the client has closed it.
pub(crate) fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Incoming>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(invalid("no method and path"));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    if header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        read_chunks(reader)?
    } else {
        let length = match header("content-length") {
            Some(length) => length.parse().map_err(|_| invalid("content-length"))?,
            None => 0,
        };
        let mut body = Vec::new();
        reader.take(length).read_to_end(&mut body)?;
        if body.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        body
    };
    Ok(Some(Incoming { method, path, headers, body }))
}

fn read_chunks(reader: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| invalid("chunk size"))?;
        let before = body.len() as u64;
        reader.take(size).read_to_end(&mut body)?;
        if body.len() as u64 != before + size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut end = String::new();
        reader.read_line(&mut end)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Sends an answer in JSON. For a HEAD request, only the part before the body.
pub(crate) fn write_json(
    stream: &mut TcpStream,
    method: &str,
    status: u16,
    headers: &[(&'static str, String)],
    body: &Value,
) -> io::Result<()> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let body = body.to_string();
    let mut answer = format!(
        "HTTP/1.1 {status} {}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        reason(status),
        body.len()
    );
    if method != "HEAD" {
        answer.push_str(&body);
    }
    stream.write_all(answer.as_bytes())
}

const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
      transfer-encoding: chunked\r\n\r\n";

/// Sends a streamed answer. During the pause the connection is watched, so that a client which hangs up is noticed at
/// once. That is an error like a failed write.
pub(crate) fn write_events(stream: &mut TcpStream, events: &[Event], pause: Duration) -> io::Result<()> {
    stream.write_all(STREAM_HEAD)?;
    for event in events {
        if event.paced && !pause.is_zero() {
            let due = std::time::Instant::now() + pause;
            if await_hangup(stream, Some(due))? {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        write_event(stream, event)?;
    }
    stream.write_all(b"0\r\n\r\n")
}

/// Sends the beginning of a streamed answer, without the chunk that would end it.
pub(crate) fn write_beginning(stream: &mut TcpStream, events: &[Event]) -> io::Result<()> {
    stream.write_all(STREAM_HEAD)?;
    events.iter().try_for_each(|event| write_event(stream, event))
}

fn write_event(stream: &mut TcpStream, event: &Event) -> io::Result<()> {
    let name = event.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    let text = format!("{name}data: {}\n\n", event.data);
    // One write for one event: what a reader gets in one read must not depend on how the event was built.
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

/// Waits until the client hangs up (true) or until the time (false; without a time, for ever).
pub(crate) fn await_hangup(stream: &TcpStream, due: Option<std::time::Instant>) -> io::Result<bool> {
    let mut byte = [0];
    loop {
        let left = due.map(|due| due.saturating_duration_since(std::time::Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            stream.set_read_timeout(None)?;
            return Ok(false);
        }
        stream.set_read_timeout(left)?;
        match stream.peek(&mut byte) {
            Ok(0) => return Ok(true),
            // A client that already sends its next request breaks the protocol. None of our clients does that.
            Ok(_) => return Err(invalid("a request before the answer to the last")),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Scripted",
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
