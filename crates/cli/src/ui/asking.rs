//! A question as a person sees it, in one line or in full: what [`ostler_core::asking`] makes of it, in colour.

use super::style::Style;
use ostler_core::asking::{RowKind, Shown};
use ostler_core::fact::Ask;
use ostler_core::record::Mode;
use ostler_core::view::View;

/// How wide a line may be where there is no window.
pub const UNSEEN: usize = 240;

/// In one line of at most this many columns.
pub fn in_a_line(ask: &Ask, style: Style, columns: usize) -> String {
    let line = Shown::of(ask).line(columns);
    if line.said.is_empty() { line.asked } else { format!("{}{}", line.asked, style.dim(&line.said)) }
}

/// In full, each line with its end.
pub fn in_full(ask: &Ask, style: Style, columns: usize) -> String {
    lines_in_full(ask, style, columns).iter().map(|line| format!("{line}\n")).collect()
}

/// In full, line by line.
pub fn lines_in_full(ask: &Ask, style: Style, columns: usize) -> Vec<String> {
    let paint = |kind, text: &str| match kind {
        RowKind::Head | RowKind::Input => text.to_owned(),
        RowKind::Said => style.dim(text),
    };
    Shown::of(ask).full(columns).into_iter().map(|row| paint(row.kind, &row.text)).collect()
}

/// The command that answers it. A session with a terminal asks on its own screen, and is answered there.
pub fn how_to_answer(view: &View) -> String {
    match view.mode {
        Mode::Terminal => format!("ostler attach {}", view.id),
        Mode::Headless if view.asking.as_ref().is_some_and(|ask| !ask.questions().is_empty()) => {
            format!("ostler answer {} --text \"…\" | --deny", view.id)
        }
        Mode::Headless => format!("ostler answer {} --allow | --deny", view.id),
    }
}
