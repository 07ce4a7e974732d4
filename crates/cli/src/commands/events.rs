//! `ostler events`: everything that happens to every session, as JSON lines, from files alone. It needs no keeper and no
//! holder, and goes on when all of them are dead.
//!
//! * [`entries`] reads what a journal has gained, whole lines only.
//! * [`known`] compares the folders that there are with those that there were.
//! * [`changes`] waits until something may have changed.
//!
//! Watch first, look afterwards: whatever happens in between wakes us, so a new session's first entries are not missed.

mod changes;
mod entries;
mod known;

use crate::args::Events;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::not_written;
use crate::ui::time::parse_since;
pub use changes::{Changes, News};
use entries::Line;
use known::{Known, Only, Read};
use ostler_core::id::SessionId;
use std::io::{ErrorKind, Write};

pub fn run(context: &Context, args: &Events) -> Result<Code> {
    match follow(context, args) {
        // Whoever read this has seen enough.
        Err(Stop::ReaderGone) => Ok(Code::Succeeded),
        Err(Stop::Failed(failure)) => Err(failure),
        Ok(()) => Ok(Code::Succeeded),
    }
}

/// Why it ends before its time.
enum Stop {
    ReaderGone,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Failed(error.into())
    }
}

fn only(context: &Context, args: &Events) -> Result<Only> {
    let since = args.since.as_deref().map(|text| parse_since(text, ostler_sys::clock::now())).transpose();
    let sessions = if args.ids.is_empty() {
        None
    } else {
        Some(context.engine.select_all(&args.ids)?.into_iter().map(|place| place.id).collect())
    };
    Ok(Only { sessions, since: since.map_err(Failure::usage)? })
}

fn follow(context: &Context, args: &Events) -> std::result::Result<(), Stop> {
    let home = &context.engine.home;
    let mut known = Known::of(only(context, args)?);
    if !args.follow {
        return print(known.look(home, None, &Read::All)?.only_entries());
    }
    home.open_or_make(&home.sessions())?;
    let mut changes = Changes::in_file(Some("journal.jsonl"));
    // What is there when we begin has not just appeared.
    print(known.look(home, Some(&mut changes), &Read::All)?.only_entries())?;
    loop {
        let batch = match changes.wait(None, None)? {
            News::ReaderGone => return Err(Stop::ReaderGone),
            News::Anything => known.look(home, Some(&mut changes), &Read::All)?,
            News::Some { folders: true, moved: _, sessions } => {
                known.look(home, Some(&mut changes), &Read::Only(&sessions))?
            }
            News::Some { folders: false, moved, sessions } => {
                known.look_at(home, &mut changes, &moved, &Read::Only(&sessions))?
            }
        };
        print(batch.all())?;
    }
}

/// What one look found.
#[derive(Default)]
struct Batch {
    arrivals: Vec<Line>,
    entries: Vec<Vec<Line>>,
    departures: Vec<Line>,
}

impl Batch {
    /// In the order of time, and each session's in the order in which they were written.
    fn only_entries(self) -> Vec<Line> {
        entries::merge(self.entries)
    }

    fn all(self) -> Vec<Line> {
        let mut lines = self.arrivals;
        lines.extend(entries::merge(self.entries));
        lines.extend(self.departures);
        lines
    }
}

fn print(lines: Vec<Line>) -> std::result::Result<(), Stop> {
    let mut text = String::new();
    for line in &lines {
        text.push_str(&line.text);
        text.push('\n');
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Stop::ReaderGone),
        Err(error) => Err(not_written(error).into()),
    }
}

/// Something about a session that stands in no journal.
fn about(id: SessionId, what: &str) -> Line {
    let at = ostler_sys::clock::now();
    Line { at, text: format!(r#"{{"session":"{id}","at":"{at}","what":"{what}"}}"#) }
}
