//! What is known about a session, folded from its journal.

use crate::event::{Entry, Event, StopHow};
use crate::fact::{Ask, Retry, TurnEnd, Verdict};
use crate::outcome::{Exit, Outcome, Saved};
use crate::record::{Mode, Plan, Speaks};
use crate::spending::Spending;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

mod derived;
mod parts;

pub use parts::{Conversation, Given, Held, LongLine, Message, Retrying, Stop, Typed, Unanswered};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Process {
    Starting,
    Running,
    Exited,
}

/// So many tasks in its background are told apart; that there are any is all that matters.
const TASKS_LIMIT: usize = 1000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub run: u32,
    pub plan: Plan,
    pub process: Process,
    /// When it came into its present phase, where an entry with a time said so.
    pub since: Option<Timestamp>,
    pub started_ms: u64,
    pub native_id: Option<String>,
    /// Where the agent writes it down, when it has told.
    pub transcript: Option<String>,
    pub conversation: Conversation,
    /// It takes longer to open than it may.
    pub no_answer: bool,

    /// Messages ever accepted.
    pub messages: u64,
    /// Messages that wait, in the order in which they will be delivered.
    pub queue: Vec<Message>,
    /// The message that is being put into the agent's input.
    pub feeding: Option<Message>,
    /// The message that began the newest turn.
    pub last_fed: Option<Message>,
    /// The one before it, which counts again if it turns out that this one was never sent.
    fed_before: Option<(Message, Typed)>,
    /// From where on the newest message is looked for, when it was typed.
    pub typed: Typed,
    /// Why the next message for a terminal waits.
    pub message_waits: Option<String>,
    pub given: Given,
    /// Messages that their process ended with, and of which nothing tells whether the agent took them.
    pub maybe_delivered: Vec<Message>,
    /// The message that an earlier run ended with, before its turn was over.
    pub unanswered: Option<Unanswered>,
    /// The newest turn ended with its process, and not well: its message may never have been taken in.
    cut_off: bool,
    /// The message that was last taken back from a process that died with it. None is given again and again to processes
    /// that die of it.
    taken_back: Option<u64>,
    /// Its process exited by itself without having taken its message: the next one would do the same.
    died_unheard: bool,
    /// Why its process could not be started.
    pub not_started: Option<String>,
    /// The inbox has been worked through up to here.
    pub inbox: u64,
    /// It has been told that no further message comes.
    pub input_ended: bool,
    /// Its terminal takes messages.
    pub ready: bool,
    turn: bool,
    /// The turn is only hoped for: its message was typed, and nothing has told yet that the agent took it for one.
    pub unconfirmed: bool,
    pub delivered_ms: u64,
    pub turn_ended_ms: u64,
    /// Finished turns, over all runs and of this one.
    pub turns: u32,
    pub turns_of_run: u32,
    pub last_turn: Option<TurnEnd>,
    /// What each turn has used.
    pub spending: Spending,
    pub asks: Vec<Ask>,
    /// What goes on in its background, beside its turns.
    pub tasks: Vec<String>,
    pub retrying: Option<Retrying>,
    /// Its standard error has been read for retries up to here.
    pub err_read: u64,
    /// Who wants the running turn to end.
    pub interrupt: Option<String>,
    pub interrupt_sent: bool,
    pub interrupt_sent_ms: u64,

    pub stop: Option<Stop>,
    pub end_asked_ms: Option<u64>,
    pub terminated_ms: Option<u64>,
    pub killed_ms: Option<u64>,

    pub exit: Option<Exit>,
    pub exit_ms: u64,
    pub left: Vec<String>,
    pub cleared_ms: Option<u64>,
    pub force_cleared: bool,
    pub empty: bool,
    pub saved: Option<Saved>,
    pub outcome: Option<Outcome>,

    pub keeper_starts: u32,
    /// Pid and start time of the keeper that came last, in this run.
    pub keeper: Option<(i32, u64)>,
    pub alarm: Option<String>,
    /// The oldest output up to here was dropped, and of standard error.
    pub trimmed: u64,
    pub trimmed_err: u64,
    /// Why output is held, while it is.
    pub held: Option<Held>,
    /// Output up to here has been folded in.
    pub understood: u64,
    /// A line behind that which is too long already.
    pub long_line: Option<LongLine>,
    /// Where the output of the running turn begins.
    pub turn_out: u64,
}

impl State {
    /// A session of which nothing has happened yet.
    #[must_use]
    pub fn new(plan: Plan) -> State {
        State {
            run: 0,
            conversation: if plan.opens { Conversation::Opening } else { Conversation::Open },
            no_answer: false,
            plan,
            process: Process::Starting,
            since: None,
            started_ms: 0,
            native_id: None,
            transcript: None,
            messages: 0,
            queue: Vec::new(),
            feeding: None,
            last_fed: None,
            fed_before: None,
            typed: Typed::default(),
            message_waits: None,
            given: Given::default(),
            maybe_delivered: Vec::new(),
            unanswered: None,
            cut_off: false,
            taken_back: None,
            died_unheard: false,
            not_started: None,
            inbox: 0,
            input_ended: false,
            ready: false,
            turn: false,
            unconfirmed: false,
            delivered_ms: 0,
            turn_ended_ms: 0,
            turns: 0,
            turns_of_run: 0,
            last_turn: None,
            spending: Spending::default(),
            asks: Vec::new(),
            tasks: Vec::new(),
            retrying: None,
            err_read: 0,
            interrupt: None,
            interrupt_sent: false,
            interrupt_sent_ms: 0,
            stop: None,
            end_asked_ms: None,
            terminated_ms: None,
            killed_ms: None,
            exit: None,
            exit_ms: 0,
            left: Vec::new(),
            cleared_ms: None,
            force_cleared: false,
            empty: false,
            saved: None,
            outcome: None,
            keeper_starts: 0,
            keeper: None,
            alarm: None,
            trimmed: 0,
            trimmed_err: 0,
            held: None,
            understood: 0,
            long_line: None,
            turn_out: 0,
        }
    }

    /// The same for a reader that lists what every turn has used.
    #[must_use]
    pub fn listing_all_turns(plan: Plan) -> State {
        State { spending: Spending::keeping_all(), ..State::new(plan) }
    }

    /// What carries over into the next run: the conversation, not the process.
    fn next_run(&mut self, run: u32, plan: Plan, started_ms: u64) {
        let before = std::mem::replace(self, State::new(plan));
        let again = before.without_answer().filter(|message| before.turn || before.taken_back != Some(message.n));
        self.run = run;
        self.process = Process::Running;
        self.started_ms = started_ms;
        self.native_id = before.native_id;
        self.messages = before.messages;
        self.queue = before.queue;
        let unanswered = |message| Unanswered { message, run: before.run, given: before.given };
        self.unanswered = again.map(unanswered).or(before.unanswered);
        self.maybe_delivered = before.maybe_delivered;
        self.taken_back = before.taken_back;
        self.inbox = before.inbox;
        self.turns = before.turns;
        self.spending = before.spending;
        self.spending.begin_run();
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        // Ended is final for a run: only the start of the next one is heard.
        let begins = matches!(&entry.event, Event::Started { .. } | Event::NotStarted { .. });
        let starts = begins && entry.run > self.run;
        let concerns_inbox = entry.request.is_some() || matches!(&entry.event, Event::Alarm { .. });
        if self.outcome.is_some() && !starts && !concerns_inbox {
            return;
        }
        let heard_before = self.understood;
        if let Some(out) = entry.out {
            self.understood = self.understood.max(out);
        }
        if let Some(inbox) = entry.inbox {
            self.inbox = self.inbox.max(inbox);
        }
        match &entry.event {
            Event::Started { plan } => {
                if starts {
                    self.next_run(entry.run, plan.clone(), entry.ms);
                }
            }
            Event::NotStarted { reason } => {
                if starts {
                    self.next_run(entry.run, self.plan.clone(), entry.ms);
                    self.process = Process::Exited;
                    self.exit_ms = entry.ms;
                    self.empty = true;
                    self.not_started = Some(reason.clone());
                }
            }
            Event::KeeperStarted { pid, start, .. } => {
                self.keeper_starts += 1;
                self.keeper = start.map(|start| (*pid, start));
            }
            Event::Accepted { n, place, now, by } => {
                let message = Message { n: *n, at: *place };
                self.messages = self.messages.max(*n);
                if *now {
                    self.queue.insert(0, message);
                    if self.turn_running() {
                        self.interrupt.get_or_insert_with(|| by.clone());
                    }
                } else {
                    self.queue.push(message);
                }
            }
            Event::Withdrawn { n, .. } => {
                self.queue.retain(|waiting| waiting.n != *n);
                self.message_waits = None;
                self.maybe_delivered.retain(|message| message.n != *n);
            }
            Event::MessageWaits { why } => self.message_waits.clone_from(why),
            Event::Feeding { n, written, kept } => {
                self.message_waits = None;
                self.fed_before = self.last_fed.map(|message| (message, self.typed));
                let at_ms = u64::try_from(entry.at.as_millisecond()).unwrap_or(0);
                self.typed = written.map_or_else(Typed::default, |written| Typed { written, at_ms });
                self.given = Given { at_ms, out: heard_before, written: kept.clone() };
                self.feeding = self.queue.iter().find(|waiting| waiting.n == *n).copied();
                self.last_fed = self.feeding;
                self.queue.retain(|waiting| waiting.n != *n);
                self.unconfirmed = self.plan.speaks == Speaks::Hooks && !self.turn;
                self.begin_turn(heard_before);
            }
            Event::Returned { n, place } => {
                self.unanswered = None;
                self.taken_back = Some(*n);
                self.maybe_delivered.retain(|message| message.n != *n);
                if self.plan.mode == Mode::Terminal && self.feeding.is_some_and(|message| message.n == *n) {
                    self.unsend();
                } else {
                    self.last_fed = self.last_fed.filter(|message| message.n != *n);
                    self.died_unheard = self.exit.is_some_and(|exit| exit.code.is_some());
                }
                self.queue.insert(0, Message { n: *n, at: *place });
            }
            Event::MaybeDelivered { n, place } => {
                self.unanswered = None;
                self.last_fed = self.last_fed.filter(|message| message.n != *n);
                if !self.maybe_delivered.iter().any(|message| message.n == *n) {
                    self.maybe_delivered.push(Message { n: *n, at: *place });
                }
            }
            Event::FoundDelivered { n } => {
                self.unanswered = None;
                self.last_fed = self.last_fed.filter(|message| message.n != *n);
                self.maybe_delivered.retain(|message| message.n != *n);
            }
            Event::Delivered { .. } => {
                self.feeding = None;
                self.message_waits = None;
                self.delivered_ms = entry.ms;
            }
            Event::InputEnded => self.input_ended = true,
            Event::Native { id } => self.native_id = Some(id.clone()),
            Event::Transcript { path } => self.transcript = Some(path.clone()),
            Event::Ready => self.ready = true,
            Event::TurnStarted => {
                self.hope_no_longer();
                self.begin_turn(heard_before);
            }
            Event::NoTurn => {
                self.turn &= !self.unconfirmed;
                self.unconfirmed = false;
            }
            Event::NoAnswer => self.no_answer = true,
            // Only the first word counts: one that refuses may answer what was asked with it as well.
            Event::Opened { native_id } if self.conversation == Conversation::Opening => {
                self.conversation = Conversation::Open;
                if native_id.is_some() {
                    self.native_id.clone_from(native_id);
                }
            }
            Event::NotOpened { reason } if self.conversation == Conversation::Opening => {
                self.conversation = Conversation::Refused { reason: reason.clone() };
                self.turn_ended_ms = entry.ms;
            }
            Event::Opened { .. } | Event::NotOpened { .. } => {}
            Event::Asked { ask } => {
                if self.process == Process::Running && !self.asks.iter().any(|open| open.request == ask.request) {
                    self.hope_no_longer();
                    self.begin_turn(heard_before);
                    self.retrying = None;
                    self.asks.push(ask.clone());
                }
            }
            Event::AskClosed { request } | Event::Answered { request, .. } => {
                self.asks.retain(|open| open.request != *request);
            }
            Event::TurnEnded { end } => self.end_turn(end, entry.ms),
            Event::Counted { turn, tokens } => self.spending.count(*turn, *tokens),
            Event::Cost { usd, left } => self.spending.cost(entry.run, *usd, *left),
            Event::Background { task, runs } => {
                self.tasks.retain(|known| known != task);
                if *runs && self.tasks.len() < TASKS_LIMIT {
                    self.tasks.push(task.clone());
                }
            }
            Event::Retrying { retry, err } => {
                self.err_read = self.err_read.max(err.unwrap_or(0));
                self.retry(retry, entry.ms);
            }
            Event::RetryOver => self.retrying = None,
            Event::RetryAlarm { text } => {
                if let Some(retrying) = &mut self.retrying {
                    retrying.alarm = Some(text.clone());
                }
            }
            Event::InterruptRequested { by } => {
                if self.turn_running() {
                    self.interrupt.get_or_insert_with(|| by.clone());
                    // A command may need to be told more than once; an agent's turn ends, or it does not.
                    self.interrupt_sent &= self.plan.speaks.converses();
                }
            }
            Event::InterruptSent => {
                self.interrupt_sent = true;
                self.interrupt_sent_ms = entry.ms;
            }
            Event::StopRequested { by, why, how, grace_ms } => self.request_stop(Stop {
                by: by.clone(),
                why: why.clone(),
                how: *how,
                grace_ms: *grace_ms,
                at_ms: entry.ms,
                in_turn: self.turn_running(),
            }),
            Event::EndAsked => {
                self.end_asked_ms.get_or_insert(entry.ms);
            }
            Event::Signalled { signal } => match signal {
                9 => self.killed_ms = Some(entry.ms),
                _ => self.terminated_ms = Some(entry.ms),
            },
            Event::Exited { exit } => {
                if self.process != Process::Exited {
                    self.process = Process::Exited;
                    self.retrying = None;
                    self.exit = Some(*exit);
                    self.exit_ms = entry.ms;
                    // The end of a command is the end of its turn.
                    if self.plan.speaks == Speaks::Bytes && self.plan.mode == Mode::Headless {
                        self.turns += 1;
                        self.turns_of_run += 1;
                    }
                    self.asks.clear();
                    // What it wrote as it left may be the proof that was missing.
                    if self.saved == Some(Saved::Unverified) {
                        self.saved = None;
                    }
                }
            }
            Event::Left { processes } => self.left.clone_from(processes),
            Event::Cleared { forced } => {
                self.cleared_ms.get_or_insert(entry.ms);
                self.force_cleared |= *forced;
            }
            Event::Empty => self.empty = self.process == Process::Exited,
            Event::Saved { saved } => self.saved = Some(*saved),
            Event::Ended { outcome } => self.outcome = Some(outcome.clone()),
            Event::LongLine { start, to } => self.long_line = Some(LongLine { start: *start, to: *to }),
            Event::Trimmed { to } => self.trimmed = *to,
            Event::TrimmedErr { to } => self.trimmed_err = *to,
            Event::Held { why, remedy } => self.held = Some(Held { why: why.clone(), remedy: remedy.clone() }),
            Event::Released => self.held = None,
            Event::Alarm { text } => self.alarm = Some(text.clone()),
            Event::HolderReplaced { .. }
            | Event::Refused { .. }
            | Event::Repaired { .. }
            | Event::Adopted { .. }
            | Event::Tick
            | Event::Unknown => {}
        }
    }

    /// The message that was being typed was never sent: it began no turn, and the one before it is the newest again.
    fn unsend(&mut self) {
        self.feeding = None;
        self.message_waits = None;
        (self.last_fed, self.typed) = match self.fed_before.take() {
            Some((message, typed)) => (Some(message), typed),
            None => (None, Typed::default()),
        };
        self.turn &= !self.unconfirmed;
        self.unconfirmed = false;
        if self.process == Process::Exited {
            // What was looked for in vain was this message.
            self.saved = None;
        }
    }

    /// How many messages wait: also the one that is being typed, until it is known to have arrived.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let typing = self.feeding.is_some() && self.plan.mode == Mode::Terminal;
        self.queue.len() + usize::from(typing)
    }

    /// `heard_before`: how far the agent had been understood before the line that tells of it.
    fn begin_turn(&mut self, heard_before: u64) {
        if self.plan.speaks.converses() && self.process != Process::Exited && !self.turn {
            self.turn = true;
            self.cut_off = false;
            self.unanswered = None;
            self.interrupt = None;
            if !self.unconfirmed {
                self.saved = None;
            }
            self.interrupt_sent = false;
            self.turn_out = heard_before;
        }
    }

    /// Only a running turn retries. Some agents do not count, so we do.
    fn retry(&mut self, retry: &Retry, now_ms: u64) {
        if self.turn_running() && self.process != Process::Exited {
            let before = self.retrying.take();
            self.retrying = Some(Retrying {
                reason: retry.reason.clone(),
                attempt: retry.attempt.unwrap_or_else(|| before.as_ref().map_or(1, |before| before.attempt + 1)),
                since_ms: before.as_ref().map_or(now_ms, |before| before.since_ms),
                alarm: before.and_then(|before| before.alarm),
            });
        }
    }

    /// The turn that was hoped for is one, and nothing of it is saved yet.
    fn hope_no_longer(&mut self) {
        if std::mem::take(&mut self.unconfirmed) {
            self.saved = None;
        }
    }

    fn end_turn(&mut self, end: &TurnEnd, now_ms: u64) {
        let end = if self.interrupt_sent { end.clone().after_interrupt() } else { end.clone() };
        if !self.turn {
            // Nobody saw it begin: what is known to be saved is an earlier one.
            self.saved = None;
        }
        self.turn = false;
        self.retrying = None;
        self.cut_off = self.process == Process::Exited && end.verdict != Verdict::Succeeded;
        self.hope_no_longer();
        self.turn_ended_ms = now_ms;
        self.turns += 1;
        self.turns_of_run += 1;
        self.spending.note(self.run, self.turns, &end);
        self.last_turn = Some(end);
        self.asks.clear();
        self.turn_out = self.understood;
    }

    /// The first request stays on record; a later one can only be more urgent.
    fn request_stop(&mut self, request: Stop) {
        match &mut self.stop {
            None => self.stop = Some(request),
            Some(first) => {
                let urgency = |how| match how {
                    StopHow::AfterTurn => 0,
                    StopHow::Interrupt => 1,
                    StopHow::Kill => 2,
                };
                if urgency(request.how) > urgency(first.how) {
                    first.how = request.how;
                    first.at_ms = request.at_ms;
                    first.grace_ms = request.grace_ms;
                } else if request.how == first.how {
                    // The earlier of the two ends.
                    let ends = |stop: &Stop| stop.at_ms.saturating_add(stop.grace_ms);
                    let ends = ends(first).min(ends(&request));
                    first.grace_ms = ends.saturating_sub(first.at_ms);
                }
            }
        }
    }
}
