//! Follows a job: its lines as they come, until it ends or asks. A killed driver is not visible here: its job goes on.

use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::{say, tell};
use crate::ui::asking::{UNSEEN, in_a_line};
use crate::ui::called::{called, called_at};
use ostler_core::outcome::Kind;
use ostler_engine::Place;
use ostler_engine::session_watch::SessionWatch;
use ostler_engine::stop::{Stop, StopHow};
use ostler_tui::terminal::{Signal, Signals};
use std::os::fd::AsFd;

/// How often a job is continued from here. A job that is lost more often has another problem.
const CONTINUED: u32 = 50;

/// Prints the lines of a job. Ctrl-C stops the job properly; it keeps running after Ctrl-\, SIGTERM, or when the
/// terminal disappears.
pub fn to_the_end(context: &Context, place: &Place) -> Result<Code> {
    let engine = &context.engine;
    let signals = Signals::take(&Signal::LEAVING)?;
    // Subscribe first, look afterwards: what happens in between wakes this process.
    let mut watch = SessionWatch::new(place)?;
    let (mut told, mut continued) = (0, 0);
    loop {
        let view = engine.view_without_last(place)?;
        let lines = engine.job_lines(place)?;
        for line in lines.iter().skip(told) {
            say!("{}", ostler_screen::printable(line))?;
        }
        told = told.max(lines.len());
        if let Some(outcome) = view.outcome.as_ref().filter(|_| view.ended) {
            // Driver, holder and keeper were killed together. The job continues from its record.
            if continued < CONTINUED && engine.recover_one(place, &mut crate::say::notice)? {
                continued += 1;
                watch = SessionWatch::new(place)?;
                continue;
            }
            if !matches!(outcome.kind, Kind::Succeeded | Kind::Failed)
                || outcome.exit_code != Some(i32::from(outcome.kind == Kind::Failed))
            {
                tell!("ostler: {} {}: {}", called(&view), outcome.kind.word(), outcome.cause);
            }
            return Ok(Code::of(outcome));
        }
        if let Some(ask) = &view.asking {
            tell!("ostler: {} asks: {}", called(&view), in_a_line(ask, context.style, UNSEEN));
            tell!("ostler: answer it: ostler answer {0} --text \"…\"; then: ostler wait {0}", view.id);
            return Ok(Code::Asks);
        }
        engine.tend(place, &view)?;
        let (_, ready) = watch.wait(&[signals.as_fd()])?;
        if ready.first() != Some(&true) {
            continue;
        }
        while let Some(signal) = signals.next()? {
            if signal == Signal::Interrupt {
                tell!("\nostler: stopping");
                let stop = Stop { how: StopHow::Interrupt, grace: engine.config.grace, why: "Ctrl-C".to_owned() };
                engine.ask_to_stop(place.clone(), &stop)?.wait(&mut crate::say::notice)?;
                continue;
            }
            let words = format!(
                "\nostler: {} is still running; wait for its end: ostler wait {}\n",
                called_at(place),
                place.id
            );
            // The signal may mean that the terminal is gone.
            let _ = crate::follow::err(words.as_bytes());
            return Ok(if signal == Signal::Quit { Code::Succeeded } else { Code::TimedOut });
        }
    }
}
