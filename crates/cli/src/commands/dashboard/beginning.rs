//! The start of the watch over all sessions, in a thread of its own: with thousands of sessions it takes longer than a
//! key may take. The thread then reads the sessions that have ended; until then they are only counted.

use super::row::Row;
use crate::context::Context;
use crate::exit::Result;
use ostler_core::id::SessionId;
use ostler_engine::Engine;
use ostler_engine::list::look_again;
use ostler_engine::watch::{Select, Watch};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

/// How many sessions are read before they are reduced to rows: a full view takes many times the memory of a row.
const BATCH: usize = 256;

/// Whether changes of sessions are reported.
pub enum Watching {
    /// The first list has not been shown yet. `rest`: the sessions that were only counted.
    NotYet {
        rest: Vec<SessionId>,
    },
    Begins(Receiver<Result<Begun>>),
    /// The watch is running; the thread may send more.
    Is(Box<Watch<'static>>, Receiver<Result<Begun>>),
}

/// What the thread sends, in this order.
pub enum Begun {
    Watch {
        watch: Box<Watch<'static>>,
        /// The sessions that have changed, or may have, between the list and the watch.
        rows: Vec<Row>,
        /// The sessions of the list that no longer exist.
        gone: Vec<SessionId>,
    },
    /// The sessions that were only counted.
    Rest(Vec<Row>),
}

impl Watching {
    /// Starts the watch. `running`: the sessions of the list that had not ended. `waker` is written to when the thread
    /// has sent something.
    pub fn begin(&mut self, running: BTreeSet<SessionId>, mut waker: UnixStream) -> Result<()> {
        let Watching::NotYet { rest } = self else { return Ok(()) };
        let rest = std::mem::take(rest);
        let (sender, receiver) = channel();
        let work = move || {
            if let Err(failure) = begin(&running, &rest, &sender, &mut waker) {
                tell(&sender, &mut waker, Err(failure));
            }
        };
        std::thread::Builder::new().spawn(work)?;
        *self = Watching::Begins(receiver);
        Ok(())
    }

    /// The next message of the thread, without waiting.
    pub fn begun(&self) -> Option<Result<Begun>> {
        match self {
            Watching::NotYet { .. } => None,
            Watching::Begins(receiver) | Watching::Is(_, receiver) => receiver.try_recv().ok(),
        }
    }

    /// Stores the watch that the thread has sent.
    pub fn is(&mut self, watch: Box<Watch<'static>>) {
        *self = match std::mem::replace(self, Watching::NotYet { rest: Vec::new() }) {
            Watching::Begins(receiver) | Watching::Is(_, receiver) => Watching::Is(watch, receiver),
            not_yet @ Watching::NotYet { .. } => not_yet,
        };
    }
}

/// Errors are ignored: the dashboard may be gone.
fn tell(sender: &Sender<Result<Begun>>, waker: &mut UnixStream, begun: Result<Begun>) {
    let _ = sender.send(begun);
    let _ = waker.write(&[1]);
}

fn begin(
    running: &BTreeSet<SessionId>,
    rest: &[SessionId],
    sender: &Sender<Result<Begun>>,
    waker: &mut UnixStream,
) -> Result<()> {
    // The process starts one watch only, so its engine is never freed.
    let engine: &'static Engine = &Box::leak(Box::new(Context::new()?)).engine;
    let mut watch = Box::new(engine.watch(Select::all())?);
    // The watch does not report a session that ended between the list and the start of the watch.
    let mut ids = running.clone();
    while let Some(change) = watch.next_change()? {
        ids.insert(change.id());
    }
    let rows = rows(engine, &ids.into_iter().collect::<Vec<_>>())?;
    let there: BTreeSet<SessionId> = rows.iter().map(|row| row.id).collect();
    let gone = running.iter().filter(|id| !there.contains(id)).copied().collect();
    tell(sender, waker, Ok(Begun::Watch { watch, rows, gone }));
    if !rest.is_empty() {
        tell(sender, waker, Ok(Begun::Rest(self::rows(engine, rest)?)));
    }
    Ok(())
}

fn rows(engine: &Engine, ids: &[SessionId]) -> Result<Vec<Row>> {
    let mut rows = Vec::with_capacity(ids.len());
    for handful in ids.chunks(BATCH) {
        rows.extend(look_again(engine, handful)?.iter().filter_map(Row::of));
    }
    Ok(rows)
}
