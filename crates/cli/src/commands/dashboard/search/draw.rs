//! How a search looks: the hits, below them the selected hit with the command that continues it, and the input line.

use super::super::draw::{clear, hint, put, rule};
use super::super::state::State;
use super::{Searching, Status};
use crate::commands::ls::tilde;
use crate::commands::search::{command_line, fit};
use crate::ui::time::{age, size};
use jiff::Timestamp;
use ostler_core::limits::counted;
use ostler_engine::search::{Hit, Piece};
use ostler_tui::clean::clean_line;
use ostler_tui::{Buffer, Rect, Theme, width};

/// The rows of the selected hit, where the window has room for them: a rule, what it is, where, its words, two
/// commands.
const DETAIL: u16 = 6;
/// With fewer rows than this the window is not divided.
const ROOM_FOR_TWO: u16 = 12;

/// Draws the search over the whole window except its first row. Returns the position of the cursor.
pub fn draw(state: &State, searching: &mut Searching, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let (rows, columns) = state.size;
    let theme = state.theme;
    let body = Rect::new(0, 1.min(rows), columns, rows.saturating_sub(2));
    clear(body, buffer);
    let bottom = Rect::new(0, rows.saturating_sub(1), columns, 1.min(rows));
    let detail = if body.height >= ROOM_FOR_TWO && searching.hit().is_some() { DETAIL } else { 0 };
    let status = Rect { height: 1.min(body.height), ..body };
    let list = Rect { y: body.y + status.height, height: body.height.saturating_sub(1 + detail), ..body };
    searching.height = usize::from(list.height);
    searching.settle();
    put(buffer, status, 0, &words(searching), theme.bold());
    let seen = searching.hits.iter().enumerate().skip(searching.top).zip(list.top()..list.bottom());
    for ((place, hit), y) in seen {
        let line = Rect { y, height: 1, ..list };
        row(hit, state.now, line, buffer, theme);
        if place == searching.picked {
            buffer.set_style(line, theme.chosen());
        }
    }
    if let (Some(hit), DETAIL) = (searching.hit(), detail) {
        describe(hit, Rect { y: list.bottom(), height: detail, ..body }, buffer, theme);
    }
    let command = searching.hit().map(|hit| clean_line(&command_line(&hit.command))).unwrap_or_default();
    if searching.confirm {
        let line = format!("run: {command}? y / n");
        put(buffer, bottom, 0, &format!("{line:<0$}", usize::from(columns)), theme.bold().patch(theme.chosen()));
        return None;
    }
    if let Some(said) = &state.said {
        hint(state, &said.text, Rect { height: 1, ..status }, buffer);
    }
    let x = put(buffer, bottom, 0, "search ", theme.bold());
    let area = Rect { x, width: columns.saturating_sub(x), ..bottom };
    Some(searching.input.render(area, buffer, theme))
}

/// The result of the search, or how far it is.
fn words(searching: &Searching) -> String {
    let found = counted(searching.hits.len() as u64, "message", "messages");
    match &searching.status {
        Status::Nothing => "words to find in every conversation on this machine; Esc goes back".to_owned(),
        Status::Busy if searching.hits.is_empty() => "searching…".to_owned(),
        Status::Busy => format!("{found} · searching…"),
        Status::Reads { read, all } => {
            format!("reading conversations into the search index: {} of {}", size(*read), size(*all))
        }
        Status::Found { .. } if searching.hits.is_empty() => {
            "nothing found; try fewer words · Esc goes back".to_owned()
        }
        Status::Found { complete: false, .. } => format!("{found} · older ones are left out; more words find them"),
        Status::Found { updating: true, .. } => {
            format!("{found} · another search updates the index; the newest may be missing")
        }
        Status::Found { .. } => format!("{found} · ↓ ↑ select · Enter goes there · Esc goes back"),
        Status::Failed(words) => clean_line(words),
    }
}

fn title(hit: &Hit) -> String {
    clean_line(hit.name.as_deref().or(hit.title.as_deref()).unwrap_or("(no prompt)"))
}

fn row(hit: &Hit, now: Timestamp, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let old = hit.at.map_or("?".to_owned(), |at| age(now.as_second() - at.as_second()));
    let wide = usize::from(area.width);
    let named = if wide >= 70 { wide / 4 } else { 0 };
    let mut x = put(buffer, area, 0, &format!("{old:>4} "), theme.dim());
    if named > 0 {
        let end = x + u16::try_from(named).unwrap_or(0);
        put(buffer, Rect { width: end.min(area.width), ..area }, x, &title(hit), theme.bold());
        x = put(buffer, area, end + 1, &format!("{:<6}", hit.role.word()), theme.dim());
    }
    pieces(&hit.snippet, x, area, buffer, theme);
}

/// The part of a message around the words, with the words marked.
fn pieces(pieces: &[Piece], mut x: u16, area: Rect, buffer: &mut Buffer, theme: Theme) {
    for piece in fit(pieces, usize::from(area.width.saturating_sub(x))) {
        let style = if piece.marked { theme.bold().patch(theme.mark()) } else { theme.plain() };
        x = put(buffer, area, x, &clean_line(&piece.text), style);
    }
}

fn describe(hit: &Hit, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let line = |row: u16| Rect { y: area.y + row, height: 1, ..area };
    rule(line(0), buffer, theme);
    put(buffer, line(1), 0, &title(hit), theme.bold());
    let place = hit.cwd.as_deref().map(|cwd| format!(" in {}", tilde(cwd))).unwrap_or_default();
    put(buffer, line(2), 0, &clean_line(&format!("{}{place}", hit.agent)), theme.dim());
    pieces(&hit.snippet, 0, line(3), buffer, theme);
    let (next, read) = (clean_line(&command_line(&hit.command)), clean_line(&command_line(&hit.read)));
    let labels = ["Enter runs ", "read it:   "];
    for (row, (label, command)) in (4..).zip(labels.into_iter().zip([next, read])) {
        // The label is left out where the command would be cut otherwise.
        let label = if width(label) + width(&command) > usize::from(area.width) { "" } else { label };
        let x = put(buffer, line(row), 0, label, theme.dim());
        put(buffer, line(row), x, &command, theme.own());
    }
}
