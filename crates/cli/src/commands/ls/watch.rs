//! `ostler ls --watch`: the list again whenever something changes. While anything runs its times are brought up to date once
//! a second; while nothing does, nothing is done.

use super::{Found, Listed, Wanted, find, table};
use crate::commands::events::{Changes, News};
use crate::context::Context;
use crate::exit::Result;
use crate::say;
use ostler_sys::signals::Signals;
use rustix::process::Signal;
use std::time::Duration;

/// While a duration is on the screen it has to move.
const TICK: Duration = Duration::from_secs(1);

/// A screen of its own, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

pub fn run(context: &Context, wanted: &Wanted) -> Result<()> {
    let signals = Signals::take(&[Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM, Signal::WINCH])?;
    let mut changes = Changes::new();
    context.home.open_or_make(&context.home.sessions())?;
    say::text(ENTER)?;
    let watched = watch(context, wanted, &mut changes, &signals);
    say::text(LEAVE)?;
    watched
}

fn watch(context: &Context, wanted: &Wanted, changes: &mut Changes, signals: &Signals) -> Result<()> {
    loop {
        // Watch first, look afterwards: what happens in between wakes us.
        changes.watch_folders(&context.home);
        for place in context.home.live_places()? {
            changes.watch_session(&place);
        }
        let found = find(context, wanted)?;
        let runs = found.listed.iter().any(|one| matches!(one, Listed::Good(view) if !view.ended));
        draw(context, &found)?;
        match changes.wait(Some(signals), runs.then_some(TICK))? {
            News::ReaderGone => return Ok(()),
            News::Anything | News::Some { .. } => {}
        }
        while let Some(signal) = signals.next()? {
            if signal != Signal::WINCH.as_raw() {
                return Ok(());
            }
        }
    }
}

/// One whole frame at once, so that nothing flickers.
fn draw(context: &Context, found: &Found<Listed>) -> Result<()> {
    let (rows, columns) = ostler_sys::pty::size(std::io::stdout()).unwrap_or((24, 80));
    let text = match found.listed.is_empty() {
        true => "No session matches.\n".to_owned(),
        false => table::text(found, context.style, Some(usize::from(columns))),
    };
    let mut frame = String::from("\x1b[?2026h\x1b[H");
    for line in text.lines().take(usize::from(rows).saturating_sub(1)) {
        frame.push_str(&format!("{line}\x1b[K\r\n"));
    }
    frame.push_str("\x1b[J\x1b[?2026l");
    say::text(&frame)
}
