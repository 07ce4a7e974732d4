//! `ostler du`: what sessions use on the disk, and what is left of it.

use crate::args::Du;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use crate::ui::table::{Cell, lay_out};
use crate::ui::time::size;
use ostler_core::limits::{counted, default_min_free};
use ostler_store::disk_usage::{Counter, DiskUsage};
use ostler_store::home::Place;
use ostler_sys::dir::{Dir, Space, space};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::Path;

/// So many of the largest are shown, unless all are asked for.
const SHOWN: usize = 20;

const TITLES: [&str; 5] = ["SIZE", "OUTPUT", "CHECKPOINTS", "SNAPSHOTS", "RECORDS"];

struct Used {
    place: Place,
    name: Option<String>,
    usage: DiskUsage,
}

pub fn run(context: &Context, args: &Du) -> Result<Code> {
    let home = &context.engine.home;
    let everything = args.ids.is_empty();
    let mut places = if everything {
        home.live_places()?.into_iter().chain(home.archived_places()?).collect()
    } else {
        context.engine.select_all(&args.ids)?
    };
    // Always in the same order, so that a file of two sessions counts for the same one.
    places.sort_by_key(|place| place.id);
    let mut counter = Counter::default();
    let mut used = Vec::new();
    for place in places {
        let usage = counter.session(&place.path)?;
        // A damaged folder has no name, and uses as much as it does.
        let name = place.open().and_then(|folder| folder.session()).ok().and_then(|session| session.name);
        used.push(Used { place, name, usage });
    }
    used.sort_by_key(|one| std::cmp::Reverse(one.usage.total()));
    let other = if everything { counter.rest(home.root())? } else { 0 };
    let disk = disk_of(home.root())?;
    let min_free =
        disk.map(|disk| context.engine.config.min_free_space.unwrap_or_else(|| default_min_free(disk.total)));
    if args.json {
        say!("{}", serde_json::to_string_pretty(&as_json(&used, other, disk, min_free)).unwrap_or_default())?;
    } else {
        let shown = if args.all || !everything { used.len() } else { SHOWN };
        crate::say::text(&as_text(context, &used, shown, other, disk, min_free))?;
    }
    Ok(Code::Succeeded)
}

/// Before the first session there is no folder, and nothing of ours on any disk.
fn disk_of(root: &Path) -> Result<Option<Space>> {
    match Dir::open(root) {
        Ok(dir) => Ok(Some(space(dir)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn total(used: &[Used]) -> DiskUsage {
    used.iter().fold(DiskUsage::default(), |sum, one| DiskUsage {
        output: sum.output + one.usage.output,
        checkpoints: sum.checkpoints + one.usage.checkpoints,
        snapshots: sum.snapshots + one.usage.snapshots,
        records: sum.records + one.usage.records,
    })
}

fn as_text(
    context: &Context,
    used: &[Used],
    shown: usize,
    other: u64,
    disk: Option<Space>,
    min_free: Option<u64>,
) -> String {
    let mut rows: Vec<([String; 5], String)> = Vec::new();
    let mut row = |usage: &DiskUsage, what: &str| {
        let sizes = [usage.total(), usage.output, usage.checkpoints, usage.snapshots, usage.records];
        rows.push((sizes.map(|bytes| if bytes == 0 { "-".to_owned() } else { size(bytes) }), what.to_owned()));
    };
    let (largest, rest) = used.split_at(shown.min(used.len()));
    for one in largest {
        let name = one.name.as_deref().unwrap_or_default();
        let archived = if one.place.archived { "(archived)" } else { "" };
        let words = [one.place.id.as_str(), name, archived];
        row(&one.usage, &words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
    }
    if !rest.is_empty() {
        row(&total(rest), &format!("{} more (ostler du --all)", rest.len()));
    }
    if other > 0 {
        row(&DiskUsage { records: other, ..DiskUsage::default() }, "outside sessions");
    }
    let mut all = total(used);
    all.records += other;
    let archived = used.iter().filter(|one| one.place.archived).count();
    let sessions = counted(used.len() as u64, "session", "sessions");
    row(&all, &format!("total: {sessions}, {archived} archived"));
    let style = context.style;
    let mut table = vec![cells(&TITLES.map(str::to_owned), &rows, "SESSION", |cell| {
        Cell::painted(cell, move |text| style.dim(text))
    })];
    table.extend(rows.iter().map(|(sizes, what)| cells(sizes, &rows, what, Cell::new)));
    let terminal = std::io::stdout().is_terminal().then(|| ostler_sys::pty::size(std::io::stdout())).flatten();
    let mut text = lay_out(&table, terminal.map(|(_, columns)| usize::from(columns)));
    if let (Some(disk), Some(min_free)) = (disk, min_free) {
        let least = if min_free == 0 { "off".to_owned() } else { size(min_free) };
        text.push_str(&format!("disk: {} free of {} (min_free_space {least})\n", size(disk.free), size(disk.total)));
    }
    text
}

/// A row, with sizes as numbers are written: to the right.
fn cells(sizes: &[String; 5], rows: &[([String; 5], String)], what: &str, cell: impl Fn(&str) -> Cell) -> Vec<Cell> {
    let width = |column: usize| {
        let title = TITLES[column].len();
        rows.iter().map(|(sizes, _)| sizes[column].len()).max().unwrap_or(0).max(title)
    };
    let sizes = sizes.iter().enumerate().map(|(column, text)| format!("{text:>0$}", width(column)));
    sizes.chain([what.to_owned()]).map(|text| cell(&text)).collect()
}

fn as_json(used: &[Used], other: u64, disk: Option<Space>, min_free: Option<u64>) -> Value {
    let sessions: Vec<Value> = used
        .iter()
        .map(|Used { place, name, usage }| {
            json!({
                "id": place.id, "name": name, "archived": place.archived, "bytes": usage.total(),
                "output": usage.output, "checkpoints": usage.checkpoints, "snapshots": usage.snapshots,
                "records": usage.records,
            })
        })
        .collect();
    json!({
        "schema": 1, "sessions": sessions, "other": other, "total": total(used).total() + other,
        "disk_free": disk.map(|disk| disk.free), "disk_size": disk.map(|disk| disk.total), "min_free_space": min_free,
    })
}
