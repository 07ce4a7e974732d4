//! The listening side: one thread that accepts, and one per connection. Dropping the server closes all connections and
//! waits for its threads.

use crate::INPUT_TOKENS;
use crate::conversation::{Conversation, Heard};
use crate::gate::Gate;
use crate::http::{self, Incoming};
use crate::limit;
use crate::protocol::{Answer, Name, Protocol, Route, route};
use crate::record::{Ending, Kind, Log, NotSeen, Request, Turn};
use crate::script::{Action, Failure, Script};
use crate::shape;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A huge answer is streamed in pieces of this size.
const HUGE_PIECE: usize = 8192;

/// Real agents take seconds to start on a busy machine; a request that does not come within this time will not come.
const LIMIT: Duration = Duration::from_secs(180);

/// A model server of its own for one test.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    log: Log,
    port: u16,
    connections: Mutex<Connections>,
    gate: Gate,
}

#[derive(Debug, Default)]
struct Connections {
    closing: bool,
    /// The open connections, to close them.
    open: HashMap<u64, TcpStream>,
    next: u64,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// When there is no free port, or no thread can be started.
    pub fn start() -> io::Result<Server> {
        Server::on_port(0)
    }

    /// Listens on this loopback port, in place of a server that was dropped.
    ///
    /// # Errors
    /// When the port is in use, or no thread can be started.
    pub fn on_port(port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let connections = Mutex::new(Connections::default());
        let shared = Arc::new(Shared { log: Log::new(), port: address.port(), connections, gate: Gate::default() });
        let accepting = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("model-accept".to_owned()).spawn(move || accept(&listener, &shared))?
        };
        Ok(Server { address, shared, accepting: Some(accepting) })
    }

    /// `http://127.0.0.1:PORT`. OpenAI clients need `/v1` after it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.requests()
    }

    /// The user's messages in each conversation, as the model saw them last. Conversations are in the order of their
    /// first request.
    pub fn user_messages(&self) -> Vec<Conversation> {
        self.shared.log.conversations()
    }

    /// From now on, a message with this text is answered only when this number was released.
    pub fn hold(&self, words: &str, number: u64) {
        self.shared.gate.hold(words, number);
    }

    /// From now on, messages with `(held N)` with a number up to this one are answered.
    pub fn release(&self, up_to: u64) {
        self.shared.gate.release(up_to);
    }

    /// Waits until `seen` accepts the requests so far, and returns them.
    ///
    /// # Errors
    /// When that does not happen within three minutes; the error lists the requests that came.
    pub fn wait_for(&self, seen: impl FnMut(&[Request]) -> bool) -> Result<Vec<Request>, NotSeen> {
        self.wait_for_within(LIMIT, seen)
    }

    /// Waits like [`Server::wait_for`], with a limit of the caller's.
    ///
    /// # Errors
    /// When it does not happen within that time.
    pub fn wait_for_within(
        &self,
        limit: Duration,
        seen: impl FnMut(&[Request]) -> bool,
    ) -> Result<Vec<Request>, NotSeen> {
        self.shared.log.wait(limit, seen)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.gate.release(u64::MAX);
        let threads = {
            let mut connections = self.shared.connections();
            connections.closing = true;
            for stream in connections.open.values() {
                // A connection that is closed already results in an error, which is ignored.
                let _ = stream.shutdown(Shutdown::Both);
            }
            std::mem::take(&mut connections.threads)
        };
        // Wakes the accepting thread, which then sees that the server closes.
        let _ = TcpStream::connect(self.address);
        for thread in threads.into_iter().chain(self.accepting.take()) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mut connections = shared.connections();
        if connections.closing {
            return;
        }
        // A connection that was closed before it was accepted is skipped.
        let Ok(stream) = stream else { continue };
        let Ok(copy) = stream.try_clone() else { continue };
        let number = connections.next;
        connections.next += 1;
        connections.open.insert(number, copy);
        let served = Arc::clone(shared);
        let thread = std::thread::Builder::new().name(format!("model-{number}")).spawn(move || {
            // An error ends this connection and is in the record as an early end.
            let _ = serve(&served, stream);
            served.connections().open.remove(&number);
        });
        match thread {
            Ok(thread) => connections.threads.push(thread),
            Err(_) => drop(connections.open.remove(&number)),
        }
    }
}

/// Answers the requests of one connection, one after the other.
fn serve(shared: &Shared, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(incoming) = http::read_request(&mut reader)? {
        let reply = Reply::to(shared, &incoming);
        if let Some(number) = reply.held {
            shared.gate.wait_for(number);
        }
        match reply.send(&incoming.method, &mut writer) {
            Ok(ending) => shared.log.ended(reply.number, ending),
            Err(error) => {
                shared.log.ended(reply.number, Ending::ClosedEarly);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// The answer to a request.
struct Reply {
    number: usize,
    /// The answer waits until this number was released.
    held: Option<u64>,
    what: What,
}

enum What {
    Json(u16, Value),
    /// Because of a usage limit.
    Refusal {
        headers: Vec<(&'static str, String)>,
        body: Value,
    },
    Events {
        protocol: Protocol,
        name: Name,
        answer: Answer,
    },
    /// An answer without its last word and its end.
    Cut {
        protocol: Protocol,
        name: Name,
        answer: Answer,
    },
    Nothing,
}

impl Reply {
    /// Records the request and decides on its answer.
    fn to(shared: &Shared, incoming: &Incoming) -> Reply {
        let body = match serde_json::from_slice(&incoming.body) {
            Ok(body) => body,
            Err(_) if incoming.body.is_empty() => Value::Null,
            Err(_) => Value::String(String::from_utf8_lossy(&incoming.body).into_owned()),
        };
        let route = route(&incoming.method, &incoming.path);
        let heard = match route {
            Route::Generate(protocol) => Some((protocol, protocol.hear(&incoming.path, &incoming.headers, &body))),
            Route::CountTokens(_) | Route::Models | Route::Other => None,
        };
        let kind = match &heard {
            Some((protocol, heard)) if heard.is_background() => Kind::Background(*protocol),
            Some((protocol, heard)) => Kind::Turn(turn(*protocol, heard)),
            None => Kind::Other,
        };
        let number = shared.log.arrived(|number, arrived| Request {
            number,
            arrived,
            method: incoming.method.clone(),
            path: incoming.path.clone(),
            headers: incoming.headers.clone(),
            body,
            kind: kind.clone(),
            ending: Ending::Open,
        });
        let of_a_turn = matches!(kind, Kind::Turn(_));
        let held = heard.as_ref().filter(|_| of_a_turn).and_then(|(_, heard)| shared.gate.number(heard.script()));
        let what = match (route, heard) {
            (Route::Generate(protocol), Some((_, heard))) => generate(shared, number, protocol, &heard, &kind),
            (Route::CountTokens(protocol), _) => What::Json(200, protocol.token_count()),
            // Both the usual format and the one that Codex looks for.
            (Route::Models, _) => What::Json(200, json!({"object": "list", "data": [], "models": []})),
            (Route::Generate(_) | Route::Other, _) => What::Json(200, json!({})),
        };
        Reply { number, held, what }
    }

    fn send(&self, method: &str, stream: &mut TcpStream) -> io::Result<Ending> {
        match &self.what {
            What::Json(status, body) => {
                http::write_json(stream, method, *status, &[], body)?;
                Ok(Ending::Answered(*status))
            }
            What::Refusal { headers, body } => {
                http::write_json(stream, method, 429, headers, body)?;
                Ok(Ending::Answered(429))
            }
            What::Events { protocol, name, answer } => {
                http::write_events(stream, &protocol.events(name, answer), answer.pause())?;
                Ok(Ending::Answered(200))
            }
            What::Cut { protocol, name, answer } => {
                let mut events = protocol.events(name, answer);
                events.truncate(events.iter().rposition(|event| event.paced).unwrap_or(0));
                http::write_beginning(stream, &events)?;
                stream.shutdown(Shutdown::Both)?;
                Ok(Ending::HungUp)
            }
            What::Nothing => {
                http::await_hangup(stream, None)?;
                Ok(Ending::ClosedEarly)
            }
        }
    }
}

fn turn(protocol: Protocol, heard: &Heard) -> Turn {
    Turn {
        protocol,
        model: heard.model.clone(),
        conversation: heard.conversation(),
        user_messages: heard.user_messages(),
        tool_results: heard.tool_results(),
        answers: heard.answers(),
    }
}

fn generate(shared: &Shared, number: usize, protocol: Protocol, heard: &Heard, kind: &Kind) -> What {
    let mut input_tokens = INPUT_TOKENS;
    let answer = match kind {
        Kind::Turn(turn) => {
            let due = Script::read(heard.script()).turn(turn.answers);
            match shared.log.next_failure(turn, &due.failures) {
                Some(Failure::Status(status)) => return What::Json(status, protocol.failure(status)),
                Some(Failure::Limit(seconds)) => return refusal(protocol, seconds),
                None => {}
            }
            match due.action {
                Action::Say(text) => Answer::say(text),
                Action::Stream { words, pause } => Answer::Text { pieces: numbered(words), pause },
                Action::Call(calls) => Answer::Calls(calls),
                Action::Huge(bytes) => Answer::Text { pieces: huge(bytes), pause: Duration::ZERO },
                Action::Fail(status) => return What::Json(status, protocol.failure(status)),
                Action::Limit(seconds) => return refusal(protocol, seconds),
                Action::Hang => return What::Nothing,
                Action::Heavy { tokens, text } => {
                    input_tokens = tokens;
                    Answer::say(text)
                }
                Action::Empty => Answer::Text { pieces: Vec::new(), pause: Duration::ZERO },
                Action::Malformed(tool) => Answer::Malformed(tool),
                Action::Cut(words) => {
                    let name = name_of(shared, number, heard, INPUT_TOKENS);
                    // The answer is built with one more word and cut before it: the last word of an answer may say that
                    // the answer is complete.
                    let answer = Answer::Text { pieces: numbered(words + 1), pause: Duration::ZERO };
                    return What::Cut { protocol, name, answer };
                }
            }
        }
        Kind::Background(_) | Kind::Other => match heard.shape.as_deref().map(serde_json::from_str::<Value>) {
            Some(Ok(schema)) => Answer::say(shape::example(&schema).to_string()),
            Some(Err(_)) | None => Answer::say("Scripted session"),
        },
    };
    let name = name_of(shared, number, heard, input_tokens);
    if heard.streams {
        What::Events { protocol, name, answer }
    } else {
        What::Json(200, protocol.whole(&name, &answer))
    }
}

fn refusal(protocol: Protocol, seconds: u64) -> What {
    let (headers, body) = limit::refusal(protocol, seconds);
    What::Refusal { headers, body }
}

fn name_of(shared: &Shared, number: usize, heard: &Heard, input_tokens: u64) -> Name {
    Name { answer: format!("{}_{number}", shared.port), model: heard.model.clone(), input_tokens }
}

/// `word1 word2 …`, each in a piece of its own.
fn numbered(words: usize) -> Vec<String> {
    let word = |index: usize| if index == 1 { "word1".to_owned() } else { format!(" word{index}") };
    (1..=words).map(word).collect()
}

/// Readable text of exactly this many bytes, in pieces.
fn huge(bytes: usize) -> Vec<String> {
    let text = "All work and no play makes a dull model. ".repeat(bytes.min(HUGE_PIECE) / 40 + 2);
    let piece = |size: usize| text.get(..size).unwrap_or_default().to_owned();
    let mut pieces: Vec<String> = (0..bytes / HUGE_PIECE).map(|_| piece(HUGE_PIECE)).collect();
    if !bytes.is_multiple_of(HUGE_PIECE) {
        pieces.push(piece(bytes % HUGE_PIECE));
    }
    pieces
}
