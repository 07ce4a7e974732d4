//! What a person has decided about a session beforehand: when it is restarted, and when its limits are reached.
//!
//! The rules are a part of `session.json` (what was asked for) and of every run's plan (what is in force for this run),
//! so that the life cycle knows them from the journal alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every field is `None` unless it was asked for.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Rules {
    /// Whether the next run begins by itself when this one has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// The session is stopped when this time has passed since a person started or resumed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// A turn that takes longer is interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_timeout_ms: Option<u64>,
    /// No further turn begins when so many dollars are spent; a running turn is interrupted at twice as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// No further turn begins after so many turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// What the session had cost when its budget was set: the budget counts from there. Without this, it counts from
    /// the last time that a person started or resumed the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_from_usd: Option<f64>,
    /// The same for the number of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_from: Option<u32>,
    /// What happens when the agent reports that a usage limit is reached; `None`: the turn fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
}

/// What a session does at a usage limit of its agent.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// It waits until the limit is reset, and continues by itself.
    Wait,
    /// The turn has failed.
    Fail,
    /// Another agent continues.
    Agent { name: String },
    /// From a newer version: like [`OnLimit::Fail`].
    #[serde(other)]
    Unknown,
}

/// How often a session continues after a usage limit without any progress in between.
pub const CONTINUATIONS: u32 = 3;
/// How long a session waits for a limit whose reset time is unknown: 1 minute, then 8, then 64.
const LIMIT_PAUSE_MS: u64 = 60_000;

/// The pause before a further attempt, after so many failed ones.
#[must_use]
pub fn limit_pause_ms(in_vain: u32) -> u64 {
    LIMIT_PAUSE_MS << (3 * in_vain.min(2))
}

impl Rules {
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Rules::default()
    }

    /// The same for a further run: what was used before still counts. A budget or a number of turns without a starting
    /// value was set when the session was new.
    #[must_use]
    pub fn counted_on(self) -> Rules {
        Rules {
            budget_from_usd: self.budget_usd.map(|_| self.budget_from_usd.unwrap_or(0.0)),
            turns_from: self.max_turns.map(|_| self.turns_from.unwrap_or(0)),
            ..self
        }
    }
}

/// When a run that has ended is followed by another one automatically. After a request to stop, none follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum Restart {
    /// When it failed, or how it ended is unknown; at most so many times in a row.
    OnFailure { times: u32 },
    /// When it was killed, or exited with a code that is not in [`OWN_CODES`].
    WhenKilled,
    /// From a newer version: never.
    #[serde(other)]
    Unknown,
}

/// The exit codes with which our jobs report their results. Any other code comes from an accident.
pub const OWN_CODES: std::ops::RangeInclusive<i32> = 0..=8;

/// How often `--restart on-failure` tries when no number is given.
pub const DEFAULT_TIMES: u32 = 3;

/// A run that lasted longer than this did not end early: whatever ended it, the next one may do the same work.
pub const YOUNG_MS: u64 = 10_000;
/// A run that lasted longer than this got past its own start.
pub const ALIVE_MS: u64 = 500;
/// The longest pause after a run that got past its own start.
pub const SHORT_PAUSE_MS: u64 = 1000;
/// So many runs in a row may end early before there is a pause.
const FREE_DEATHS: u32 = 3;
/// After so many early ends in a row there is no further run: something is wrong that a restart does not change.
const LAST_DEATH: u32 = 100;
const LONGEST_KILLED_PAUSE_MS: u64 = 60_000;

const FIRST_FAILURE_PAUSE_MS: u64 = 1000;
const LONGEST_FAILURE_PAUSE_MS: u64 = 300_000;

impl Restart {
    /// How long the session pauses before its next run, after so many restarts in a row; `None` when there is no next
    /// run.
    #[must_use]
    pub fn pause_ms(self, in_a_row: u32) -> Option<u64> {
        let grows = |first: u64, by: u32, longest: u64| first.saturating_mul(1 << by.min(20)).min(longest);
        match self {
            Restart::OnFailure { times } => {
                (in_a_row < times).then(|| grows(FIRST_FAILURE_PAUSE_MS, in_a_row, LONGEST_FAILURE_PAUSE_MS))
            }
            Restart::WhenKilled if in_a_row >= LAST_DEATH => None,
            Restart::WhenKilled => Some(
                in_a_row.checked_sub(FREE_DEATHS).map_or(0, |further| grows(100, further, LONGEST_KILLED_PAUSE_MS)),
            ),
            Restart::Unknown => None,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let on_failure = Restart::OnFailure { times: 3 };
        assert_eq!(
            (0..4).map(|n| on_failure.pause_ms(n)).collect::<Vec<_>>(),
            [Some(1000), Some(2000), Some(4000), None]
        );
        assert_eq!(Restart::OnFailure { times: 1000 }.pause_ms(999), Some(LONGEST_FAILURE_PAUSE_MS));
        let killed: Vec<_> = [0, 2, 3, 4, 20, 99, 100].map(|n| Restart::WhenKilled.pause_ms(n)).into();
        assert_eq!(killed, [Some(0), Some(0), Some(100), Some(200), Some(60_000), Some(60_000), None]);
        assert_eq!(Restart::Unknown.pause_ms(0), None);
    }

    #[test]
    fn a_policy_of_a_newer_version_is_read_and_never_starts_anything() {
        let rules: Rules = serde_json::from_str(r#"{"restart":{"when":"at_full_moon"},"later":1}"#).unwrap();
        assert_eq!(rules.restart, Some(Restart::Unknown));
        let rules: Rules = serde_json::from_str(r#"{"restart":{"when":"on_failure","times":2}}"#).unwrap();
        assert_eq!(rules.restart, Some(Restart::OnFailure { times: 2 }));
    }
}
