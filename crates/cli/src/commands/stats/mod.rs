//! `ostler stats`: turns, time, tokens and money by day, agent and folder, over all sessions, archived ones as well.

mod table;

use super::ls::tilde;
use crate::args::{By, Stats};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{say, tell};
use crate::ui::time::parse_since;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use ostler_core::limits::counted;
use ostler_store::home::Place;
use ostler_store::statistics::{self, Used};
use ostler_sys::clock;
use ostler_sys::threads::parallel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How far back it goes unless told.
const DAYS: i64 = 30;
/// So many sessions are read before another thread may have its turn.
const HANDFUL: usize = 16;

/// What was used under one heading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub sessions: u64,
    pub used: Used,
}

impl Sum {
    fn add(&mut self, more: &Sum) {
        self.sessions += more.sessions;
        self.used += more.used;
    }
}

/// The sums by each of the three.
#[derive(Default)]
struct Sums {
    total: Sum,
    by: [BTreeMap<String, Sum>; 3],
    /// Journals that cannot be read.
    damaged: u64,
}

pub fn run(context: &Context, args: &Stats) -> Result<Code> {
    let now = clock::now();
    let since = match (&args.since, args.all) {
        (_, true) => None,
        (Some(text), false) => Some(parse_since(text, now).map_err(Failure::usage)?),
        (None, false) => Some(now.saturating_sub(SignedDuration::from_hours(24 * DAYS)).unwrap_or(Timestamp::MIN)),
    };
    let sums = gather(context, since)?;
    if sums.damaged > 0 {
        let sessions = counted(sums.damaged, "session", "sessions");
        tell!(
            "ostler: {sessions} could not be read and {} not counted; see ostler doctor",
            if sums.damaged == 1 { "is" } else { "are" }
        );
    }
    let shown: Vec<By> = args.by.map_or_else(|| By::ALL.to_vec(), |by| vec![by]);
    if args.json {
        say!("{}", serde_json::to_string_pretty(&as_json(&sums, &shown, since)).unwrap_or_default())?;
        return Ok(Code::Succeeded);
    }
    if sums.total.sessions == 0 {
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
        rows: ordered(*by, &sums.by[*by as usize]),
        // One of several is kept short.
        most: if shown.len() > 1 { table::SHORT } else { usize::MAX },
    });
    crate::say::text(&table::render(
        tables.collect(),
        &sums.total,
        &period,
        context.style,
        crate::ui::table::window(),
    ))?;
    Ok(Code::Succeeded)
}

/// Days in their order, everything else by what took longest.
fn ordered(by: By, sums: &BTreeMap<String, Sum>) -> Vec<(String, Sum)> {
    let mut rows: Vec<(String, Sum)> = sums.iter().map(|(key, sum)| (key.clone(), *sum)).collect();
    match by {
        By::Day => {}
        By::Agent | By::Folder => rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.used.ms)),
    }
    rows
}

/// With as many threads as the machine has: most of the time goes into opening files.
fn gather(context: &Context, since: Option<Timestamp>) -> Result<Sums> {
    let home = &context.engine.home;
    let places: Vec<Place> = home.live_places()?.into_iter().chain(home.archived_places()?).collect();
    let next = AtomicUsize::new(0);
    let zone = TimeZone::system();
    let work = || {
        let mut sums = Sums::default();
        while let Some(handful) = places.chunks(HANDFUL).nth(next.fetch_add(1, Ordering::Relaxed)) {
            for place in handful {
                sums.count(place, since, &zone);
            }
        }
        sums
    };
    let mut all = Sums::default();
    for one in parallel(if places.len() < 64 { 1 } else { 8 }, work) {
        all.add(one);
    }
    Ok(all)
}

impl Sums {
    fn count(&mut self, place: &Place, since: Option<Timestamp>, zone: &TimeZone) {
        let read = place.open().and_then(|folder| statistics::read(&folder, since));
        let (session, shares) = match read {
            Ok(Some(found)) => found,
            Ok(None) => return,
            // Purged or moved while we looked.
            Err(_) if !place.path.exists() => return,
            Err(_) => {
                self.damaged += 1;
                return;
            }
        };
        if shares.is_empty() {
            return;
        }
        let mut days: BTreeMap<String, Sum> = BTreeMap::new();
        for share in &shares {
            let day = share.at.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string();
            let sum = days.entry(day).or_insert(Sum { sessions: 1, ..Sum::default() });
            sum.used += share.used;
        }
        let mut whole = Sum { sessions: 1, ..Sum::default() };
        for share in shares {
            whole.used += share.used;
        }
        for (day, sum) in days {
            self.by[By::Day as usize].entry(day).or_default().add(&sum);
        }
        self.by[By::Agent as usize].entry(session.agent).or_default().add(&whole);
        self.by[By::Folder as usize].entry(session.cwd).or_default().add(&whole);
        self.total.add(&whole);
    }

    fn add(&mut self, other: Sums) {
        self.total.add(&other.total);
        self.damaged += other.damaged;
        for (mine, theirs) in self.by.iter_mut().zip(other.by) {
            for (key, sum) in theirs {
                mine.entry(key).or_default().add(&sum);
            }
        }
    }
}

fn as_json(sums: &Sums, shown: &[By], since: Option<Timestamp>) -> Value {
    let fields = |sum: &Sum| {
        json!({
            "sessions": sum.sessions, "turns": sum.used.turns, "duration_ms": sum.used.ms,
            "tokens": sum.used.tokens, "cost_usd": sum.used.cost_usd,
        })
    };
    let mut all = json!({ "schema": 1, "since": since.map(|since| since.to_string()), "total": fields(&sums.total) });
    for by in shown {
        let rows = ordered(*by, &sums.by[*by as usize]).into_iter().map(|(key, sum)| {
            let mut row = fields(&sum);
            row[by.word()] = Value::from(key);
            row
        });
        all[format!("by_{}", by.word())] = Value::from(rows.collect::<Vec<_>>());
    }
    all
}

/// What stands before a row: days and agents as they are, folders as people write them.
fn heading(by: By, key: &str) -> String {
    match by {
        By::Day | By::Agent => key.to_owned(),
        By::Folder => tilde(key),
    }
}
