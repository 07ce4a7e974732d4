//! What follows from the state of a session. Nothing here changes it.

use super::{Conversation, Message, Process, State};
use crate::event::StopHow;
use crate::fact::Tokens;
use crate::limits::size;
use crate::outcome::Exit;
use crate::record::{Mode, Speaks};
use crate::view::Phase;

impl State {
    /// What earlier runs have used.
    #[must_use]
    pub fn tokens_before(&self) -> Tokens {
        self.spending.tokens_before(self.run)
    }

    /// Whether the agent is at work: between a message and its end-of-turn, or for a command as long as it lives.
    #[must_use]
    pub fn turn_running(&self) -> bool {
        match self.plan.speaks {
            Speaks::Bytes => self.process == Process::Running,
            Speaks::Turns | Speaks::OneTurn | Speaks::Hooks => self.turn,
        }
    }

    /// The message of a turn whose process ended before it, if that was its end. The agent's transcript decides whether it
    /// was taken in. What was typed into a terminal was typed, whatever became of it; what somebody interrupted was
    /// broken off on purpose.
    #[must_use]
    pub fn without_answer(&self) -> Option<Message> {
        let cut_off = (self.turn || self.cut_off) && self.interrupt.is_none();
        self.last_fed.filter(|_| cut_off && self.plan.speaks != Speaks::Hooks)
    }

    /// The same of a session that would go on. When the process was killed, the next one is given the message. When it exited
    /// by itself, the next one would do the same: then the session ends, and the message waits for `resume`.
    #[must_use]
    pub fn died_with(&self) -> Option<Message> {
        let killed = self.exit.is_some_and(|exit| exit.code.is_none());
        let goes_on = self.stop.is_none() && (self.plan.keep || !self.queue.is_empty());
        self.without_answer().filter(|message| goes_on && (!killed || self.taken_back != Some(message.n)))
    }

    /// A turn runs, by the agent's own word.
    #[must_use]
    pub fn turn_is_told(&self) -> bool {
        self.turn_running() && !self.unconfirmed
    }

    /// Whether the running turn is to be broken off: somebody said so, or wants the session to end at once.
    #[must_use]
    pub fn breaks_off(&self) -> bool {
        let stop_interrupts =
            self.plan.speaks.converses() && self.stop.as_ref().is_some_and(|stop| stop.how == StopHow::Interrupt);
        self.turn_running() && (self.interrupt.is_some() || stop_interrupts)
    }

    /// Whether we did anything to end the process.
    pub(crate) fn end_requested(&self) -> bool {
        self.end_asked_ms.is_some()
            || self.terminated_ms.is_some()
            || self.killed_ms.is_some()
            || (self.interrupt_sent && self.stop.is_some())
            // A machine that shuts down tells the agent itself, and perhaps before it tells us.
            || (self.stop.is_some() && self.exit.is_some_and(Exit::is_by_request))
            // Between two processes there is none to push.
            || (self.plan.speaks == Speaks::OneTurn && self.stop.as_ref().is_some_and(|stop| stop.at_ms >= self.exit_ms))
    }

    /// It had to be killed although it was asked to leave.
    pub(crate) fn wants_kill_explained(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.how != StopHow::Kill)
    }

    /// The process has done what it was there for: its turn is over, and either it takes no second one, or nothing waits
    /// and nobody asked to keep it. Or it never will do anything, because its conversation does not open.
    #[must_use]
    pub fn is_done(&self) -> bool {
        if matches!(self.conversation, Conversation::Refused { .. }) {
            return true;
        }
        let turn_over =
            self.plan.mode == Mode::Headless && self.turns_of_run > 0 && !self.turn && self.feeding.is_none();
        match self.plan.speaks {
            Speaks::Bytes | Speaks::Hooks => false,
            Speaks::Turns => turn_over && !self.plan.keep && self.queue.is_empty(),
            Speaks::OneTurn => turn_over,
        }
    }

    /// The session goes on although its process has ended: for the next message there will be another.
    #[must_use]
    pub fn goes_on_without_process(&self) -> bool {
        // One that ended before it took its message would do so again.
        let took_a_message = self.turns_of_run > 0 && !self.died_unheard;
        let wanted = self.plan.keep || !self.queue.is_empty();
        self.plan.speaks == Speaks::OneTurn && self.stop.is_none() && took_a_message && wanted
    }

    /// Its process has ended with its only turn, and how that went is yet to be read from its last words. Until then the
    /// session works; it goes on afterwards.
    #[must_use]
    pub fn awaits_last_words(&self) -> bool {
        let wanted = self.plan.keep || !self.queue.is_empty();
        self.plan.speaks == Speaks::OneTurn && self.stop.is_none() && self.turn_running() && wanted
    }

    /// What is missing in its output, when something is.
    #[must_use]
    pub fn missing_output(&self) -> Option<String> {
        let dropped = self.trimmed + self.trimmed_err;
        let dropped = (self.plan.mode == Mode::Headless && dropped > 0)
            .then(|| format!("the oldest {} of its output was dropped (output_limit)", size(dropped)));
        let held = self.held.as_ref().map(|held| format!("its output was paused when it ended: {}", held.why));
        let words: Vec<String> = dropped.into_iter().chain(held).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The word for it in `ls`.
    #[must_use]
    pub fn phase(&self) -> Phase {
        if self.outcome.is_some() {
            return Phase::Ended;
        }
        let waits = self.plan.speaks.converses() && !self.queue.is_empty();
        let over = self.process == Process::Exited || self.is_done();
        if over && self.goes_on_without_process() {
            return if waits { Phase::Working } else { Phase::Idle };
        }
        match self.process {
            Process::Starting => Phase::Starting,
            Process::Exited => Phase::Stopping,
            Process::Running if self.stop.is_some() || over => Phase::Stopping,
            Process::Running if self.conversation == Conversation::Opening => Phase::Starting,
            Process::Running if !self.asks.is_empty() => Phase::Asking,
            Process::Running if !self.plan.speaks.converses() => Phase::Running,
            Process::Running if self.turn_running() || waits => Phase::Working,
            Process::Running => Phase::Idle,
        }
    }
}
