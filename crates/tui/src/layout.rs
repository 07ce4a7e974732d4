//! The rows of one entry in a window of some width.

use crate::clean::{clean, clean_line, clean_output, relative};
use crate::diff::{self, Changed};
use crate::entry::{Entry, Returned, Tone, Tool};
use crate::markdown::{diff_line, markdown};
use crate::theme::Theme;
use crate::wrap::{Break, cut, cut_front, spans_width, width, wrap};
use ostler_core::asking::{RowKind, Shown};
use ostler_core::fact::{Ask, Edit};
use ostler_core::limits::size;
use ratatui_core::text::{Line, Span};

/// How many rows of an edit are shown before it is unfolded.
const EDIT_ROWS: usize = 12;
/// How many lines of a person's message.
const TOLD_LINES: usize = 20;
/// How many lines of a result are shown when it is unfolded; the rest is in the logs.
const RESULT_LINES: usize = 2000;
/// At most this many characters of a detail are used.
const DETAIL: usize = 2000;

/// Everything that decides how an entry looks.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    pub columns: usize,
    pub theme: Theme,
    pub open: bool,
    pub chosen: bool,
    /// The folder in which the session works.
    pub folder: &'a str,
}

pub fn rows(entry: &Entry, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    match entry {
        Entry::Told(text) => told(text, look),
        Entry::Said { piece, below: false } => markdown(&clean(&piece.source()), look.columns, theme),
        Entry::Said { piece, below: true } => {
            let bar = [Span::styled("  │ ", theme.dim())];
            let lines = markdown(&clean(&piece.source()), look.columns.saturating_sub(4).max(1), theme);
            lines.into_iter().map(|line| behind(&bar, line, theme)).collect()
        }
        Entry::Thought(text) => {
            let style = theme.dim().patch(theme.italic());
            plain(&clean(text), style, look.columns, "  ")
        }
        Entry::Tool(tool) => self::tool(tool, look),
        Entry::Question(ask) => question(ask, look),
        Entry::Answered { by, allowed, always } => {
            let verdict =
                if *allowed { Span::styled("allowed", theme.good()) } else { Span::styled("denied", theme.bad()) };
            let rest = always.as_ref().map(|what| format!("; always {what}")).unwrap_or_default();
            let words = Span::raw(clean_line(&format!(" by {by}{rest}")));
            wrap(&[verdict, words], look.columns, &[Span::raw("  ")], &[Span::raw("  ")], Break::Words)
        }
        Entry::Note(tone, text) => {
            let (style, indent) = match tone {
                Tone::Quiet => (theme.dim(), "  "),
                Tone::Bad => (theme.bad(), ""),
            };
            plain(&clean(text), style, look.columns, indent)
        }
    }
}

fn plain(text: &str, style: ratatui_core::style::Style, columns: usize, indent: &'static str) -> Vec<Line<'static>> {
    let before = [Span::raw(indent)];
    let lines = text.trim_end().split('\n');
    lines.flat_map(|line| wrap(&[Span::styled(line, style)], columns, &before, &before, Break::Words)).collect()
}

fn behind(before: &[Span<'static>], line: Line<'static>, theme: Theme) -> Line<'static> {
    let mut spans = before.to_vec();
    spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style).patch_style(theme.dim())));
    Line::from(spans)
}

fn told(text: &str, look: &Look<'_>) -> Vec<Line<'static>> {
    let (theme, text) = (look.theme, clean(text));
    let mark = Span::styled("› ", theme.own().patch(theme.bold()));
    let rest = Span::raw("  ");
    let lines: Vec<&str> = text.trim_end().split('\n').collect();
    let shown = if look.open { lines.len() } else { lines.len().min(TOLD_LINES) };
    let mut rows = Vec::new();
    for (number, line) in lines[..shown].iter().enumerate() {
        let first = if number == 0 { mark.clone() } else { rest.clone() };
        let spans = [Span::styled((*line).to_owned(), theme.bold())];
        rows.extend(wrap(&spans, look.columns, &[first], std::slice::from_ref(&rest), Break::Words));
    }
    if shown < lines.len() {
        rows.push(more(lines.len() - shown, look));
    }
    rows
}

fn more(lines: usize, look: &Look<'_>) -> Line<'static> {
    let words = if lines == 1 { "1 more line".to_owned() } else { format!("{lines} more lines") };
    Line::styled(cut(&format!("  … {words}"), look.columns), look.theme.dim())
}

/// One line, then the changes, then, if unfolded, the result.
fn tool(tool: &Tool, look: &Look<'_>) -> Vec<Line<'static>> {
    let changes: Vec<(&Edit, Vec<Changed>)> =
        tool.edits.iter().map(|edit| (edit, diff::changes(&edit.old, &edit.new))).collect();
    let mut rows = vec![head(tool, &changes, look)];
    let edit_rows = edit_rows(&changes, look);
    let shown = if look.open { edit_rows.len() } else { edit_rows.len().min(EDIT_ROWS) };
    let hidden = edit_rows.len() - shown;
    rows.extend(edit_rows.into_iter().take(shown));
    if hidden > 0 {
        rows.push(more(hidden, look));
    }
    if look.open
        && let Some(result) = &tool.result
    {
        rows.extend(result_rows(result, look));
    }
    if look.open && tool.result.is_none() && changes.is_empty() {
        let detail = Returned { text: tool.detail.clone(), failed: false };
        rows.extend(result_rows(&detail, look));
        rows.push(Line::styled(cut("  no result yet", look.columns), look.theme.dim()));
    }
    if tool.below {
        // The rows were made narrower, to leave room for the bar.
        let bar = [Span::styled("  │ ", look.theme.dim())];
        rows = rows.into_iter().map(|row| behind(&bar, row, look.theme)).collect();
    }
    rows
}

fn head(tool: &Tool, changes: &[(&Edit, Vec<Changed>)], look: &Look<'_>) -> Line<'static> {
    let theme = look.theme;
    let columns = if tool.below { look.columns.saturating_sub(4) } else { look.columns };
    let (mark, mark_style) = match &tool.result {
        None => ("● ", theme.mark()),
        Some(result) if result.failed => ("✘ ", theme.bad()),
        Some(_) => ("● ", theme.good()),
    };
    let mark_style = if look.chosen { mark_style.patch(theme.chosen()) } else { mark_style };
    let name = clean_line(&tool.name);
    let detail: String = tool.detail.chars().take(DETAIL).collect();
    let detail = relative(&clean_line(&detail), look.folder);
    let name_width = 2 + width(&name);
    let room = columns.saturating_sub(name_width + 1);
    let summary = summary(tool, changes, look, room / 2);
    let summary_width = spans_width(&summary);
    let room = room.saturating_sub(summary_width + usize::from(summary_width > 0));
    let is_path = detail.starts_with('/') && !detail.contains(' ');
    let detail = if is_path { cut_front(&detail, room) } else { cut(&detail, room) };
    let mut spans = vec![Span::styled(mark, mark_style), Span::styled(name, theme.bold())];
    if !detail.is_empty() {
        spans.push(Span::raw(format!(" {detail}")));
    }
    if !summary.is_empty() {
        spans.push(Span::raw(" "));
        spans.extend(summary);
    }
    Line::from(spans)
}

/// The result in a few words.
fn summary(tool: &Tool, changes: &[(&Edit, Vec<Changed>)], look: &Look<'_>, room: usize) -> Vec<Span<'static>> {
    let theme = look.theme;
    let mut spans = Vec::new();
    if !changes.is_empty() {
        let (mut added, mut removed) = (0, 0);
        for (_, lines) in changes {
            let counts = diff::counts(lines);
            (added, removed) = (added + counts.0, removed + counts.1);
        }
        spans.push(Span::styled(format!("+{added}"), theme.good()));
        spans.push(Span::styled(format!(" -{removed}"), theme.bad()));
    }
    let Some(result) = &tool.result else {
        spans.push(Span::styled(if spans.is_empty() { "…" } else { " …" }, theme.mark()));
        return spans;
    };
    let first = result.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let lines = result.text.trim_end().lines().count();
    if result.failed {
        let words = clean_line(&first.chars().take(DETAIL).collect::<String>());
        let words = if words.trim().is_empty() { "failed".to_owned() } else { relative(words.trim(), look.folder) };
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        let room = room.saturating_sub(spans_width(&spans));
        spans.push(Span::styled(cut(&words, room.max(6)), theme.bad()));
    }
    let whole = result.failed && lines == 1 && spans.last().is_some_and(|span| !span.content.ends_with('…'));
    if lines > 0 && changes.is_empty() && !whole {
        let arrow = if look.open { "▾" } else { "▸" };
        let gap = if spans.is_empty() { "" } else { " " };
        let count = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        spans.push(Span::styled(format!("{gap}{arrow} {count}"), theme.dim()));
    }
    spans
}

fn edit_rows(changes: &[(&Edit, Vec<Changed>)], look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let columns = look.columns.saturating_sub(2).max(1);
    let mut rows = Vec::new();
    for (edit, lines) in changes {
        // The line above names a single file; with several files, each is named here.
        if changes.len() > 1 && changes.iter().any(|(other, _)| other.path != edit.path) {
            let path = relative(&clean_line(&edit.path), look.folder);
            rows.push(Line::styled(cut(&format!("  {path}"), look.columns), theme.bold()));
        }
        for line in lines {
            let (sign, text, style) = match line {
                Changed::Same(text) => ("  ", text, theme.plain()),
                Changed::Removed(text) => ("- ", text, theme.bad()),
                Changed::Added(text) => ("+ ", text, theme.good()),
                Changed::Skipped(count) => {
                    rows.push(Line::styled(format!("    ⋮ {count} unchanged"), theme.dim()));
                    continue;
                }
            };
            let first = [Span::styled(format!("  {sign}"), style)];
            let rest = [Span::raw("    ")];
            let spans = [Span::styled(text.clone(), style)];
            rows.extend(wrap(&spans, columns, &first, &rest, Break::Anywhere));
        }
    }
    rows
}

fn result_rows(result: &Returned, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let text = clean_output(&result.text);
    let text = text.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    let before = [Span::styled("  │ ", theme.dim())];
    let is_diff = text.lines().any(|line| line.starts_with("@@ ")) || text.starts_with("diff --git");
    let total = text.lines().count();
    let mut rows = Vec::new();
    for line in text.lines().take(RESULT_LINES) {
        let span = if is_diff { diff_line(line, theme) } else { Span::raw(line.to_owned()) };
        rows.extend(wrap(&[span], look.columns, &before, &before, Break::Anywhere));
    }
    if total > RESULT_LINES {
        let words = format!("  … {} more lines, {} in all", total - RESULT_LINES, size(text.len() as u64));
        rows.push(Line::styled(cut(&words, look.columns), theme.dim()));
    }
    rows
}

/// The person who answers reads this: only what [`Shown`] makes of it, row by row.
fn question(ask: &Ask, look: &Look<'_>) -> Vec<Line<'static>> {
    const MARK: &str = "? asks ";
    /// In a narrower window the mark has a row of its own, so that nothing is cut off.
    const NARROW: usize = 30;
    let theme = look.theme;
    let mark = Span::styled(MARK, theme.mark().patch(theme.bold()));
    let beside = look.columns >= NARROW;
    let columns = if beside { look.columns - MARK.len() } else { look.columns };
    let mut rows: Vec<Line<'static>> = if beside { Vec::new() } else { vec![Line::from(mark.clone())] };
    for row in Shown::of(ask).full(columns) {
        let mut spans = if rows.is_empty() { vec![mark.clone()] } else { Vec::new() };
        spans.push(match row.kind {
            RowKind::Head | RowKind::Input => Span::raw(row.text),
            RowKind::Said => Span::styled(row.text, theme.dim()),
        });
        rows.push(Line::from(spans));
    }
    rows
}
