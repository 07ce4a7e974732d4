//! The start of the watch over all sessions, in a thread of its own: with thousands of sessions it takes longer than a key may
//! take. Sessions that have ended are read there as well, after that; until then they are only counted.

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

/// So many are looked at before they are made smaller: a whole look takes many times the memory of a row.
const HANDFUL: usize = 256;

/// Whether changes of sessions are told.
pub enum Watching {
    /// What there is has not been shown yet. `rest`: those that were only counted.
    NotYet {
        rest: Vec<SessionId>,
    },
    Begins(Receiver<Result<Begun>>),
    /// More may follow of the beginning.
    Is(Box<Watch<'static>>, Receiver<Result<Begun>>),
}

/// What follows when it begins, in this order.
pub enum Begun {
    Watch {
        watch: Box<Watch<'static>>,
        /// What has changed between the list and the watch, or may have.
        rows: Vec<Row>,
        /// These were there, and are not any more.
        gone: Vec<SessionId>,
    },
    /// Those that were only counted.
    Rest(Vec<Row>),
}

impl Watching {
    /// Begins to watch. `running`: the sessions of the list that had not ended. `waker` is written to when something has begun.
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

    /// What has begun since the last call.
    pub fn begun(&self) -> Option<Result<Begun>> {
        match self {
            Watching::NotYet { .. } => None,
            Watching::Begins(receiver) | Watching::Is(_, receiver) => receiver.try_recv().ok(),
        }
    }

    /// This is the watch that was waited for.
    pub fn is(&mut self, watch: Box<Watch<'static>>) {
        *self = match std::mem::replace(self, Watching::NotYet { rest: Vec::new() }) {
            Watching::Begins(receiver) | Watching::Is(_, receiver) => Watching::Is(watch, receiver),
            not_yet @ Watching::NotYet { .. } => not_yet,
        };
    }
}

/// The dashboard may be gone; then nothing needs to be told.
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
    // There is one watch in the life of the process, so its engine is never given back.
    let engine: &'static Engine = &Box::leak(Box::new(Context::new()?)).engine;
    let mut watch = Box::new(engine.watch(Select::all())?);
    // What has ended since the list was made is not told of.
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
    for handful in ids.chunks(HANDFUL) {
        rows.extend(look_again(engine, handful)?.iter().filter_map(Row::of));
    }
    Ok(rows)
}
