//! `ostler stats`: turns, time, tokens and money by day, agent and folder, over all sessions, including archived ones.

mod table;

use super::ls::tilde;
use crate::args::{By, Stats};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::time::parse_since;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use ostler_core::SCHEMA;
use ostler_core::limits::counted;
use ostler_engine::process::now;
use ostler_engine::stats::{self, Sum};
use serde_json::{Value, json};

/// How far back it goes by default.
const DAYS: i64 = 30;

pub fn run(context: &Context, args: &Stats) -> Result<Code> {
    let now = now();
    let since = match (&args.since, args.all) {
        (_, true) => None,
        (Some(text), false) => Some(parse_since(text, now).map_err(Failure::usage)?),
        (None, false) => Some(now.saturating_sub(SignedDuration::from_hours(24 * DAYS)).unwrap_or(Timestamp::MIN)),
    };
    let found = context.engine.stats(since, &TimeZone::system())?;
    if found.damaged > 0 {
        let sessions = counted(found.damaged, "session", "sessions");
        tell!(
            "ostler: {sessions} could not be read and {} not counted; see ostler doctor",
            if found.damaged == 1 { "is" } else { "are" }
        );
    }
    let shown: Vec<By> = args.by.map_or_else(|| By::ALL.to_vec(), |by| vec![by]);
    if args.json {
        say!("{}", serde_json::to_string_pretty(&as_json(&found, &shown, since)).unwrap_or_default())?;
        return Ok(Code::Succeeded);
    }
    if found.total.sessions == 0 {
        let hint = if since.is_some() { "; for all time: ostler stats --all" } else { "" };
        say!("Nothing was used{hint}.")?;
        return Ok(Code::Succeeded);
    }
    let period = match (&args.since, since) {
        (_, None) => "since the first session".to_owned(),
        (Some(_), Some(since)) => format!("since {}", since.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M")),
        (None, Some(_)) => format!("the last {DAYS} days"),
    };
    let tables = shown.iter().map(|by| table::Table {
        by: *by,
        rows: rows(*by, &found).to_vec(),
        // One table among several is kept short.
        most: if shown.len() > 1 { table::SHORT } else { usize::MAX },
    });
    crate::say::text(&table::render(
        tables.collect(),
        &found.total,
        &period,
        context.style,
        crate::ui::table::window(),
    ))?;
    Ok(Code::Succeeded)
}

/// The rows of one table.
fn rows(by: By, found: &stats::Stats) -> &[(String, Sum)] {
    match by {
        By::Day => &found.by_day,
        By::Agent => &found.by_agent,
        By::Folder => &found.by_folder,
    }
}

fn as_json(found: &stats::Stats, shown: &[By], since: Option<Timestamp>) -> Value {
    let fields = |sum: &Sum| serde_json::to_value(sum).unwrap_or_default();
    let mut all =
        json!({ "schema": SCHEMA, "since": since.map(|since| since.to_string()), "total": fields(&found.total) });
    for by in shown {
        let rows = rows(*by, found).iter().map(|(key, sum)| {
            let mut row = fields(sum);
            row[by.word()] = Value::from(key.as_str());
            row
        });
        all[format!("by_{}", by.word())] = Value::from(rows.collect::<Vec<_>>());
    }
    all
}

/// The heading of a row: days and agents as they are, the home folder as `~`.
fn heading(by: By, key: &str) -> String {
    match by {
        By::Day | By::Agent => key.to_owned(),
        By::Folder => tilde(key),
    }
}
