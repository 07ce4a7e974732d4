//! `ostler du`: what sessions use on the disk, and what is left of it.

use crate::args::Du;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out, window};
use crate::ui::time::size;
use ostler_core::limits::counted;
use ostler_engine::disk_usage::{DiskUsage, HomeOnDisk, total};

/// How many of the largest sessions are shown, unless all are asked for.
const SHOWN: usize = 20;

const TITLES: [&str; 5] = ["SIZE", "OUTPUT", "CHECKPOINTS", "SNAPSHOTS", "RECORDS"];

pub fn run(context: &Context, args: &Du) -> Result<Code> {
    let everything = args.ids.is_empty();
    let only = if everything { None } else { Some(context.engine.select_all(&args.ids)?) };
    let home = context.engine.disk_usage(only)?;
    if args.json {
        let object = serde_json::to_value(&home).unwrap_or_default();
        say!("{}", serde_json::to_string_pretty(&object).unwrap_or_default())?;
    } else {
        let shown = if args.all || !everything { home.sessions.len() } else { SHOWN };
        crate::say::text(&as_text(context, &home, shown))?;
    }
    Ok(Code::Succeeded)
}

fn as_text(context: &Context, home: &HomeOnDisk, shown: usize) -> String {
    let mut rows: Vec<([String; 5], String)> = Vec::new();
    let mut row = |usage: &DiskUsage, what: &str| {
        let sizes = [usage.total(), usage.output, usage.checkpoints, usage.snapshots, usage.records];
        rows.push((sizes.map(|bytes| if bytes == 0 { "-".to_owned() } else { size(bytes) }), what.to_owned()));
    };
    let (largest, rest) = home.sessions.split_at(shown.min(home.sessions.len()));
    for one in largest {
        let name = one.name.as_deref().unwrap_or_default();
        let archived = if one.archived { "(archived)" } else { "" };
        let words = [one.id.as_str(), name, archived];
        row(&one.usage, &words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
    }
    if !rest.is_empty() {
        row(&total(rest), &format!("{} more (ostler du --all)", rest.len()));
    }
    if home.other > 0 {
        row(&DiskUsage { records: home.other, ..DiskUsage::default() }, "outside sessions");
    }
    let mut all = total(&home.sessions);
    all.records += home.other;
    let sessions = counted(home.sessions.len() as u64, "session", "sessions");
    row(&all, &format!("total: {sessions}, {} archived", home.archived()));
    let style = context.style;
    let mut table =
        vec![cells(&TITLES.map(str::to_owned), &rows, "SESSION", |cell| Cell::painted(cell, style, Style::dim))];
    table.extend(rows.iter().map(|(sizes, what)| cells(sizes, &rows, what, Cell::new)));
    let mut text = lay_out(&table, window());
    if let (Some(free), Some(all), Some(min_free)) = (home.disk_free, home.disk_size, home.min_free_space) {
        let least = if min_free == 0 { "off".to_owned() } else { size(min_free) };
        text.push_str(&format!("disk: {} free of {} (min_free_space {least})\n", size(free), size(all)));
    }
    text
}

/// A row, with the sizes aligned to the right, as numbers are.
fn cells(sizes: &[String; 5], rows: &[([String; 5], String)], what: &str, cell: impl Fn(&str) -> Cell) -> Vec<Cell> {
    let width = |column: usize| {
        let title = TITLES[column].len();
        rows.iter().map(|(sizes, _)| sizes[column].len()).max().unwrap_or(0).max(title)
    };
    let sizes = sizes.iter().enumerate().map(|(column, text)| format!("{text:>0$}", width(column)));
    sizes.chain([what.to_owned()]).map(|text| cell(&text)).collect()
}
