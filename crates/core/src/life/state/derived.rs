//! What follows from the state of a session. Nothing here changes it.

use super::process::{HowExited, Input};
use super::turn::TurnAtExit;
use super::{Conversation, Fed, Held, LongLine, Message, Process, Retrying, State, Tree, Typed};
use crate::event::StopHow;
use crate::fact::{Ask, Tokens, TurnEnd};
use crate::limits::size;
use crate::outcome::Exit;
use crate::record::{Channel, Lines, Mode, Speaks, Tty};
use crate::start_when::Begin;
use crate::view::Phase;

impl State {
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.process, Process::Running { .. })
    }

    /// Its program waits to be started, and may be.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.begin == Begin::Queued
    }

    /// The agent has reported that its terminal accepts messages.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.process.input() == Some(Input::Ready)
    }

    /// It runs, and has been told that no further message comes.
    #[must_use]
    pub fn input_has_ended(&self) -> bool {
        self.process.input() == Some(Input::Ended)
    }

    #[must_use]
    pub fn has_exited(&self) -> bool {
        matches!(self.process, Process::Exited(_))
    }

    /// How the process ended, if there was one and it has ended.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.process.exited().and_then(|exited| exited.exit())
    }

    /// When the process ended, in milliseconds since boot; 0 when that is unknown.
    pub(in crate::life) fn exit_ms(&self) -> u64 {
        self.process.exited().map_or(0, |exited| exited.at_ms)
    }

    /// When the process began, in milliseconds since boot.
    #[must_use]
    pub fn started_ms(&self) -> Option<u64> {
        self.process.started_ms()
    }

    /// Why its process could not be started.
    #[must_use]
    pub fn not_started(&self) -> Option<&str> {
        match &self.process.exited()?.how {
            HowExited::NeverStarted { reason } => Some(reason),
            HowExited::Exit(_) => None,
        }
    }

    /// The processes that were found still running after its process had ended.
    #[must_use]
    pub fn left(&self) -> &[String] {
        self.process.exited().map_or(&[], |exited| &exited.left)
    }

    /// The processes that it left running were killed.
    #[must_use]
    pub fn force_cleared(&self) -> bool {
        self.process.exited().is_some_and(|exited| matches!(exited.tree, Tree::Told { forced: true, .. }))
    }

    #[must_use]
    pub fn is_opening(&self) -> bool {
        matches!(self.conversation, Conversation::Opening { .. })
    }

    /// The message that is being put into the agent's input.
    #[must_use]
    pub fn feeding(&self) -> Option<Message> {
        self.mail.feeding()
    }

    /// The message that began the newest turn.
    #[must_use]
    pub fn last_fed(&self) -> Option<Message> {
        self.mail.fed.as_ref().map(|fed| fed.message)
    }

    /// The position from which the newest message is looked for, when it was typed.
    #[must_use]
    pub fn typed(&self) -> Typed {
        self.mail.fed.as_ref().map_or_else(Typed::default, |fed| fed.typed)
    }

    /// How many messages wait. The one that is being typed counts until it is known to have arrived.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let typing = self.feeding().is_some() && self.plan.mode() == Mode::Terminal;
        self.mail.queue.len() + usize::from(typing)
    }

    /// Questions that are not answered yet, oldest first.
    #[must_use]
    pub fn asks(&self) -> &[Ask] {
        match &self.process {
            Process::Running { turn: Some(turn), .. } => &turn.asks,
            // A job reports no turns, and asks by a request.
            Process::Running { turn: None, .. } => &self.questions,
            Process::Starting | Process::Exited(_) => &[],
        }
    }

    /// The running turn waits for the model's server.
    #[must_use]
    pub fn retrying(&self) -> Option<&Retrying> {
        match &self.process {
            Process::Running { turn, .. } => turn.as_ref()?.retrying.as_ref(),
            Process::Starting | Process::Exited(_) => None,
        }
    }

    /// When the running turn began, as far as that is known; milliseconds since boot.
    #[must_use]
    pub fn turn_began_ms(&self) -> Option<u64> {
        match &self.process {
            Process::Starting => None,
            Process::Running { turn, .. } => turn.as_ref().map(|turn| turn.began_ms),
            // A turn that is reported at the exit of its process was the only turn of that process.
            Process::Exited(exited) => exited.started_ms,
        }
        .filter(|ms| *ms > 0)
    }

    /// How the newest turn that is over ended.
    #[must_use]
    pub fn last_turn(&self) -> Option<&TurnEnd> {
        self.last_turn.as_ref().map(|turn| &turn.end)
    }

    /// When that turn ended, or when it turned out that there will be none; milliseconds since boot.
    pub(in crate::life) fn turn_ended_ms(&self) -> u64 {
        let refused_ms = match &self.conversation {
            Conversation::Refused { at_ms, .. } => *at_ms,
            Conversation::Opening { .. } | Conversation::Open => 0,
        };
        self.last_turn.as_ref().map_or(0, |turn| turn.at_ms).max(refused_ms)
    }

    /// Why output is paused, while it is.
    #[must_use]
    pub fn held(&self) -> Option<&Held> {
        self.output.held.as_ref()
    }

    /// A line that is too long and has no end yet, if it comes after what has been decoded.
    #[must_use]
    pub fn within_line(&self) -> Option<LongLine> {
        self.output.long_line.filter(|line| line.start >= self.output.understood)
    }

    /// Whether a turn is under way, for an agent that reports its turns. A turn whose end has not been read yet counts.
    pub(super) fn has_turn(&self) -> bool {
        match &self.process {
            Process::Starting => false,
            Process::Running { turn, .. } => turn.is_some(),
            Process::Exited(exited) => matches!(exited.turn, TurnAtExit::Unfinished { .. }),
        }
    }

    pub(super) fn turn_is_confirmed(&self) -> bool {
        match &self.process {
            Process::Starting => false,
            Process::Running { turn, .. } => turn.as_ref().is_some_and(|turn| turn.confirmed),
            Process::Exited(exited) => exited.turn == TurnAtExit::Unfinished { confirmed: true },
        }
    }

    /// A turn is only expected: its message was typed, and the agent has not reported yet that it began a turn.
    #[must_use]
    pub fn turn_is_unconfirmed(&self) -> bool {
        self.has_turn() && !self.turn_is_confirmed()
    }

    /// What earlier runs have used.
    #[must_use]
    pub fn tokens_before(&self) -> Tokens {
        self.spending.tokens_before(self.run)
    }

    /// Whether the agent is working: between a message and its end-of-turn, or for a command as long as it runs.
    #[must_use]
    pub fn turn_running(&self) -> bool {
        match self.plan.channel {
            Channel::Command | Channel::Tty(Tty::Nothing) => self.is_running() && self.begin == Begin::Begun,
            Channel::Lines(_) | Channel::Tty(Tty::Hooks) => self.has_turn(),
        }
    }

    /// The message of a turn that was cut off by the end of its process. The agent's transcript decides whether the
    /// message was taken. Not for a message that was typed into a terminal: it was typed, whatever the agent did with
    /// it. Not for a turn that was interrupted: that was on purpose.
    #[must_use]
    pub fn without_answer(&self) -> Option<Message> {
        self.without_answer_fed().map(|fed| fed.message)
    }

    pub(super) fn without_answer_fed(&self) -> Option<&Fed> {
        let was_cut_off = self.process.exited().is_some_and(|exited| exited.turn == TurnAtExit::CutOff);
        let cut_off = (self.has_turn() || was_cut_off) && self.interrupt.by.is_none();
        self.mail.fed.as_ref().filter(|_| cut_off && self.plan.channel != Channel::Tty(Tty::Hooks))
    }

    /// The same for a session that would continue. When the process was killed, the next one is given the message. When
    /// it exited by itself, the next one would do the same: then the session ends, and the message waits for `resume`.
    #[must_use]
    pub fn died_with(&self) -> Option<Message> {
        let killed = self.exit().is_some_and(|exit| exit.code.is_none());
        let goes_on = self.stop.is_none() && (self.plan.keep || !self.mail.queue.is_empty());
        self.without_answer().filter(|message| goes_on && (!killed || self.mail.taken_back != Some(message.n)))
    }

    /// The agent has reported the turn that runs.
    #[must_use]
    pub fn turn_is_told(&self) -> bool {
        self.turn_running() && !self.turn_is_unconfirmed()
    }

    /// Whether the running turn is to be interrupted: that was requested, or the session is to end at once.
    #[must_use]
    pub fn breaks_off(&self) -> bool {
        let stop_interrupts =
            self.plan.speaks().converses() && self.stop.as_ref().is_some_and(|stop| stop.how == StopHow::Interrupt);
        self.turn_running() && (self.interrupt.by.is_some() || stop_interrupts)
    }

    /// Whether we did anything to end the process.
    pub(crate) fn end_requested(&self) -> bool {
        self.steps.any()
            || (self.interrupt.sent_ms().is_some() && self.stop.is_some())
            // A machine that shuts down tells the agent itself, perhaps before it tells us.
            || (self.stop.is_some() && self.exit().is_some_and(Exit::is_by_request))
            // Between two processes there is none that could be ended.
            || (self.may_continue() && self.stop.as_ref().is_some_and(|stop| stop.at_ms >= self.exit_ms()))
    }

    /// Whether the outcome has to explain a kill: the stop request did not ask for one.
    pub(crate) fn kill_needs_explanation(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.how != StopHow::Kill)
    }

    /// The process has finished its work: its turn is over, and either it takes no second turn, or no message waits and
    /// it was not asked to stay. Or it will never do anything, because its conversation does not open.
    #[must_use]
    pub fn is_done(&self) -> bool {
        if matches!(self.conversation, Conversation::Refused { .. }) {
            return true;
        }
        let turn_over = self.turns_of_run > 0 && !self.has_turn() && self.feeding().is_none();
        match self.plan.channel {
            Channel::Command => false,
            Channel::Tty(_) => turn_over && self.hands_over(),
            Channel::Lines(Lines::Turns | Lines::OpenedTurns) => {
                turn_over
                    && (self.hands_over() || !self.plan.keep && (self.mail.queue.is_empty() || self.waits_for_limit()))
            }
            Channel::Lines(Lines::OneTurn) => turn_over,
        }
    }

    /// The session continues although its process has ended: the next message gets another process.
    #[must_use]
    pub fn goes_on_without_process(&self) -> bool {
        // A process that ended before it took its message would do so again.
        let took_a_message = self.turns_of_run > 0 && !self.process.exited().is_some_and(|exited| exited.unheard);
        let wanted = self.plan.keep || !self.mail.queue.is_empty();
        self.takes_one_turn() && self.stop.is_none() && self.handover.is_none() && took_a_message && wanted
    }

    /// Its process has ended with its only turn, and how that turn went is still to be read from the last output. Until
    /// then the session is working; it continues afterwards.
    #[must_use]
    pub fn awaits_last_output(&self) -> bool {
        let wanted = self.plan.keep || !self.mail.queue.is_empty();
        self.takes_one_turn() && self.stop.is_none() && self.turn_running() && wanted
    }

    /// What is missing in its output, if anything is.
    #[must_use]
    pub fn missing_output(&self) -> Option<String> {
        let dropped = self.output.trimmed + self.output.trimmed_err;
        let dropped = (self.plan.mode() == Mode::Headless && dropped > 0)
            .then(|| format!("the oldest {} of its output was dropped (output_limit)", size(dropped)));
        let held = self.held().map(|held| format!("its output was paused when it ended: {}", held.why));
        let words: Vec<String> = dropped.into_iter().chain(held).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The state that `ls` shows.
    #[must_use]
    pub fn phase(&self) -> Phase {
        if self.outcome.is_some() {
            return Phase::Ended;
        }
        if self.hands_over() || self.waits_for_limit() || (self.has_exited() && self.proceeds()) {
            return Phase::Waiting;
        }
        let converses = self.plan.speaks().converses();
        let waits = converses && !self.mail.queue.is_empty();
        let over = self.has_exited() || self.is_done();
        if over && self.goes_on_without_process() && (waits || self.restarts_at_ms().is_none()) {
            return if waits { Phase::Working } else { Phase::Idle };
        }
        if self.restarts_at_ms().is_some() {
            return Phase::Waiting;
        }
        match &self.process {
            Process::Starting => Phase::Starting,
            Process::Exited(_) => Phase::Stopping,
            Process::Running { .. } if self.stop.is_some() || over => Phase::Stopping,
            Process::Running { .. } if self.is_queued() => Phase::Queued,
            Process::Running { .. } if self.begin != Begin::Begun => Phase::Stopping,
            Process::Running { .. } if self.is_opening() => Phase::Starting,
            Process::Running { .. } if !self.asks().is_empty() => Phase::Asking,
            Process::Running { .. } if !converses => Phase::Running,
            Process::Running { turn: Some(_), .. } => Phase::Working,
            Process::Running { turn: None, .. } if waits => Phase::Working,
            Process::Running { turn: None, .. } => Phase::Idle,
        }
    }

    /// Other processes may follow this one automatically.
    fn may_continue(&self) -> bool {
        self.takes_one_turn() || (self.has_exited() && (self.plan.rules.restart.is_some() || self.wait.is_some()))
    }

    pub(in crate::life) fn takes_one_turn(&self) -> bool {
        self.plan.speaks() == Speaks::OneTurn
    }
}
