//! Limits that a person has set for a session: when one is reached, and what follows.
//!
//! Each limit is found from the state and the time alone, and acted on through an event that every version knows: a
//! request to stop or to interrupt, made by ostler itself. So a limit is reached once, whichever keeper finds it, and
//! the outcome says which limit it was.

use super::effects::Effect;
use super::state::State;
use crate::event::{Event, StopHow};
use crate::limits::duration;

/// A limit of the session that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The session has lasted long enough.
    Timeout,
    /// Its turn has lasted long enough.
    TurnTimeout,
    /// Enough turns are done, and there would be a further one.
    Turns,
    /// The budget is used up, and there would be a further turn.
    Budget,
    /// A running turn has passed twice the budget.
    TwiceTheBudget,
}

/// The name under which ostler makes such a request.
pub const BY: &str = "ostler";
/// The word that identifies a limit of money.
pub const BUDGET: &str = "budget";
/// How long the agent may take to exit before it is killed.
const GRACE_MS: u64 = 10_000;

impl State {
    /// The limit that is reached, or when to look again.
    pub(super) fn limit_reached(&self, now_ms: u64) -> (Option<Reached>, Option<u64>) {
        let rules = &self.plan.rules;
        if self.stop.is_some() || rules.is_none() || self.is_queued() {
            return (None, None);
        }
        let mut wake = None;
        let mut passed = |since_ms: u64, length_ms: Option<u64>| {
            let Some(ms) = length_ms.map(|length_ms| since_ms.saturating_add(length_ms)) else {
                return false;
            };
            if now_ms < ms {
                wake = Some(wake.map_or(ms, |other: u64| other.min(ms)));
            }
            now_ms >= ms
        };
        let working = self.turn_running() && self.is_running();
        let interruptible = working && self.interrupt.by.is_none() && self.plan.speaks().converses();
        let reached = if passed(self.automatic.began_ms, rules.timeout_ms) {
            Some(Reached::Timeout)
        } else if interruptible && passed(self.turn_began_ms().unwrap_or(now_ms), rules.turn_timeout_ms) {
            Some(Reached::TurnTimeout)
        } else if interruptible && self.spent_usd() > rules.budget_usd.map_or(f64::INFINITY, |usd| 2.0 * usd) {
            Some(Reached::TwiceTheBudget)
        } else if self.would_go_on() && rules.max_turns.is_some_and(|turns| self.turns_done() >= turns) {
            Some(Reached::Turns)
        } else if self.would_go_on() && rules.budget_usd.is_some_and(|usd| self.spent_usd() >= usd) {
            Some(Reached::Budget)
        } else {
            None
        };
        (reached, wake)
    }

    /// Between two turns, and the session would take a further one.
    fn would_go_on(&self) -> bool {
        let stays = self.plan.keep || self.plan.mode() == crate::record::Mode::Terminal || !self.mail.queue.is_empty();
        let again = self.restarts_at_ms().is_some() || self.waits_for_limit() || self.proceeds();
        let between = self.plan.speaks().converses() && !self.turn_running() && self.feeding().is_none();
        between && self.turns_done() > 0 && (stays || again)
    }

    /// The turns that count for the limit.
    fn turns_done(&self) -> u32 {
        self.turns.saturating_sub(self.plan.rules.turns_from.unwrap_or(self.automatic.turns_before))
    }

    /// The dollars that count for the budget, as far as they are known.
    fn spent_usd(&self) -> f64 {
        self.spending.of_session().1.unwrap_or(0.0)
            - self.plan.rules.budget_from_usd.unwrap_or(self.automatic.usd_before)
    }

    /// What is noted when a limit is reached.
    #[must_use]
    pub fn event_at(&self, reached: Reached) -> Event {
        let rules = &self.plan.rules;
        let time = |ms: Option<u64>| duration(ms.unwrap_or(0));
        let (spent, budget) = (self.spent_usd(), rules.budget_usd.unwrap_or(0.0));
        let (stops, why) = match reached {
            Reached::Timeout => {
                (Some(StopHow::Interrupt), format!("its time limit of {} has passed", time(rules.timeout_ms)))
            }
            Reached::TurnTimeout => {
                (None, format!("the turn passed its time limit of {}", time(rules.turn_timeout_ms)))
            }
            Reached::Turns => {
                (Some(StopHow::AfterTurn), format!("its limit of {} turns is reached", rules.max_turns.unwrap_or(0)))
            }
            Reached::Budget => {
                (Some(StopHow::AfterTurn), format!("its budget of ${budget:.2} is used up (${spent:.2})"))
            }
            Reached::TwiceTheBudget => {
                (None, format!("the turn passed twice its budget of ${budget:.2} (${spent:.2})"))
            }
        };
        match stops {
            Some(how) => Event::StopRequested { by: BY.to_owned(), why, how, grace_ms: GRACE_MS },
            None => Event::InterruptRequested { by: BY.to_owned(), why: Some(why) },
        }
    }

    /// The effects of limits, and whether nothing else may be done before them.
    pub(super) fn limit_effects(&self, now_ms: u64) -> (Vec<Effect>, bool) {
        match self.limit_reached(now_ms) {
            (Some(reached), _) => (vec![Effect::Limit { reached }], true),
            (None, Some(ms)) => (vec![Effect::WakeAt { ms }], false),
            (None, None) => (Vec::new(), false),
        }
    }
}
