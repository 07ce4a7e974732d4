//! The tables of `ostler stats`, with a bar for the time of each row. Columns that do not fit into the window are left
//! out, the least important first; on a pipe the bars are ASCII characters.

use super::heading;
use crate::args::By;
use crate::ui::money::rounded;
use crate::ui::style::Style;
use crate::ui::table::cut;
use crate::ui::time::duration;
use ostler_core::limits::counted;
use ostler_engine::stats::Sum;
use ostler_tui::cut_front;
use unicode_width::UnicodeWidthStr;

/// How many rows are shown of one table among several.
pub const SHORT: usize = 10;
/// The largest width of a bar, and the smallest that shows anything.
const BAR: usize = 24;
const SHORTEST_BAR: usize = 6;
/// How much of a row's heading is shown at least.
const SHORTEST_HEADING: usize = 10;
/// The width that output on a pipe is made for.
const PIPE: usize = 100;

pub struct Table {
    pub by: By,
    pub rows: Vec<(String, Sum)>,
    /// At most this many rows.
    pub most: usize,
}

/// A column between the heading and the bar. When there is no room, the columns with the highest number are left out
/// first.
struct Column {
    title: &'static str,
    leaves: u8,
    cell: fn(&Sum) -> String,
}

const COLUMNS: [Column; 6] = [
    Column { title: "TURNS", leaves: 1, cell: |sum| number(sum.turns) },
    Column { title: "TIME", leaves: 0, cell: |sum| duration(sum.duration_ms) },
    Column { title: "COST", leaves: 2, cell: |sum| rounded(Some(sum.cost_usd)).unwrap_or_else(|| "-".to_owned()) },
    Column { title: "IN", leaves: 3, cell: |sum| short(sum.tokens.input) },
    Column { title: "OUT", leaves: 3, cell: |sum| short(sum.tokens.output) },
    Column { title: "SESSIONS", leaves: 4, cell: |sum| number(sum.sessions) },
];

pub fn render(tables: Vec<Table>, total: &Sum, period: &str, style: Style, window: Option<usize>) -> String {
    let width = window.unwrap_or(PIPE);
    let mut text = String::new();
    let words = [
        counted(total.sessions, "session", "sessions"),
        counted(total.turns, "turn", "turns"),
        duration(total.duration_ms),
    ];
    let tokens = total.tokens.input.saturating_add(total.tokens.output);
    let tokens = (tokens > 0).then(|| format!("{} tokens", short(tokens)));
    let words = words.into_iter().chain(rounded(Some(total.cost_usd))).chain(tokens);
    for line in std::iter::once(format!("{period}:")).chain(joined(words, width)) {
        text.push_str(&format!("{}\n", style.bold(&cut(&line, width))));
    }
    for table in tables {
        text.push('\n');
        text.push_str(&one(&table, style, width, window.is_some()));
    }
    text
}

/// Words with commas between them, in as many rows as they need.
fn joined(words: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in words {
        match rows.last_mut() {
            // One column is left for the next comma.
            Some(row) if row.width() + 2 + word.width() < width => row.push_str(&format!(", {word}")),
            Some(row) => {
                row.push(',');
                rows.push(word);
            }
            None => rows.push(word),
        }
    }
    rows
}

fn one(table: &Table, style: Style, width: usize, unicode: bool) -> String {
    // Of days the newest are shown, of everything else the largest.
    let hidden = table.rows.len().saturating_sub(table.most);
    let rows = match table.by {
        By::Day => &table.rows[hidden..],
        By::Agent | By::Folder => &table.rows[..table.rows.len() - hidden],
    };
    let headings: Vec<String> =
        rows.iter().map(|(key, _)| ostler_screen::printable(&heading(table.by, key)).into_owned()).collect();
    let wanted = headings.iter().map(|heading| heading.width()).max().unwrap_or(0).max(table.by.word().len());
    let cells: Vec<Vec<String>> =
        COLUMNS.iter().map(|column| rows.iter().map(|(_, sum)| (column.cell)(sum)).collect()).collect();
    let widths: Vec<usize> = COLUMNS
        .iter()
        .zip(&cells)
        .map(|(column, cells)| cells.iter().map(String::len).max().unwrap_or(0).max(column.title.len()))
        .collect();
    let room = |leaves: u8| -> usize {
        let kept = COLUMNS.iter().zip(&widths).filter(|(column, _)| column.leaves < leaves);
        kept.map(|(_, width)| width + 2).sum()
    };
    let least = wanted.min(SHORTEST_HEADING);
    let leaves = (1..=5).rev().find(|leaves| least + room(*leaves) <= width).unwrap_or(1);
    let heading_width = wanted.min(width.saturating_sub(room(leaves)).max(least));
    let left = width.saturating_sub(heading_width + room(leaves) + 2).min(BAR);
    let bar_width = if left >= SHORTEST_BAR { left } else { 0 };
    let most = rows.iter().map(|(_, sum)| sum.duration_ms).max().unwrap_or(0).max(1);

    let line = |heading: &str, cells: &[&str], bar: &str| {
        let mut line = match table.by {
            By::Day | By::Agent => cut(heading, heading_width),
            By::Folder => cut_front(heading, heading_width),
        };
        line.push_str(&" ".repeat(heading_width.saturating_sub(line.width())));
        for ((cell, column), width) in cells.iter().zip(&COLUMNS).zip(&widths) {
            if column.leaves < leaves {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        if bar_width > 0 {
            line.push_str(&format!("  {bar}"));
        }
        line.trim_end().to_owned()
    };
    let titles = COLUMNS.map(|column| column.title);
    let mut text = format!("{}\n", style.dim(&line(&table.by.word().to_uppercase(), &titles, "")));
    for (index, heading) in headings.iter().enumerate() {
        let cells: Vec<&str> = cells.iter().map(|column| column[index].as_str()).collect();
        let bar = bar(rows[index].1.duration_ms, most, bar_width, unicode);
        text.push_str(&format!("{}\n", line(heading, &cells, &style.cyan(&bar))));
    }
    if hidden > 0 {
        let more = format!("{hidden} more: ostler stats --by {}", table.by.word());
        text.push_str(&format!("{}\n", style.dim(&cut(&more, width))));
    }
    text
}

/// A bar in proportion, to an eighth of a column where there are characters for that. Any value above 0 has at least a
/// mark.
fn bar(value: u64, most: u64, width: usize, unicode: bool) -> String {
    if value == 0 || width == 0 {
        return String::new();
    }
    let eighths = u128::from(value) * (width as u128 * 8) / u128::from(most);
    let eighths = usize::try_from(eighths).unwrap_or(0).max(1);
    if unicode {
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        format!("{}{rest}", "█".repeat(eighths / 8))
    } else {
        "#".repeat(eighths.div_ceil(8))
    }
}

fn number(count: u64) -> String {
    if count == 0 { "-".to_owned() } else { count.to_string() }
}

/// `950`, `12.3k`, `4.5M`: numbers of tokens are large.
fn short(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits of it are shown")]
    let scaled = |unit: f64| count as f64 / unit;
    match count {
        0 => "-".to_owned(),
        1..=999 => count.to_string(),
        1000..=999_949 => format!("{:.1}k", scaled(1e3)),
        999_950..=999_949_999 => format!("{:.1}M", scaled(1e6)),
        _ => format!("{:.1}G", scaled(1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_never_nothing_for_something() {
        assert_eq!(bar(100, 100, 4, true), "████");
        assert_eq!(bar(50, 100, 4, true), "██");
        assert_eq!(bar(1, 100_000, 4, true), "▏");
        assert_eq!(bar(0, 100, 4, true), "");
        assert_eq!(bar(30, 100, 10, false), "###");
    }

    #[test]
    fn large_numbers_are_short() {
        let shown: Vec<String> = [0, 999, 1000, 999_999, 2_500_000, 7_000_000_000].into_iter().map(short).collect();
        assert_eq!(shown, ["-", "999", "1.0k", "1.0M", "2.5M", "7.0G"]);
    }
}
