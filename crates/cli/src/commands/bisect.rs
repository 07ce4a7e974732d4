//! `ostler bisect`: which turn of a session broke a check.

use crate::args::Bisect;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use ostler_core::visible::{shortened, visible};
use ostler_engine::turns::{Bisected, Checked};
use ostler_tui::terminal::{Signal, Signals};
use std::io::Write;
use std::os::fd::AsFd;

/// How much of a prompt is shown.
const PROMPT: usize = 200;

pub fn run(context: &Context, args: &Bisect) -> Result<Code> {
    if args.check.trim().is_empty() {
        return Err(Failure::usage("the check is empty; give a shell command that fails when it is broken"));
    }
    let place = context.engine.select(&args.id)?;
    let mut tell = |Checked { turn, good }: Checked| {
        let after = if turn == 0 { "at the start".to_owned() } else { format!("after turn {turn}") };
        // Progress is for a person who waits; it is not part of the result.
        let _ = writeln!(std::io::stderr(), "{after}: {}", if good { "good" } else { "bad" });
    };
    let leave = Signals::take(&Signal::LEAVING)?;
    match context.engine.bisect(&place, &args.check, leave.as_fd(), &mut tell)? {
        Bisected::Broken { turn, mixed, good, prompt, diff, check } => {
            let between = match (good + 1 == turn, mixed) {
                (true, false) => String::new(),
                (true, true) => format!(" (or turn {}, which had begun when the files were kept)", turn + 1),
                (false, false) => format!(" (or one after turn {good})"),
                (false, true) => format!(" (or one after turn {good}, or turn {})", turn + 1),
            };
            say!("{}: turn {turn}{between} broke it; see ostler logs {}", place.id, check.id)?;
            if let Some(prompt) = prompt {
                say!("prompt: {}", shortened(&visible(&prompt), PROMPT))?;
            }
            crate::say::text(&String::from_utf8_lossy(&diff))?;
            Ok(Code::Succeeded)
        }
        Bisected::BadAtStart(check) => Err(Failure::new(
            Code::Failed,
            format!(
                "{}: the check fails at the start already, so no turn broke it; see ostler logs {}",
                place.id, check.id
            ),
        )),
        Bisected::GoodAtEnd { turn } => Err(Failure::new(
            Code::Failed,
            format!("{}: the check succeeds after turn {turn}, the last one; nothing is broken", place.id),
        )),
    }
}
