//! Which sessions a list shows, and in which order.

use super::{Listed, needs_person};
use ostler_core::id::SessionId;
use ostler_core::view::View;
use std::path::{Path, PathBuf};

/// Every word that `--state` takes: the states that `ls` shows, `ended` for all ended sessions, and `alarm` for those
/// with an alarm.
pub const STATES: [&str; 16] = [
    "queued",
    "starting",
    "working",
    "running",
    "waiting",
    "idle",
    "asking",
    "stopping",
    "ended",
    "succeeded",
    "failed",
    "interrupted",
    "stopped",
    "lost",
    "damaged",
    "alarm",
];

/// What was asked for; the default admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those that work in this folder or below it.
    pub below: Option<PathBuf>,
    /// Those in one of these states; each is one of [`STATES`].
    pub states: Vec<String>,
    /// Those of one of these agents.
    pub agents: Vec<String>,
    /// Those with all of these labels; with this value, where there is one.
    pub labels: Vec<(String, Option<String>)>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// What needs attention first, then what runs, then what has ended.
    #[default]
    Need,
    /// The newest first.
    Created,
    /// The most recently changed first.
    Updated,
    /// By title.
    Name,
    /// The most expensive first.
    Cost,
}

impl Filter {
    /// Whether a list with this filter shows the session.
    pub fn admits(&self, one: &Listed) -> bool {
        match one {
            Listed::Good(view) => self.admits_view(view),
            // Nothing is known of a damaged session, so it is hidden only when the filter asks for something else.
            Listed::Bad(_) => {
                let state = self.states.is_empty() || self.states.iter().any(|state| state == "damaged");
                state && self.agents.is_empty() && self.labels.is_empty() && self.below.is_none()
            }
        }
    }

    fn admits_view(&self, view: &View) -> bool {
        let state = |word: &String| match word.as_str() {
            "ended" => view.ended,
            "alarm" => view.alarm.is_some(),
            word => view.status == word,
        };
        let label = |(key, value): &(String, Option<String>)| {
            view.labels.get(key).is_some_and(|has| value.as_ref().is_none_or(|value| has == value))
        };
        (self.states.is_empty() || self.states.iter().any(state))
            && (self.agents.is_empty() || self.agents.contains(&view.agent))
            && self.labels.iter().all(label)
            && self.below.as_ref().is_none_or(|folder| Path::new(&view.cwd).starts_with(folder))
    }
}

/// The position of a session in a list. Compared field by field; a field that a sort does not use is the same for all
/// sessions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    group: u8,
    number: i64,
    text: String,
    id: SessionId,
}

impl Order {
    pub fn of(sort: Sort, id: SessionId, one: &Listed) -> Order {
        let Listed::Good(view) = one else {
            return Order { group: 0, number: 0, text: String::new(), id };
        };
        let (group, number, text) = match sort {
            Sort::Need => (need(view), -view.created.as_microsecond(), String::new()),
            Sort::Created => (1, -view.created.as_microsecond(), String::new()),
            Sort::Updated => (1, -view.updated.as_microsecond(), String::new()),
            Sort::Name => (1, 0, view.title.to_lowercase()),
            // In millionths of a dollar.
            Sort::Cost => (1, -((view.cost_usd.unwrap_or(0.0) * 1e6) as i64), String::new()),
        };
        Order { group, number, text, id }
    }
}

/// What needs attention comes first, then what runs, then what has ended.
fn need(view: &View) -> u8 {
    match (needs_person(view), view.ended) {
        (true, _) => 1,
        (false, false) => 2,
        (false, true) => 3,
    }
}
