//! The two lines around the input: above it what the session is and does, below it what can be done.

use crate::commands::attach::longer;
use crate::ui::money::rounded;
use crate::ui::time::{age, clock, duration, stays_true};
use jiff::Timestamp;
use ostler_core::asking::Shown;
use ostler_core::view::{Phase, View};
use ostler_core::visible::visible;
use ostler_tui::clean::clean_line;
use ostler_tui::{Line, Span, Theme, cut, width};
use std::time::Duration;

pub struct Status {
    /// How to detach, in words.
    leave: String,
    read_only: bool,
    /// Shown until the next key.
    notice: Option<String>,
}

impl Status {
    /// `inside`: this process runs inside a session of ours, whose own attach gets the first press of the key.
    pub fn new(leave_key: &str, inside: bool, read_only: bool) -> Status {
        let leave = if inside { format!("{leave_key} twice detaches") } else { format!("{leave_key} detaches") };
        Status { leave, read_only, notice: None }
    }

    pub fn notice(&mut self, words: impl Into<String>) {
        self.notice = Some(words.into());
    }

    pub fn forget_notice(&mut self) {
        self.notice = None;
    }

    /// What a person should know in addition to the state.
    pub fn notices(&self, view: &View) -> Vec<String> {
        let waits = view.message_waits.as_ref().map(|why| format!("not delivered yet: {why}"));
        let alarm = view.alarm.clone();
        let retrying = view.retrying.as_ref().map(|retrying| format!("retrying: {}", retrying.words()));
        [alarm, waits, retrying, self.notice.clone()].into_iter().flatten().map(|text| clean_line(&text)).collect()
    }

    /// What the session is and does, in one line that fits.
    pub fn state(
        &self,
        view: &View,
        model: Option<&str>,
        now: Timestamp,
        columns: usize,
        theme: Theme,
    ) -> Line<'static> {
        let name = clean_line(view.name.as_deref().unwrap_or(view.id.as_str()));
        let name = Span::styled(cut(&name, (columns / 3).max(8)), theme.bold());
        let used = width(&name.content) + 1;
        if let (Phase::Asking, Some(ask)) = (view.state, &view.asking) {
            const ASKS: &str = "asks: ";
            let asked = Shown::of(ask).line(columns.saturating_sub(used + ASKS.len()).max(20)).asked;
            let asks = Span::styled(ASKS, theme.mark().patch(theme.bold()));
            return Line::from(vec![name, Span::raw(" "), asks, Span::raw(asked)]);
        }
        let (state, short) = state(view, now);
        let state = if used + width(&state) <= columns { state } else { short };
        let mut spans = vec![name, Span::raw(" "), Span::styled(state, state_style(view.state, theme))];
        let mut used: usize = spans.iter().map(|span| width(&span.content)).sum();
        // The most important parts come first. A part that does not fit is left out.
        let agent = Some(clean_line(&view.agent));
        let model = model.map(clean_line).filter(|model| *model != view.agent);
        let queued = (view.queued > 0).then(|| format!("{} queued", view.queued));
        let tokens = view.tokens.map(|tokens| format!("{} in, {} out", count(tokens.input), count(tokens.output)));
        for part in [queued, rounded(view.cost_usd), agent, model, tokens].into_iter().flatten() {
            let part = format!(" · {part}");
            if used + width(&part) <= columns {
                used += width(&part);
                spans.push(Span::styled(part, theme.dim()));
            }
        }
        Line::from(spans)
    }

    /// What can be done; how to detach comes first.
    pub fn hints(&self, view: &View, now: Timestamp, columns: usize, theme: Theme) -> Line<'static> {
        let mut parts = vec![self.leave.clone()];
        let mut hint = |text: &str| parts.push(text.to_owned());
        if self.read_only {
            hint("PgUp scrolls");
            hint("Ctrl-O unfolds");
        } else {
            match view.state {
                Phase::Asking => {
                    let words = view.asking.as_ref().is_some_and(|ask| !ask.questions().is_empty());
                    hint(if words { "your answer, or n" } else { "y or n, then Enter" });
                    if let Some(what) = longer(view) {
                        hint(&format!("a: always {}", visible(&what)));
                    }
                    hint("Ctrl-C interrupts");
                    hint(&format!("asking for {}", age(seconds(view, now))));
                }
                Phase::Starting | Phase::Working | Phase::Running => {
                    hint("Ctrl-C interrupts");
                    hint("Enter queues");
                    hint("Ctrl-O unfolds");
                    hint("PgUp scrolls");
                }
                Phase::Queued => {
                    hint("Enter queues");
                    hint("Alt-Enter new line");
                }
                Phase::Idle | Phase::Waiting => {
                    hint("Enter sends");
                    hint("Alt-Enter new line");
                    hint("Ctrl-O unfolds");
                    hint("PgUp scrolls");
                }
                Phase::Stopping | Phase::Ended => {}
            }
        }
        let mut line = String::new();
        for part in parts {
            let gap = if line.is_empty() { "" } else { " · " };
            if width(&line) + width(gap) + width(&part) <= columns {
                line.push_str(gap);
                line.push_str(&part);
            }
        }
        Line::styled(line, theme.dim())
    }

    /// How long the shown state stays correct; `None`: until the next event.
    pub fn lasts(view: &View, now: Timestamp) -> Option<Duration> {
        stays_true(view.state, view.since, now)
    }
}

/// The queued messages, one per row: the first line of each, and how many more there are.
pub fn queued_lines(texts: &[String], rows: usize) -> Vec<String> {
    let shown = if texts.len() > rows { rows.saturating_sub(1) } else { rows };
    let first = |text: &String| clean_line(text.trim().lines().next().unwrap_or_default());
    let mut lines: Vec<String> = texts.iter().take(shown).map(|text| format!("queued › {}", first(text))).collect();
    if rows > 0 && texts.len() > shown {
        lines.push(format!("queued › {} more", texts.len() - shown));
    }
    lines
}

fn seconds(view: &View, now: Timestamp) -> i64 {
    now.duration_since(view.since).as_secs()
}

/// The state with its time, and without. At rest it says since when, which stays correct as time passes.
fn state(view: &View, now: Timestamp) -> (String, String) {
    let word = view.state.word().to_owned();
    let with_time = match view.state {
        Phase::Waiting if view.resumes_at.is_some() => {
            format!("{word} until {}", clock(view.resumes_at.unwrap_or(view.since), now))
        }
        Phase::Idle | Phase::Waiting | Phase::Ended => {
            format!("{word} since {}", clock(view.since, now))
        }
        Phase::Queued | Phase::Starting | Phase::Working | Phase::Running | Phase::Asking | Phase::Stopping => {
            let seconds = u64::try_from(seconds(view, now)).unwrap_or(0);
            let time = if seconds < 10 { format!("{seconds}s") } else { duration(seconds * 1000) };
            format!("{word} {time}")
        }
    };
    (with_time, word)
}

fn state_style(state: Phase, theme: Theme) -> ostler_tui::Style {
    match state {
        Phase::Starting | Phase::Working | Phase::Running => theme.good(),
        Phase::Asking | Phase::Stopping => theme.mark(),
        Phase::Queued | Phase::Idle | Phase::Waiting | Phase::Ended => theme.plain(),
    }
}

/// `950`, `3.1k`, `2.4M`.
fn count(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
