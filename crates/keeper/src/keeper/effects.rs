//! Performs what the life cycle asks for. Each effect, once done, is noted and no longer asked for.

use super::requests::answer_name;
use super::streams::{FULL_DISK_MS, Hold};
use super::tree::{self, Tree};
use super::typing::{CLEAR_LINE, KeysToCome, attempt_name};
use super::{About, Keeper, KeeperError};
use crate::control::{self, Order};
use crate::handles::{self, Handles};
use ostler_core::event::Event;
use ostler_core::fact::Verdict;
use ostler_core::life::{Effect, Message, OUTPUT_LOST};
use ostler_core::limits::counted;
use ostler_core::outcome::judge;
use ostler_core::record::{Channel, Ending, Mode, RequestKind, Speaks, Tty};
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::{RunRecord, inbox, limits};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause_points::{self, Point};
use ostler_sys::process::Pidfd;
use ostler_sys::pty;
use ostler_view::{last_line, write_outcome};
use rustix::process::Signal;

impl Keeper {
    /// Performs effects until none can be performed now.
    pub(super) fn act(&mut self) -> Result<(), KeeperError> {
        loop {
            self.wake_ms = None;
            let mut progress = self.type_by_sight()?;
            for effect in self.state.effects(since_boot_ms()) {
                if progress {
                    break;
                }
                progress |= self.perform(effect)?;
            }
            if !progress || self.done {
                return Ok(());
            }
        }
    }

    /// True when something was noted, so that the life cycle may ask for other effects now.
    fn perform(&mut self, effect: Effect) -> Result<bool, KeeperError> {
        match effect {
            Effect::Feed { n } => {
                let Some(message) = self.state.mail.queue.iter().find(|message| message.n == n).copied() else {
                    return Ok(false);
                };
                if self.types_by_sight() && !self.prompt_takes()? || !self.is_without_dialog()? {
                    return Ok(false);
                }
                self.look_for_foreign_processes()?;
                let written = self.written_before_typing()?;
                let kept = self.written_so_far();
                let about = About { out: self.heard(), ..About::default() };
                self.note_about(about, Event::Feeding { n, written, kept })?;
                pause_points::at(Point::FeedingNoted);
                if self.types_by_sight() {
                    return Ok(true);
                }
                self.feed(message)?;
                pause_points::at(Point::MessageFed);
                self.move_bytes()?;
                Ok(true)
            }
            Effect::EndInput => {
                self.end_input()?;
                pause_points::at(Point::InputEnded);
                self.note(Event::InputEnded)?;
                Ok(true)
            }
            Effect::GiveUpTurn => {
                self.note(Event::NoTurn)?;
                Ok(true)
            }
            Effect::Withdraw => {
                self.withdraw()?;
                Ok(true)
            }
            Effect::NextRun => {
                self.next_run()?;
                Ok(false)
            }
            Effect::Limit { reached } => {
                self.note(self.state.event_at(reached))?;
                // Before any signal, as with a request of a person.
                self.journal.sync()?;
                Ok(true)
            }
            Effect::EndWait => self.end_wait(),
            Effect::Continue => self.continue_turn(),
            Effect::HandOver => self.hand_over_to_agent(),
            Effect::WakeAtTime { second } => self.wait_until(second),
            Effect::Interrupt => {
                self.interrupt()?;
                pause_points::at(Point::InterruptSent);
                self.note(Event::InterruptSent)?;
                Ok(true)
            }
            Effect::Prove { until_ms } => self.prove(until_ms),
            Effect::AskToLeave => {
                self.ask_to_leave()?;
                pause_points::at(Point::LeaveAsked);
                self.note(Event::EndAsked)?;
                Ok(true)
            }
            Effect::Signal { signal } => {
                self.signal_agent(if signal == 9 { Signal::KILL } else { Signal::TERM })?;
                pause_points::at(Point::AgentSignalled);
                self.note(Event::Signalled { signal })?;
                Ok(true)
            }
            Effect::LookAtTree => self.look_at_tree(),
            Effect::ClearTree { forced } => {
                let tree = self.tree();
                tree.end(&tree.left()?, forced)?;
                pause_points::at(Point::TreeCleared);
                self.note(Event::Cleared { forced })?;
                Ok(true)
            }
            Effect::Conclude => self.conclude(),
            Effect::Finish => {
                self.finish()?;
                Ok(false)
            }
            Effect::WakeAt { ms } => {
                self.wake_by(ms);
                Ok(false)
            }
        }
    }

    pub(super) fn wake_by(&mut self, ms: u64) {
        self.wake_ms = Some(self.wake_ms.map_or(ms, |earlier| earlier.min(ms)));
    }

    /// Puts a message into the agent's input, or the rest of it.
    pub(super) fn feed(&mut self, message: Message) -> Result<(), KeeperError> {
        let Some(request) = inbox::read_one(self.folder.dir(), message.at)? else {
            return self.note(Event::Alarm { text: format!("message {} in the inbox cannot be read", message.n) });
        };
        let RequestKind::Message { text, .. } = request.kind else {
            return Ok(());
        };
        let attempt = self.attempt_of(message);
        let name = attempt_name(message, attempt);
        let bytes = match self.record.plan.mode() {
            Mode::Terminal => {
                let keys = self.agent.keys(&text);
                self.terminal.keys_to_come = KeysToCome::after(&name, &text, keys.after_a_pause, self.output.end());
                let last = self.state.last_turn().map(|turn| turn.verdict);
                let line_is_empty = self.record.plan.channel != Channel::Tty(Tty::Hooks)
                    || last != Some(Verdict::Interrupted) && attempt == 1;
                if line_is_empty { keys.at_once } else { [CLEAR_LINE, &keys.at_once].concat() }
            }
            Mode::Headless => {
                let native_id = self.native_id();
                self.agent.message(&ostler_agents::speak::Message {
                    native_id: &native_id,
                    id: &request.id,
                    text: &text,
                })
            }
        };
        self.put_in(&name, bytes)
    }

    /// The agent's id of the conversation, if it has one.
    fn native_id(&self) -> String {
        self.state.native_id.clone().or_else(|| self.record.native_id.clone()).unwrap_or_default()
    }

    pub(super) fn put_in(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), KeeperError> {
        match self.input.put(name, bytes) {
            Err(error) if error.is_full_disk() => self.output.disk_is_full(),
            other => other?,
        }
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), KeeperError> {
        // The turns of some agents are not reported; there the time of the last interrupt makes the name unique.
        let name = format!("interrupt-{}-{}", self.state.turns, self.state.interrupt.last_sent_ms().unwrap_or(0));
        let input = match self.record.plan.channel {
            Channel::Lines(_) => self.agent.interrupt(&self.native_id(), &name),
            Channel::Tty(_) => self.agent.interrupt_keys(),
            Channel::Command => None,
        };
        if let Some(bytes) = input {
            self.input.put(&name, bytes)?;
            self.withdraw_questions()?;
            return Ok(self.input.pump(&self.handles)?);
        }
        match (self.record.plan.channel, self.handles.get(handles::PTY)) {
            (Channel::Lines(_), _) => self.signal_agent(Signal::INT)?,
            (Channel::Tty(_), Some(terminal)) => pty::signal_foreground(terminal, Signal::INT)?,
            (Channel::Command, _) | (Channel::Tty(_), None) => {
                if let Some(agent) = self.agent_pidfd()? {
                    agent.signal_group(Signal::INT)?;
                }
            }
        }
        Ok(())
    }

    /// Tells the agent that its questions will not be answered. From here on no answer is accepted, so none can follow.
    fn withdraw_questions(&mut self) -> Result<(), KeeperError> {
        for ask in self.state.asks().to_vec() {
            if let Some(bytes) = self.agent.withdraw(&ask) {
                self.input.put(&answer_name(&ask), bytes)?;
                self.note(Event::AskClosed { request: ask.request })?;
            }
        }
        Ok(())
    }

    /// Asks the agent to exit in the way that this agent supports. Also called by a keeper whose predecessor may not
    /// have done it.
    pub(super) fn ask_to_leave(&mut self) -> Result<(), KeeperError> {
        self.name_conversation()?;
        // The end of the input would be an empty message, and an agent may empty the conversation before it refuses
        // that message.
        let waits_for_its_message = self.state.plan.speaks() == Speaks::OneTurn && self.state.last_fed().is_none();
        match self.record.plan.ending.clone() {
            Ending::EndOfInput if waits_for_its_message => self.signal_agent(Signal::TERM)?,
            Ending::EndOfInput => self.end_input()?,
            Ending::Hangup => self.signal_agent(Signal::HUP)?,
            Ending::Terminate => self.signal_agent(Signal::TERM)?,
            Ending::Interrupt => self.signal_agent(Signal::INT)?,
            Ending::Typed { keys } => {
                self.input.put("ending", keys.into_bytes())?;
                self.input.pump(&self.handles)?;
            }
        }
        Ok(())
    }

    /// The agent's input ends when no process has its writing end open: the holder is asked to close it, and the keeper
    /// closes it too.
    pub(super) fn end_input(&mut self) -> Result<(), KeeperError> {
        if let Some(line) = self.handles.get(handles::HOLDER_LINE) {
            control::order(line, Order::CloseInput)?;
        }
        self.handles.close(handles::STDIN_WRITE);
        Ok(())
    }

    /// Signals the agent, by identity. A stopped agent must be continued to receive the signal.
    fn signal_agent(&self, signal: Signal) -> Result<(), KeeperError> {
        if let Some(agent) = self.agent_pidfd()? {
            agent.signal(signal)?;
            agent.signal(Signal::CONT)?;
        }
        Ok(())
    }

    /// The agent, by the descriptor that the kernel gave when the agent was started: this is the process, even if its
    /// record has changed since. Only a replacement that was not handed this descriptor has to rely on the record.
    pub(super) fn agent_pidfd(&self) -> Result<Option<Pidfd>, KeeperError> {
        Ok(match self.handles.copy(handles::AGENT)? {
            Some(pidfd) => Some(Pidfd::adopt(pidfd, &self.process)),
            None => Pidfd::open(&self.process)?,
        })
    }

    pub(super) fn tree(&self) -> Tree<'_> {
        Tree {
            session: self.session.id,
            group: self.group.as_ref(),
            holder: self.holder.pid(),
            agent: &self.process,
            snapshot: self.terminal.snapshots.process_id(),
        }
    }

    fn look_at_tree(&mut self) -> Result<bool, KeeperError> {
        let tree = self.tree();
        let left = tree.left()?;
        if left.is_empty() {
            return self.collect_last_output();
        }
        if self.state.force_cleared() {
            // Started between the look and the kill.
            tree.end(&left, true)?;
        }
        if self.state.left().is_empty() {
            let processes = tree::describe(&left);
            self.note(Event::Left { processes })?;
            return Ok(true);
        }
        Ok(false)
    }

    /// No process is left that could write: what is in the pipes now is all there will be.
    fn collect_last_output(&mut self) -> Result<bool, KeeperError> {
        if !(self.has_room_for_the_rest()? && self.output.drain(&self.handles)?) {
            // The user who stops a session on a full disk does not want to wait, and a file that may not grow never has
            // room; the output that is still in the pipes is reported as lost.
            let why = match self.output.held() {
                Some(Hold::FileTooLarge) => "its output file may not grow (ulimit -f)",
                Some(Hold::DiskFull | Hold::LittleSpace { .. } | Hold::Limit { .. }) | None => {
                    if self.state.stop.is_none() {
                        return Ok(false);
                    }
                    "the disk is full"
                }
            };
            let lost = self.output.waiting(&self.handles)?;
            let lost = counted(lost, "byte", "bytes");
            self.note(Event::Alarm { text: format!("{why}; its last {lost} {OUTPUT_LOST}") })?;
        }
        self.settle_hold()?;
        self.understand()?;
        self.name_conversation()?;
        let ends_with_process = match self.state.plan.speaks() {
            Speaks::OneTurn | Speaks::Hooks => true,
            Speaks::Turns | Speaks::Bytes => false,
        };
        self.settle_typed()?;
        if self.state.turn_is_unconfirmed() {
            self.note(Event::NoTurn)?;
        } else if ends_with_process
            && self.state.turn_running()
            && let (Some(output), Some(exit)) = (self.reader.output(), self.state.exit())
        {
            // The end of the process is the end of the turn, even if the agent did not report it.
            let complaint = last_line::complaint_of(self.run.dir())?;
            let mut end = output.turn_end_at_exit(exit, complaint.as_deref());
            // An agent that was killed in the middle of a turn has not failed.
            if self.state.steps.killed && end.verdict == Verdict::Failed {
                end.verdict = Verdict::Interrupted;
            }
            self.note(Event::TurnEnded { end })?;
            if let Some(message) = self.state.died_with() {
                self.take_back(message)?;
            }
        }
        pause_points::at(Point::TreeEmpty);
        self.note(Event::Empty)?;
        Ok(true)
    }

    /// Writes the outcome. When the disk has no room even for that, it is tried again until there is room.
    fn conclude(&mut self) -> Result<bool, KeeperError> {
        // The message with which the agent died waits for the next run, and is shown as waiting.
        if let Some(message) = self.state.without_answer() {
            self.take_back(message)?;
        }
        self.stop_preparing()?;
        self.count_at_the_end()?;
        self.leave_conversation();
        self.save_now()?;
        let outcome = judge(&self.state, since_boot_ms());
        match write_outcome::publish(&self.folder, &self.run, &self.session, &self.record, &self.state, outcome) {
            Ok(outcome) => {
                pause_points::at(Point::OutcomePublished);
                self.note(Event::Ended { outcome })?;
                pause_points::at(Point::EndNoted);
                Ok(true)
            }
            Err(error) if error.is_full_disk() => {
                self.wake_by(since_boot_ms() + FULL_DISK_MS);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn finish(&mut self) -> Result<(), KeeperError> {
        self.clients.output_changed();
        self.clients.state_changed();
        self.clients.tell(since_boot_ms())?;
        finish(&self.folder, &self.run, &self.record, &self.handles)?;
        self.done = true;
        Ok(())
    }
}

/// The outcome is on disk: holder and keeper exit.
pub(super) fn finish(
    folder: &Folder,
    run: &RunFolder,
    record: &RunRecord,
    handles: &Handles,
) -> Result<(), KeeperError> {
    folder.release_reserve();
    limits::clear(record);
    // From here on no connection is accepted: clients read the outcome.
    folder.dir().remove("sock")?;
    pause_points::at(Point::SocketRemoved);
    folder.tidy(run);
    if let Some(line) = handles.get(handles::HOLDER_LINE) {
        control::order(line, Order::Finish)?;
    }
    pause_points::at(Point::HolderFinished);
    Ok(())
}
