//! The requests that arrived, kept for the tests, and waiting for further requests.

use crate::conversation::Conversation;
use crate::protocol::Protocol;
use crate::script::Failure;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One request, as recorded.
#[derive(Debug, Clone)]
pub struct Request {
    /// Counts from 0 in order of arrival.
    pub number: usize,
    /// Time since the server started.
    pub arrived: Duration,
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Null when there was no body, a string when it was not JSON.
    pub body: Value,
    pub kind: Kind,
    pub ending: Ending,
}

/// What a request was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A step of the user's conversation.
    Turn(Turn),
    /// Something that the agent asked the model for by itself.
    Background(Protocol),
    /// Not for the model: a probe, a list of models, a count of tokens, telemetry.
    Other,
}

/// A request that is part of the user's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub protocol: Protocol,
    /// The model that the agent asked for.
    pub model: String,
    /// The same for every request of a conversation; see [`Conversation::id`].
    pub conversation: String,
    /// All messages of the user so far, without what the agent added.
    pub user_messages: Vec<String>,
    /// The results of all tools so far.
    pub tool_results: Vec<String>,
    /// Answers since the user's last message: 0 for the request that brings a new message.
    pub answers: usize,
}

/// How far the answer got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The answer is not complete yet, or never will be. An agent may have the last byte a moment before the record is
    /// updated: wait for the ending instead of checking it once.
    Open,
    /// Sent completely, with this HTTP status.
    Answered(u16),
    /// The agent hung up first.
    ClosedEarly,
    /// The server hung up in the middle, as its script said.
    HungUp,
}

impl Request {
    /// The turn, when the request is part of the user's conversation.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.kind {
            Kind::Turn(turn) => Some(turn),
            Kind::Background(_) | Kind::Other => None,
        }
    }
}

/// What was waited for did not happen.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {limit:?}; the model server got:\n{got}")]
pub struct NotSeen {
    limit: Duration,
    got: String,
}

/// All requests of one server.
#[derive(Debug)]
pub(crate) struct Log {
    started: Instant,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    requests: Vec<Request>,
    /// How many scripted failures each turn has had, by conversation, message and answer.
    failures: HashMap<(String, usize, usize), usize>,
}

impl Log {
    pub fn new() -> Log {
        Log { started: Instant::now(), inner: Mutex::default(), changed: Condvar::new() }
    }

    /// A connection's thread that panicked has left complete records; the others continue.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn arrived(&self, request: impl FnOnce(usize, Duration) -> Request) -> usize {
        let mut inner = self.lock();
        let number = inner.requests.len();
        inner.requests.push(request(number, self.started.elapsed()));
        self.changed.notify_all();
        number
    }

    pub fn ended(&self, number: usize, ending: Ending) {
        if let Some(request) = self.lock().requests.get_mut(number) {
            request.ending = ending;
        }
        self.changed.notify_all();
    }

    /// The next of these failures that this turn has not had yet.
    pub fn next_failure(&self, turn: &Turn, failures: &[Failure]) -> Option<Failure> {
        let key = (turn.conversation.clone(), turn.user_messages.len(), turn.answers);
        let mut inner = self.lock();
        let had = inner.failures.entry(key).or_default();
        let status = failures.get(*had).copied();
        *had += usize::from(status.is_some());
        status
    }

    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    pub fn conversations(&self) -> Vec<Conversation> {
        let mut found: Vec<Conversation> = Vec::new();
        for turn in self.lock().requests.iter().filter_map(Request::turn) {
            let messages = turn.user_messages.clone();
            match found.iter_mut().find(|conversation| conversation.id == turn.conversation) {
                Some(known) => known.messages = messages,
                None => found.push(Conversation { id: turn.conversation.clone(), messages }),
            }
        }
        found
    }

    pub fn wait(&self, limit: Duration, mut seen: impl FnMut(&[Request]) -> bool) -> Result<Vec<Request>, NotSeen> {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |inner| !seen(&inner.requests));
        let (inner, result) = waited.unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() {
            let lines = inner.requests.iter().map(|request| {
                format!(
                    "  {} {:?} {} {} {:?}",
                    request.number, request.arrived, request.method, request.path, request.ending
                )
            });
            return Err(NotSeen { limit, got: lines.collect::<Vec<_>>().join("\n") });
        }
        Ok(inner.requests.clone())
    }
}
