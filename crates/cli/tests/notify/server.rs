//! A web server on loopback that fails on request: the test chooses the answer to each first attempt.

use ostler_testkit::patience::LIMIT;
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Status(u16),
    /// Reads the request and closes the connection.
    HangUp,
    /// Reads the request and never answers.
    Stall,
    /// Redirects the client.
    Redirect,
    /// Answers something that is not HTTP.
    Rubbish,
    /// Succeeds, with a `Content-Length` that is larger than the body.
    LieAboutLength,
}

impl Answer {
    /// Whether the client can know that the request has arrived.
    fn is_success(self) -> bool {
        match self {
            Answer::Status(status) => (200..300).contains(&status),
            Answer::LieAboutLength => true,
            Answer::HangUp | Answer::Stall | Answer::Redirect | Answer::Rubbish => false,
        }
    }
}

/// One request as it was received.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    pub answer: Answer,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn id(&self) -> &str {
        self.header("x-ostler-delivery")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn moment(&self) -> String {
        self.json()["moment"].as_str().unwrap().to_owned()
    }
}

#[derive(Default)]
struct Heard {
    requests: Vec<Request>,
    /// The answers to the first attempts of the next notifications. Later attempts succeed.
    faults: VecDeque<Answer>,
    /// The answer to every request; takes precedence over `faults`.
    always: Option<Answer>,
    /// Connections that are never answered, open until `hang_up` or the end of the test.
    stalled: Vec<TcpStream>,
}

/// The server. It ends with the test.
pub struct Server {
    address: String,
    heard: Arc<(Mutex<Heard>, Condvar)>,
}

impl Server {
    pub fn new() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::<(Mutex<Heard>, Condvar)>::default();
        let shared = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                // A client may be killed in the middle of a request: that does not fail the test.
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Server { address, heard }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the answers to the first attempts of the next notifications.
    pub fn fails_first_with(&self, faults: &[Answer]) {
        self.heard.0.lock().unwrap().faults.extend(faults);
    }

    /// From now on this is the answer to every request.
    pub fn always(&self, answer: Option<Answer>) {
        self.heard.0.lock().unwrap().always = answer;
    }

    /// Closes every connection that waits for an answer.
    pub fn hang_up(&self) {
        self.heard.0.lock().unwrap().stalled.clear();
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.heard.0.lock().unwrap().requests.clone()
    }

    /// Waits until `right` accepts the requests.
    #[track_caller]
    pub fn until(&self, what: &str, right: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        let (heard, changed) = &*self.heard;
        let (mut guard, end) = (heard.lock().unwrap(), Instant::now() + LIMIT);
        while !right(&guard.requests) {
            let left = end.saturating_duration_since(Instant::now());
            let came: Vec<_> = guard.requests.iter().map(|one| (one.id().to_owned(), one.answer)).collect();
            assert!(!left.is_zero(), "waited {LIMIT:?} in vain until {what}: {came:?}");
            guard = changed.wait_timeout(guard, left).unwrap().0;
        }
        guard.requests.clone()
    }

    /// Waits until notifications of exactly these moments have arrived, in whichever order, and returns them by moment.
    #[track_caller]
    pub fn until_arrived(&self, moments: &[&str]) -> Vec<Request> {
        let mut wanted: Vec<String> = moments.iter().map(|&moment| moment.to_owned()).collect();
        wanted.sort();
        let requests = self.until(&format!("{moments:?} have arrived"), |requests| {
            let mut came: Vec<String> = arrived(requests).iter().map(Request::moment).collect();
            came.sort();
            came == wanted
        });
        arrived(&requests)
    }
}

/// The requests that were answered with success, each id once.
pub fn arrived(requests: &[Request]) -> Vec<Request> {
    let mut by_id = BTreeMap::new();
    for request in requests.iter().filter(|request| request.answer.is_success()) {
        by_id.entry(request.id().to_owned()).or_insert_with(|| request.clone());
    }
    by_id.into_values().collect()
}

fn serve(mut stream: TcpStream, (heard, changed): &(Mutex<Heard>, Condvar)) -> Option<()> {
    let (path, headers, body) = read(&stream)?;
    let answer = {
        let mut heard = heard.lock().unwrap();
        let id = headers.get("x-ostler-delivery").cloned().unwrap_or_default();
        let is_first = heard.requests.iter().all(|request| request.id() != id);
        let fault = if is_first { heard.faults.pop_front() } else { None };
        heard.always.or(fault).unwrap_or(Answer::Status(204))
    };
    // Recorded before it is answered: when a client has its answer, the request is in the list.
    heard.lock().unwrap().requests.push(Request { path, headers, body, answer });
    changed.notify_all();
    let text = match answer {
        Answer::Status(status) => format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        Answer::HangUp => return None,
        Answer::Stall => {
            heard.lock().unwrap().stalled.push(stream);
            return None;
        }
        Answer::Redirect => "HTTP/1.1 302 x\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".to_owned(),
        Answer::Rubbish => "\u{7}\u{1b}[2J these are not the words of a web server\r\n\r\n".to_owned(),
        Answer::LieAboutLength => "HTTP/1.1 200 x\r\nContent-Length: 1000000\r\n\r\n<rubbish".to_owned(),
    };
    stream.write_all(text.as_bytes()).ok()
}

type Read_ = (String, BTreeMap<String, String>, Vec<u8>);

fn read(stream: &TcpStream) -> Option<Read_> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((path, headers, body))
}
