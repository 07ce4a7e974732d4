//! How a process is ended: when it should leave, and the steps from asking to killing it.

use super::effects::Effect;
use super::state::State;
use crate::event::StopHow;
use crate::outcome::Saved;
use crate::record::Ending;

/// Whether the process should leave.
pub(super) enum Leaving {
    No,
    /// It will have to, but not before this.
    At {
        ms: u64,
    },
    /// Since when, and when it is killed.
    Now {
        since_ms: u64,
        kill_ms: u64,
    },
    /// At the end of its turn; nothing new may begin until then.
    ByItself,
}

impl State {
    pub(super) fn leaves_from(&self, now_ms: u64) -> Leaving {
        let Some(stop) = &self.stop else {
            // What was asked to leave reads no more. A message that comes now is for the next run.
            return if self.is_done() || self.steps.asked_ms.is_some() {
                let since_ms = self.turn_ended_ms();
                Leaving::Now { since_ms, kill_ms: since_ms.saturating_add(self.plan.linger_ms.saturating_mul(2)) }
            } else {
                Leaving::No
            };
        };
        // However far it has come, it is over at the end of the grace.
        let now = |since_ms| Leaving::Now { since_ms, kill_ms: stop.at_ms.saturating_add(stop.grace_ms) };
        if !self.plan.speaks().converses() {
            return match stop.how {
                StopHow::AfterTurn => Leaving::ByItself,
                StopHow::Interrupt | StopHow::Kill => now(stop.at_ms),
            };
        }
        match (stop.how, self.turn_running()) {
            (StopHow::AfterTurn, true) => Leaving::ByItself,
            (StopHow::AfterTurn, false) => {
                let since_ms = stop.at_ms.max(self.turn_ended_ms());
                Leaving::Now { since_ms, kill_ms: since_ms.saturating_add(stop.grace_ms) }
            }
            (StopHow::Interrupt | StopHow::Kill, false) => now(stop.at_ms.max(self.turn_ended_ms())),
            // The turn was told to end; half of the grace is for that.
            (StopHow::Interrupt | StopHow::Kill, true) => {
                let limit = stop.at_ms.saturating_add(stop.grace_ms / 2);
                if now_ms >= limit { now(limit) } else { Leaving::At { ms: limit } }
            }
        }
    }

    /// Prove that the turn is saved, ask, insist, kill. Each step gets half of the time that is left.
    pub(super) fn shutdown_steps(&self, since_ms: u64, kill_ms: u64, now_ms: u64) -> Vec<Effect> {
        let half_way = |from_ms: u64| from_ms + kill_ms.saturating_sub(from_ms) / 2;
        if self.has_something_to_save() && self.saved.is_none() && self.steps.asked_ms.is_none() {
            return vec![Effect::Prove { until_ms: half_way(since_ms) }];
        }
        if self.ends_unheard() {
            return if self.steps.killed { Vec::new() } else { vec![Effect::Signal { signal: 9 }] };
        }
        let Some(asked_ms) = self.steps.asked_ms else {
            return vec![Effect::AskToLeave];
        };
        let terminate_ms = match &self.plan.ending {
            Ending::Terminate => None,
            Ending::EndOfInput | Ending::Hangup | Ending::Interrupt | Ending::Typed { .. } => Some(half_way(asked_ms)),
        };
        if self.steps.killed {
            return Vec::new();
        }
        if now_ms >= kill_ms {
            return vec![Effect::Signal { signal: 9 }];
        }
        match terminate_ms {
            Some(ms) if !self.steps.terminated && now_ms >= ms => vec![Effect::Signal { signal: 15 }],
            Some(ms) if !self.steps.terminated => vec![Effect::WakeAt { ms }],
            Some(_) | None => vec![Effect::WakeAt { ms: kill_ms }],
        }
    }

    /// Asked to leave, an agent ends what goes on in its background, hears of that, and begins a turn about it that nobody
    /// sees the end of. Where all that it said is proven to be saved, it is killed first, and its tasks after it.
    fn ends_unheard(&self) -> bool {
        let open = !self.tasks.is_empty() && !self.turn_running();
        self.steps.asked_ms.is_none() && (self.steps.killed || (open && self.saved == Some(Saved::Verified)))
    }
}
