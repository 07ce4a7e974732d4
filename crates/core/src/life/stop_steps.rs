//! How a process is ended: when it should exit, and the steps from asking to killing it.

use super::effects::Effect;
use super::state::State;
use crate::event::StopHow;
use crate::outcome::Saved;
use crate::record::Ending;

/// Whether the process should exit.
pub(super) enum ExitDue {
    No,
    /// It will have to exit, but not before this time.
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
    pub(super) fn exit_due(&self, now_ms: u64) -> ExitDue {
        let Some(stop) = &self.stop else {
            // A process that was asked to exit reads no more. A message that comes now is for the next run.
            return if self.is_done() || self.steps.asked_ms.is_some() {
                let since_ms = self.turn_ended_ms();
                ExitDue::Now { since_ms, kill_ms: since_ms.saturating_add(self.plan.linger_ms.saturating_mul(2)) }
            } else {
                ExitDue::No
            };
        };
        // Whichever step was reached, the process is killed at the end of the grace period.
        let now = |since_ms| ExitDue::Now { since_ms, kill_ms: stop.at_ms.saturating_add(stop.grace_ms) };
        if !self.plan.speaks().converses() {
            return match stop.how {
                StopHow::AfterTurn => ExitDue::ByItself,
                StopHow::Interrupt | StopHow::Kill => now(stop.at_ms),
            };
        }
        match (stop.how, self.turn_running()) {
            (StopHow::AfterTurn, true) => ExitDue::ByItself,
            (StopHow::AfterTurn, false) => {
                let since_ms = stop.at_ms.max(self.turn_ended_ms());
                ExitDue::Now { since_ms, kill_ms: since_ms.saturating_add(stop.grace_ms) }
            }
            (StopHow::Interrupt | StopHow::Kill, false) => now(stop.at_ms.max(self.turn_ended_ms())),
            // The turn was interrupted; half of the grace period is for that.
            (StopHow::Interrupt | StopHow::Kill, true) => {
                let limit = stop.at_ms.saturating_add(stop.grace_ms / 2);
                if now_ms >= limit { now(limit) } else { ExitDue::At { ms: limit } }
            }
        }
    }

    /// Prove that the turn is saved, ask, insist, kill. Each step gets half of the time that is left.
    pub(super) fn shutdown_steps(&self, since_ms: u64, kill_ms: u64, now_ms: u64) -> Vec<Effect> {
        let half_way = |from_ms: u64| from_ms + kill_ms.saturating_sub(from_ms) / 2;
        if self.has_something_to_save() && self.saved.is_none() && self.steps.asked_ms.is_none() {
            return vec![Effect::Prove { until_ms: half_way(since_ms) }];
        }
        if self.is_killed_unasked() {
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

    /// An agent that is asked to exit ends its background tasks, is notified of their end, and begins a turn about it
    /// whose end is never observed. If everything that it said is proven to be saved, the agent is killed first, and
    /// its tasks after it.
    fn is_killed_unasked(&self) -> bool {
        let open = !self.tasks.is_empty() && !self.turn_running();
        self.steps.asked_ms.is_none() && (self.steps.killed || (open && self.saved == Some(Saved::Verified)))
    }
}
