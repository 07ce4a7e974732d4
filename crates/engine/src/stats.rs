//! What was used: turns, time, tokens and money by day, agent and folder, over all sessions, archived ones as well.

use crate::engine::Engine;
use crate::error::Result;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_core::fact::Tokens;
use ostler_store::home::Place;
use ostler_sys::threads::parallel;
use ostler_view::statistics::{self, Used};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many sessions a thread takes at a time.
const BATCH: usize = 16;

/// What was used in total, or on one day, by one agent, or in one folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// How many sessions used something.
    pub sessions: u64,
    /// How many turns have ended.
    pub turns: u64,
    /// How long turns took, without the time in which a person was asked; how long commands ran.
    pub duration_ms: u64,
    /// Tokens, as the agents report them.
    pub tokens: Tokens,
    /// Money, as the agents report it.
    pub cost_usd: f64,
}

impl Sum {
    fn add(&mut self, more: &Sum) {
        self.sessions += more.sessions;
        self.turns += more.turns;
        self.duration_ms = self.duration_ms.saturating_add(more.duration_ms);
        self.tokens += more.tokens;
        self.cost_usd += more.cost_usd;
    }

    fn count(&mut self, used: Used) {
        let Used { turns, ms, tokens, cost_usd } = used;
        self.add(&Sum { sessions: 0, turns, duration_ms: ms, tokens, cost_usd });
    }
}

/// What was used since a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// By all sessions.
    pub total: Sum,
    /// By the day on which a turn ended (`2026-02-28`), in order.
    pub by_day: Vec<(String, Sum)>,
    /// By the agent, the one that took longest first.
    pub by_agent: Vec<(String, Sum)>,
    /// By the folder in which a session works, the one that took longest first.
    pub by_folder: Vec<(String, Sum)>,
    /// Sessions that could not be read, and are not counted.
    pub damaged: u64,
}

#[derive(Default)]
struct Sums {
    total: Sum,
    days: BTreeMap<String, Sum>,
    agents: BTreeMap<String, Sum>,
    folders: BTreeMap<String, Sum>,
    damaged: u64,
}

impl Engine {
    /// What all sessions have used since then. `zone`: where a day begins and ends.
    pub fn stats(&self, since: Option<Timestamp>, zone: &TimeZone) -> Result<Stats> {
        let places: Vec<Place> = self.home.live_places()?.into_iter().chain(self.home.archived_places()?).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut sums = Sums::default();
            while let Some(handful) = places.chunks(BATCH).nth(next.fetch_add(1, Ordering::Relaxed)) {
                for place in handful {
                    sums.count(place, since, zone);
                }
            }
            sums
        };
        let mut all = Sums::default();
        // With up to eight threads, if the machine has as many processors: most of the time goes into opening files.
        for one in parallel(if places.len() < 64 { 1 } else { 8 }, work) {
            all.add(one);
        }
        Ok(Stats {
            total: all.total,
            by_day: all.days.into_iter().collect(),
            by_agent: longest_first(all.agents),
            by_folder: longest_first(all.folders),
            damaged: all.damaged,
        })
    }
}

fn longest_first(sums: BTreeMap<String, Sum>) -> Vec<(String, Sum)> {
    let mut rows: Vec<(String, Sum)> = sums.into_iter().collect();
    rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.duration_ms));
    rows
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
        let one = Sum { sessions: 1, ..Sum::default() };
        let (mut days, mut whole) = (BTreeMap::new(), one);
        for share in shares {
            let day = share.at.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string();
            days.entry(day).or_insert(one).count(share.used);
            whole.count(share.used);
        }
        for (day, sum) in days {
            self.days.entry(day).or_default().add(&sum);
        }
        self.agents.entry(session.agent).or_default().add(&whole);
        self.folders.entry(session.cwd).or_default().add(&whole);
        self.total.add(&whole);
    }

    fn add(&mut self, other: Sums) {
        self.total.add(&other.total);
        self.damaged += other.damaged;
        let maps = [(&mut self.days, other.days), (&mut self.agents, other.agents), (&mut self.folders, other.folders)];
        for (mine, theirs) in maps {
            for (key, sum) in theirs {
                mine.entry(key).or_default().add(&sum);
            }
        }
    }
}
