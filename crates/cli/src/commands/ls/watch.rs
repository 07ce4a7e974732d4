//! `ostler ls --watch`: the list, drawn again whenever something changes. While a session runs, the times are updated
//! once a second; otherwise nothing wakes this process without a change.

use super::table::{self, Look, Row};
use crate::context::Context;
use crate::exit::Result;
use crate::say;
use crate::ui::table::cut;
use ostler_core::limits::counted;
use ostler_engine::events::{Changes, News};
use ostler_engine::list::{Found, Wanted};
use ostler_tui::terminal::{self, Signal, Signals};
use std::os::fd::AsFd;
use std::time::Duration;

/// A duration on the screen has to be updated.
const TICK: Duration = Duration::from_secs(1);

/// The alternate screen, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

pub fn run(context: &Context, wanted: &Wanted) -> Result<()> {
    let wanted_signals: Vec<Signal> = Signal::LEAVING.into_iter().chain([Signal::Resized]).collect();
    let signals = Signals::take(&wanted_signals)?;
    let mut changes = Changes::new(say::notice);
    say::text(ENTER)?;
    let watched = watch(context, wanted, &mut changes, &signals);
    say::text(LEAVE)?;
    watched
}

fn watch(context: &Context, wanted: &Wanted, changes: &mut Changes, signals: &Signals) -> Result<()> {
    loop {
        // Watch first, look afterwards: what happens in between wakes this process.
        changes.watch_all(&context.engine)?;
        let (rows, columns) = terminal::size(std::io::stdout()).unwrap_or((24, 80));
        let look = Look { style: context.style, width: Some(usize::from(columns)) };
        let found = table::find(&context.engine, wanted, look)?;
        let runs = found.listed.iter().any(|one| one.runs);
        draw(found, look, usize::from(rows).saturating_sub(1))?;
        match changes.wait(std::io::stdout(), Some(signals.as_fd()), runs.then_some(TICK))? {
            News::ReaderGone => return Ok(()),
            News::Anything | News::Some { .. } => {}
        }
        while let Some(signal) = signals.next()? {
            if signal != Signal::Resized {
                return Ok(());
            }
        }
    }
}

/// The lines for which there is room, and a last line about those that are left out. The text has the heading, a line
/// for each session, and then lines with questions and remarks.
fn fitting(text: &str, sessions: usize, room: usize) -> (Vec<&str>, Option<String>) {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= room {
        return (lines, None);
    }
    let shown = room.saturating_sub(1);
    let left_out = match (sessions + 1).saturating_sub(shown) {
        0 => counted((lines.len() - shown) as u64, "more line", "more lines"),
        more => counted(more.min(sessions) as u64, "more session", "more sessions"),
    };
    (lines[..shown].to_vec(), Some(format!("… {left_out}; enlarge the window, or list all: ostler ls")))
}

/// Writes a whole frame at once, so that nothing flickers.
fn draw(found: Found<Row>, look: Look, room: usize) -> Result<()> {
    let sessions = found.listed.len();
    let text = match sessions {
        0 => "No session matches.\n".to_owned(),
        _ => table::text(found, look),
    };
    let mut frame = String::from("\x1b[?2026h\x1b[H");
    let (lines, left_out) = fitting(&text, sessions, room);
    let left_out = left_out.map(|words| look.style.dim(&cut(&words, look.width.unwrap_or(usize::MAX))));
    for line in lines.into_iter().chain(left_out.as_deref()) {
        frame.push_str(&format!("{line}\x1b[K\r\n"));
    }
    frame.push_str("\x1b[J\x1b[?2026l");
    say::text(&frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_in_the_last_line() {
        let text = "HEAD\none\ntwo\nthree\n? one\n2 archived\n";
        let shown = |room| {
            let (lines, left_out) = fitting(text, 3, room);
            let words = left_out.map(|words| words.split(';').next().unwrap_or_default().to_owned());
            (lines.len(), words.unwrap_or_default())
        };
        assert_eq!(shown(6), (6, String::new()));
        assert_eq!(shown(5), (4, "… 2 more lines".to_owned()));
        assert_eq!(shown(4), (3, "… 1 more session".to_owned()));
        assert_eq!(shown(3), (2, "… 2 more sessions".to_owned()));
        assert_eq!(shown(1), (0, "… 3 more sessions".to_owned()));
    }
}
