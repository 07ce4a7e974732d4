//! What the keeper should do, derived from the state alone.

use super::limits::Reached;
use super::state::{Conversation, Process, State, Tree, Until};
use super::stop_steps::ExitDue;
use crate::event::StopHow;
use crate::outcome::Exit;
use crate::record::{Channel, Lines, Tty};
use crate::start_when::Begin;

/// Something for the keeper to do. When it is done, an event says so, and the effect is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put this message into the agent's input.
    Feed { n: u64 },
    /// Tell the agent that no further message comes.
    EndInput,
    /// Note that what was typed began no turn.
    GiveUpTurn,
    /// Withdraw the program, which waits to be started.
    Withdraw,
    /// Record what this process did and start the next one.
    NextRun,
    /// Note that a limit of the session is reached.
    Limit { reached: Reached },
    /// The wait is over: note it.
    EndWait,
    /// Add the message with which the agent continues to its messages.
    Continue,
    /// Reserve the id of a session in which another agent continues; then start that session.
    HandOver,
    /// End the running turn by the agent's own means.
    Interrupt,
    /// Find the end of the conversation in the agent's transcript; give up at that time (milliseconds since boot).
    Prove { until_ms: u64 },
    /// Ask the process to exit, in the way that its plan says.
    AskToLeave,
    /// Send the agent this signal.
    Signal { signal: i32 },
    /// See which processes are left running; when none is, collect the last output.
    LookAtTree,
    /// Ask the processes that are left to exit, or kill them.
    ClearTree { forced: bool },
    /// Write the outcome.
    Conclude,
    /// Everything is done: holder and keeper exit.
    Finish,
    /// Look again at this time, in milliseconds since boot.
    WakeAt { ms: u64 },
    /// End the wait when the wall clock shows this, in seconds since 1970.
    WakeAtTime { second: i64 },
}

/// The name under which a stop is noted that was requested by a signal to the session's helpers.
pub const SYSTEM: &str = "the system";

/// How an alarm about output that could not be written ends.
pub const OUTPUT_LOST: &str = "of output are lost";

/// What a keeper reports of an agent whose input and output are gone, because both helpers that held them were killed
/// at once.
pub const CONNECTION_LOST: &str = "holder and keeper were killed at once, and the agent's input and output with them";

/// How long an interrupt may take to end a process that runs one turn, before the process is sent a signal.
const INSIST_MS: u64 = 3000;
/// How long a typed message may take to begin a turn.
const UNCONFIRMED_MS: u64 = 3000;
/// How long processes that are left may take between the request to exit and being killed.
const CLEAR_MS: u64 = 1000;
/// How long a dead agent's transcript is waited for: another process may still be writing it.
const LAST_LOOK_MS: u64 = 200;
/// How long an agent may take to exit when the machine that shuts down tells it to. Measured: 30 to 200 ms.
const EXITING_MS: u64 = 500;
/// How much later than the agent we may be told that the machine shuts down: all processes are told, in any order.
const SHUTDOWN_MS: u64 = 1000;

impl State {
    /// What is to be done now. A reader needs only the state and ignores this.
    #[must_use]
    pub fn effects(&self, now_ms: u64) -> Vec<Effect> {
        if self.outcome.is_some() {
            return vec![Effect::Finish];
        }
        let (mut effects, first) = self.limit_effects(now_ms);
        if first {
            return effects;
        }
        match &self.process {
            Process::Starting => {}
            Process::Running { .. } => match self.begin {
                Begin::Begun => effects.extend(self.while_it_runs(now_ms)),
                Begin::Queued => effects.extend(self.stop.iter().map(|_| Effect::Withdraw)),
                // The waiting process has no output and nothing to save.
                Begin::Never { .. } if self.steps.killed => {}
                Begin::Never { .. } => effects.push(Effect::Signal { signal: 9 }),
            },
            Process::Exited(exited) => effects.extend(self.after_its_exit(exited.tree(), now_ms)),
        }
        effects
    }

    /// The effect for a session that waits for a usage limit.
    fn while_it_waits(&self, now_ms: u64) -> Option<Effect> {
        let wait = self.wait.as_ref().filter(|_| self.waits_for_limit())?;
        Some(match wait.until {
            _ if wait.over => Effect::Continue,
            Until::Time { second } => Effect::WakeAtTime { second },
            Until::Pause { ms } if now_ms < ms => Effect::WakeAt { ms },
            Until::Pause { .. } => Effect::EndWait,
        })
    }

    fn while_it_runs(&self, now_ms: u64) -> Vec<Effect> {
        if self.stop.as_ref().is_some_and(|stop| stop.how == StopHow::Kill) {
            return if self.steps.killed { Vec::new() } else { vec![Effect::Signal { signal: 9 }] };
        }
        let mut effects = Vec::new();
        if self.breaks_off() && self.interrupt.sent_ms().is_none() {
            effects.push(match self.not_interrupted_before() {
                Some(ms) if now_ms < ms => Effect::WakeAt { ms },
                Some(_) | None => Effect::Interrupt,
            });
        }
        if self.takes_one_turn() && self.turn_running() && self.feeding().is_none() && !self.input_has_ended() {
            effects.push(Effect::EndInput);
        }
        effects.extend(self.insist_on_interrupt(now_ms));
        effects.extend(self.give_up_unconfirmed_turn(now_ms));
        match self.exit_due(now_ms) {
            ExitDue::Now { since_ms, kill_ms } => effects.extend(self.shutdown_steps(since_ms, kill_ms, now_ms)),
            ExitDue::At { ms } => effects.push(Effect::WakeAt { ms }),
            ExitDue::ByItself => {}
            ExitDue::No => {
                effects.extend(self.while_it_waits(now_ms));
                effects.extend(self.next_message().map(|n| Effect::Feed { n }));
            }
        }
        effects
    }

    /// A machine that shuts down tells the agent as well. An agent that is exiting has already written its transcript,
    /// and its answer to an interrupt would be lost: only an agent that stays has to be interrupted.
    fn not_interrupted_before(&self) -> Option<u64> {
        let shutdown = self.stop.as_ref().filter(|stop| stop.by == SYSTEM && self.interrupt.by.is_none())?;
        Some(shutdown.at_ms.saturating_add(EXITING_MS))
    }

    /// Where a process runs one turn, an interrupt that does not end it is followed by signals: the end of the process
    /// is what was asked for.
    fn insist_on_interrupt(&self, now_ms: u64) -> Option<Effect> {
        let insists = self.takes_one_turn() && self.stop.is_none() && self.turn_running();
        let sent_ms = self.interrupt.sent_ms().filter(|_| insists)?;
        let (terminate_ms, kill_ms) = (sent_ms.saturating_add(INSIST_MS), sent_ms.saturating_add(2 * INSIST_MS));
        match (self.steps.terminated, self.steps.killed) {
            (_, true) => None,
            (true, false) if now_ms >= kill_ms => Some(Effect::Signal { signal: 9 }),
            (true, false) => Some(Effect::WakeAt { ms: kill_ms }),
            (false, false) if now_ms >= terminate_ms => Some(Effect::Signal { signal: 15 }),
            (false, false) => Some(Effect::WakeAt { ms: terminate_ms }),
        }
    }

    /// A typed message that began no turn (a command of the agent's own, a key pressed in a menu) must not look like a
    /// turn for ever.
    fn give_up_unconfirmed_turn(&self, now_ms: u64) -> Option<Effect> {
        let until_ms = self.mail.delivered_ms().saturating_add(UNCONFIRMED_MS);
        match (self.turn_is_unconfirmed() && self.feeding().is_none(), now_ms >= until_ms) {
            (false, _) => None,
            (true, true) => Some(Effect::GiveUpTurn),
            (true, false) => Some(Effect::WakeAt { ms: until_ms }),
        }
    }

    pub(super) fn has_something_to_save(&self) -> bool {
        match self.plan.channel {
            Channel::Lines(_) | Channel::Tty(Tty::Hooks) => self.last_turn().is_some() || self.turn_running(),
            // A program that only draws reports no turns, but a message that was typed into it must not be lost.
            Channel::Tty(Tty::Nothing) => self.last_fed().is_some(),
            Channel::Command => false,
        }
    }

    fn next_message(&self) -> Option<u64> {
        let may = match self.plan.channel {
            Channel::Lines(Lines::Turns | Lines::OpenedTurns) => !self.turn_running(),
            Channel::Lines(Lines::OneTurn) => !self.turn_running() && self.turns_of_run == 0,
            Channel::Tty(Tty::Hooks) => !self.turn_running() && self.is_ready(),
            Channel::Tty(Tty::Nothing) => true,
            Channel::Command => false,
        };
        let open = self.conversation == Conversation::Open && !self.waits_for_limit() && self.handover.is_none();
        if may && open && self.feeding().is_none() { self.mail.queue.first().map(|message| message.n) } else { None }
    }

    fn after_its_exit(&self, tree: Tree, now_ms: u64) -> Vec<Effect> {
        match tree {
            Tree::Untold => return self.clear_what_is_left(now_ms),
            Tree::Told { at_ms, forced } => return clear_what_stays(at_ms, forced, now_ms),
            Tree::Empty => {}
        }
        if self.has_something_to_save() && self.saved.is_none() {
            // None of its processes is alive any more. After a kill, processes outside the session are not waited for.
            let killed = self.stop.as_ref().is_some_and(|stop| stop.how == StopHow::Kill);
            let patience = if killed { 0 } else { LAST_LOOK_MS };
            return vec![Effect::Prove { until_ms: self.exit_ms().saturating_add(patience) }];
        }
        let told_by_others = !self.end_requested() && self.exit().is_some_and(Exit::is_by_request);
        let known_ms = self.exit_ms().saturating_add(SHUTDOWN_MS);
        if told_by_others && now_ms < known_ms {
            return vec![Effect::WakeAt { ms: known_ms }];
        }
        if self.wants_handover() {
            return vec![Effect::HandOver];
        }
        if let Some(effect) = self.while_it_waits(now_ms) {
            return vec![effect];
        }
        let waits = (self.goes_on_without_process() && !self.mail.queue.is_empty()) || self.proceeds();
        match self.restarts_at_ms() {
            _ if waits => vec![Effect::NextRun],
            Some(ms) if now_ms < ms => vec![Effect::WakeAt { ms }],
            Some(_) if self.lacks_words() => vec![Effect::Continue],
            Some(_) => vec![Effect::NextRun],
            None if self.goes_on_without_process() => Vec::new(),
            None => vec![Effect::Conclude],
        }
    }

    fn clear_what_is_left(&self, now_ms: u64) -> Vec<Effect> {
        // If the agent had to be killed, the processes that it left are not asked any more.
        let killing = self.steps.killed || self.stop.as_ref().is_some_and(|stop| stop.how == StopHow::Kill);
        let lingers = if self.stop.is_some() { 0 } else { self.plan.linger_ms };
        let limit = self.exit_ms().saturating_add(lingers);
        if now_ms < limit || self.left().is_empty() {
            vec![Effect::LookAtTree, Effect::WakeAt { ms: limit.max(now_ms.saturating_add(1)) }]
        } else {
            vec![Effect::ClearTree { forced: killing }]
        }
    }
}

/// Processes that were asked to exit at `told_ms` are killed if they stay.
fn clear_what_stays(told_ms: u64, forced: bool, now_ms: u64) -> Vec<Effect> {
    let kill_ms = told_ms.saturating_add(CLEAR_MS);
    if now_ms >= kill_ms && !forced {
        return vec![Effect::ClearTree { forced: true }];
    }
    // Once killed, they only have to be collected; a process that is stuck in the kernel is looked for again and again.
    vec![Effect::LookAtTree, Effect::WakeAt { ms: kill_ms.max(now_ms.saturating_add(100)) }]
}
