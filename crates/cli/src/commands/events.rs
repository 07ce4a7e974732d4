//! `ostler events`: everything that happens to every session, as JSON lines.

use crate::args::Events;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{not_written, notice};
use crate::ui::time::parse_since;
use ostler_engine::events::{Line, Only};
use ostler_engine::process::now;
use std::io::{ErrorKind, Write};

pub fn run(context: &Context, args: &Events) -> Result<Code> {
    let engine = &context.engine;
    let only = only(context, args)?;
    if !args.follow {
        print(&engine.events(only, notice)?)?;
        return Ok(Code::Succeeded);
    }
    let (before, mut events) = engine.follow_events(only, notice)?;
    let mut read = print(&before)?;
    while read && let Some(lines) = events.wait(std::io::stdout())? {
        read = print(&lines)?;
    }
    Ok(Code::Succeeded)
}

fn only(context: &Context, args: &Events) -> Result<Only> {
    let since = args.since.as_deref().map(|text| parse_since(text, now())).transpose();
    let sessions = if args.ids.is_empty() {
        None
    } else {
        let places = context.engine.select_all(&args.ids)?;
        // A session that cannot be opened is an error, and not a session without events.
        places.iter().try_for_each(|place| place.open().map(drop))?;
        Some(places.into_iter().map(|place| place.id).collect())
    };
    Ok(Only { sessions, since: since.map_err(Failure::usage)? })
}

/// `false` when the reader of standard output is gone.
fn print(lines: &[Line]) -> Result<bool> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.text);
        text.push('\n');
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(not_written(error)),
    }
}
