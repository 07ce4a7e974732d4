//! The smallest HTTP client that can show what the server really sends.

use ostler_mock_llm::Server;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No answer of the server takes this long; a test that waits longer has found a bug.
const LIMIT: Duration = Duration::from_secs(20);

pub struct Client(BufReader<TcpStream>);

pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Client {
    pub fn of(server: &Server) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Client(BufReader::new(stream))
    }

    pub fn send(&mut self, method: &str, path: &str, body: &str) {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        self.send_raw(&format!("{head}{body}"));
    }

    pub fn send_raw(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &body.to_string());
        self.receive("POST")
    }

    pub fn receive(&mut self, method: &str) -> Answer {
        let status = self.line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        let mut chunked = false;
        loop {
            let line = self.line().to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("transfer-encoding", value)) => chunked = value == "chunked",
                Some(_) => {}
                None => break,
            }
        }
        let mut body = Vec::new();
        if chunked {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        } else if method != "HEAD" {
            body = self.bytes(length);
        }
        Answer { status, body: String::from_utf8(body).unwrap() }
    }

    /// One line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Everything up to the end of the connection.
    pub fn until_closed(&mut self) -> String {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        let chunk = self.bytes(size);
        assert_eq!(self.line(), "", "a chunk ends with its line");
        (size > 0).then_some(chunk)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of every server-sent event; `[DONE]` as a string.
    pub fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))).collect()
    }
}

/// What all events have at this place, in order.
pub fn gathered(events: &[Value], place: &str) -> Vec<Value> {
    events.iter().filter_map(|event| event.pointer(place)).cloned().collect()
}

/// The texts of all events at this place, put together.
pub fn text(events: &[Value], place: &str) -> String {
    gathered(events, place).iter().filter_map(Value::as_str).collect()
}
