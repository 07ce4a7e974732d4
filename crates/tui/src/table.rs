//! A table in a window: columns as wide as they need to be; narrower columns with wrapped cells where there is no room;
//! and where even that does not fit, each row as a list of its cells.

use crate::theme::Theme;
use crate::wrap::{Break, spans_width, wrap};
use pulldown_cmark::Alignment;
use ratatui_core::text::{Line, Span};

pub type Cell = Vec<Span<'static>>;

/// No column gets narrower than this, unless its contents are.
const NARROWEST: usize = 6;
const BETWEEN: &str = " │ ";

/// The first row is the head.
pub fn table(rows: &[Vec<Cell>], alignments: &[Alignment], columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    if count == 0 {
        return Vec::new();
    }
    let mut widths: Vec<usize> = (0..count)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| spans_width(cell)).max().unwrap_or(0))
        .map(|width| width.max(1))
        .collect();
    let room = columns.saturating_sub((count - 1) * 3);
    if widths.iter().map(|width| (*width).min(NARROWEST)).sum::<usize>() > room {
        return as_lists(rows, columns, theme);
    }
    while widths.iter().sum::<usize>() > room {
        if let Some(widest) = widths.iter_mut().max() {
            *widest -= 1;
        }
    }
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        lines.extend(lines_of(row, &widths, alignments, theme));
        if number == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(Line::styled(rules.join("─┼─"), theme.dim()));
        }
    }
    lines
}

fn lines_of(row: &[Cell], widths: &[usize], alignments: &[Alignment], theme: Theme) -> Vec<Line<'static>> {
    let none = Vec::new();
    let cells: Vec<Vec<Line<'static>>> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| wrap(row.get(column).unwrap_or(&none), *width, &[], &[], Break::Words))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    (0..height)
        .map(|number| {
            let mut spans = Vec::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if column > 0 {
                    spans.push(Span::styled(BETWEEN, theme.dim()));
                }
                let text = cell.get(number).map(|line| line.spans.clone()).unwrap_or_default();
                let free = width.saturating_sub(spans_width(&text));
                let before = match alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    Some(Alignment::Left | Alignment::None) | None => 0,
                };
                spans.push(Span::raw(" ".repeat(before)));
                spans.extend(text);
                if column + 1 < widths.len() {
                    spans.push(Span::raw(" ".repeat(free - before)));
                }
            }
            spans.retain(|span| !span.content.is_empty());
            Line::from(spans)
        })
        .collect()
}

fn as_lists(rows: &[Vec<Cell>], columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let Some((head, rest)) = rows.split_first() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (number, row) in rest.iter().enumerate() {
        if number > 0 {
            lines.push(Line::default());
        }
        for (column, cell) in row.iter().enumerate() {
            let mut spans = head.get(column).cloned().unwrap_or_default();
            if !spans.is_empty() {
                spans.push(Span::styled(": ", theme.bold()));
            }
            spans.extend(cell.iter().cloned());
            lines.extend(wrap(&spans, columns, &[], &[Span::raw("  ")], Break::Words));
        }
    }
    lines
}
