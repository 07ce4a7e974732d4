//! Tab stops: every eighth column until a program sets its own.

use serde::{Deserialize, Serialize};

const DISTANCE: usize = 8;

/// One entry per column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "TabRecord", from = "TabRecord")]
pub(crate) struct TabStops(Vec<bool>);

impl TabStops {
    pub(crate) fn new(columns: usize) -> TabStops {
        let mut stops = TabStops(Vec::new());
        stops.resize(columns);
        stops
    }

    /// New columns get the usual stops.
    pub(crate) fn resize(&mut self, columns: usize) {
        let known = self.0.len();
        self.0.truncate(columns);
        self.0.extend((known..columns).map(|column| column > 0 && column.is_multiple_of(DISTANCE)));
    }

    pub(crate) fn set(&mut self, column: usize, stop: bool) {
        if let Some(slot) = self.0.get_mut(column) {
            *slot = stop;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(false);
    }

    /// The first stop right of `column`.
    pub(crate) fn after(&self, column: usize) -> Option<usize> {
        (column + 1..self.0.len()).find(|&later| self.0[later])
    }

    /// The last stop left of `column`.
    pub(crate) fn before(&self, column: usize) -> Option<usize> {
        self.0.iter().take(column).rposition(|&stop| stop)
    }

    pub(crate) fn stops(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|&(_, &stop)| stop).map(|(column, _)| column)
    }

    pub(crate) fn is_sound(&self, columns: usize) -> bool {
        self.0.len() == columns
    }
}

#[derive(Serialize, Deserialize)]
struct TabRecord {
    columns: u16,
    stops: Vec<usize>,
}

impl From<TabStops> for TabRecord {
    fn from(stops: TabStops) -> TabRecord {
        // A screen is never wider than a u16.
        TabRecord { columns: u16::try_from(stops.0.len()).unwrap_or(u16::MAX), stops: stops.stops().collect() }
    }
}

impl From<TabRecord> for TabStops {
    fn from(record: TabRecord) -> TabStops {
        let mut stops = TabStops(vec![false; usize::from(record.columns)]);
        for stop in record.stops {
            stops.set(stop, true);
        }
        stops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_found_on_both_sides() {
        let mut stops = TabStops::new(20);
        assert_eq!((stops.after(0), stops.after(8), stops.after(16)), (Some(8), Some(16), None));
        assert_eq!((stops.before(16), stops.before(8)), (Some(8), None));
        stops.set(3, true);
        stops.resize(10);
        stops.resize(30);
        assert_eq!(stops.stops().collect::<Vec<_>>(), [3, 8, 16, 24]);
    }

    #[test]
    fn stops_survive_their_record() {
        let mut stops = TabStops::new(20);
        stops.clear();
        stops.set(5, true);
        assert_eq!(TabStops::from(TabRecord::from(stops.clone())), stops);
    }
}
