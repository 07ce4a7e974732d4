//! `ostler up --watch`: a table with a line for each job, drawn again whenever something changes. Without a terminal,
//! one line for each change.

use crate::commands::job_follow;
use crate::commands::looping::failure;
use crate::commands::ls::state_word;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say;
use crate::ui::table::{Cell, cut, lay_out};
use crate::ui::time::age;
use ostler_core::outcome::Kind;
use ostler_core::visible::visible;
use ostler_engine::events::{Changes, News};
use ostler_engine::process::now;
use ostler_engine::{Place, Resume};
use ostler_jobs::up::{Row, Up, rows};
use ostler_tui::terminal::{self, Signal, Signals};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::Duration;

/// A duration on the screen has to be updated.
const TICK: Duration = Duration::from_secs(1);

pub fn to_the_end(context: &Context, place: &Place, spec: &Up) -> Result<Code> {
    if !std::io::stdout().is_terminal() {
        return job_follow::to_the_end(context, place);
    }
    let engine = &context.engine;
    let mut changes = Changes::new(say::notice);
    let wanted: Vec<Signal> = Signal::LEAVING.into_iter().chain([Signal::Resized]).collect();
    let mut drawn = 0;
    let signals = Signals::take(&wanted)?;
    loop {
        // Watch first, look afterwards: what happens in between wakes this process.
        changes.watch_all(engine)?;
        let view = engine.view_without_last(place)?;
        drawn = draw(&rows(engine, place, spec).map_err(failure)?, drawn)?;
        if let Some(outcome) = view.outcome.as_ref().filter(|_| view.ended) {
            if outcome.kind != Kind::Lost {
                return Ok(Code::of(outcome));
            }
            // Driver, holder and keeper were killed together. The job continues from its record.
            engine.resume_once(place, Resume::default(), &mut say::notice)?;
            continue;
        }
        engine.tend(place, &view)?;
        match changes.wait(std::io::stdout(), Some(signals.as_fd()), Some(TICK))? {
            News::ReaderGone => return Ok(Code::Succeeded),
            News::Anything | News::Some { .. } => {}
        }
        while let Some(signal) = signals.next()? {
            if signal != Signal::Resized {
                say::tell!("ostler: {0} is still running; wait for its end: ostler wait {0}", place.id);
                return Ok(if signal == Signal::Quit { Code::Succeeded } else { Code::TimedOut });
            }
        }
    }
}

/// Draws over what was drawn before; returns how many lines there are now.
fn draw(jobs: &[Row], before: usize) -> Result<usize> {
    let columns = terminal::size(std::io::stdout()).map_or(80, |(_, columns)| usize::from(columns));
    let text = table(jobs);
    let mut frame = String::from("\x1b[?2026h");
    if before > 0 {
        frame.push_str(&format!("\x1b[{before}A"));
    }
    let mut lines = 0;
    for line in text.lines() {
        frame.push_str(&format!("\r{}\x1b[K\n", cut(line, columns.saturating_sub(1))));
        lines += 1;
    }
    frame.push_str("\x1b[J\x1b[?2026l");
    say::text(&frame)?;
    Ok(lines)
}

/// The table as text.
pub fn table(jobs: &[Row]) -> String {
    let mut lines = vec![["JOB", "KIND", "STATE", "SESSION", "AGE", "NOW"].map(Cell::new).into()];
    for job in jobs {
        let state = match (&job.done, &job.view) {
            (Some(done), _) if done.skipped => "not run".to_owned(),
            (Some(done), _) if done.earlier => "done before".to_owned(),
            (Some(done), _) if done.succeeded => "succeeded".to_owned(),
            (Some(_), _) => "failed".to_owned(),
            (None, Some(view)) => state_word(view).1,
            (None, None) => "waiting".to_owned(),
        };
        let id = job.view.as_ref().map(|view| view.id.to_string()).unwrap_or_default();
        let old = job.view.as_ref().map(|view| age(now().as_second() - view.created.as_second())).unwrap_or_default();
        let words = match (&job.done, &job.view) {
            (Some(done), _) => done.words.clone(),
            (None, Some(view)) => view.last.clone().unwrap_or_default(),
            (None, None) if job.waits_for.is_empty() => String::new(),
            (None, None) => format!("needs {}", job.waits_for.join(", ")),
        };
        let cells = [job.name.as_str(), job.kind, &state, &id, &old, &visible(&words)];
        lines.push(cells.map(Cell::new).into());
    }
    lay_out(&lines, None)
}
