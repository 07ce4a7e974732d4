//! What is known about a session, folded from its journal.

use crate::event::{Entry, Event};
use crate::fact::{Ask, TurnEnd, UsageLimit, Verdict};
use crate::outcome::{Exit, Outcome, Saved};
use crate::record::{Channel, Mode, Plan, Tty};
use crate::spending::Spending;
use crate::start_when::Begin;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

mod automatic_runs;
mod derived;
mod handover;
mod mail;
mod parts;
mod process;
mod turn;
mod wait;

pub use automatic_runs::AutomaticRuns;
pub use handover::{Continues, Handover};
pub use mail::{Fed, Given, Mail, Message, Typed, Unanswered};
pub use parts::{Conversation, Held, Keepers, LongLine, Output, Stop};
pub(super) use process::Tree;
pub use process::{EndSteps, Exited, Process};
use process::{HowExited, Input};
use turn::{EndedTurn, TurnAtExit};
pub use turn::{Interrupt, Retrying, Turn};
pub use wait::{Until, Wait};

/// At most so many background tasks are listed: it matters only whether there are any.
const TASKS_LIMIT: usize = 1000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub run: u32,
    pub plan: Plan,
    /// When its present phase began, where an entry with a time said so.
    pub since: Option<Timestamp>,
    pub(super) process: Process,
    /// Whether its program was started.
    #[serde(default)]
    pub begin: Begin,
    pub conversation: Conversation,
    pub native_id: Option<String>,
    /// Where the agent stores the conversation, when it has reported that.
    pub transcript: Option<String>,

    pub mail: Mail,
    /// The inbox has been processed up to here.
    pub inbox: u64,

    /// Finished turns, over all runs and of this one.
    pub turns: u32,
    pub turns_of_run: u32,
    last_turn: Option<EndedTurn>,
    pub interrupt: Interrupt,
    /// What each turn has used.
    pub spending: Spending,
    /// Background tasks that run beside its turns.
    pub tasks: Vec<String>,
    /// Whether the newest turn is in the agent's transcript, when that is known.
    pub saved: Option<Saved>,

    pub stop: Option<Stop>,
    pub steps: EndSteps,
    pub outcome: Option<Outcome>,
    /// The sequence of runs that began automatically, of which this run is the newest.
    #[serde(default, rename = "row")]
    pub automatic: AutomaticRuns,
    /// The usage limit that the newest turn has reached.
    #[serde(default)]
    limited: Option<UsageLimit>,
    /// The wait for that limit to be reset.
    #[serde(default)]
    pub wait: Option<Wait>,
    /// Another agent continues instead.
    #[serde(default)]
    pub handover: Option<Handover>,
    /// The message with which it continues after its newest turn is among its messages.
    #[serde(default)]
    continuation: bool,
    /// Its wait is over, and the next run is to begin.
    #[serde(default)]
    proceeds: bool,
    /// Its next run was asked to begin without a pause.
    #[serde(default)]
    skips_pause: bool,
    /// The process was the driver of a job and had recorded a step in this run.
    #[serde(default)]
    progress: bool,

    pub keepers: Keepers,
    pub alarm: Option<String>,
    pub output: Output,
    /// What a job asks a person. A job reports no turns, so these questions belong to no turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Ask>,
}

impl State {
    /// A session in which nothing has happened yet.
    #[must_use]
    pub fn new(plan: Plan) -> State {
        let conversation = if plan.opens() { Conversation::Opening { no_answer: false } } else { Conversation::Open };
        State {
            run: 0,
            plan,
            since: None,
            process: Process::Starting,
            begin: Begin::Begun,
            conversation,
            native_id: None,
            transcript: None,
            mail: Mail::default(),
            inbox: 0,
            turns: 0,
            turns_of_run: 0,
            last_turn: None,
            interrupt: Interrupt::default(),
            spending: Spending::default(),
            tasks: Vec::new(),
            saved: None,
            stop: None,
            steps: EndSteps::default(),
            outcome: None,
            automatic: AutomaticRuns::default(),
            limited: None,
            wait: None,
            handover: None,
            continuation: false,
            proceeds: false,
            skips_pause: false,
            progress: false,
            keepers: Keepers::default(),
            alarm: None,
            output: Output::default(),
            questions: Vec::new(),
        }
    }

    /// The same for a reader that lists what every turn has used.
    #[must_use]
    pub fn listing_all_turns(plan: Plan) -> State {
        State { spending: Spending::keeping_all(), ..State::new(plan) }
    }

    /// What carries over into the next run: the conversation, not the process.
    fn next_run(&mut self, run: u32, plan: Plan, started_ms: u64, continues: bool) {
        let before = std::mem::replace(self, State::new(plan));
        let again = |fed: &Fed| before.has_turn() || before.mail.taken_back != Some(fed.message.n);
        let unanswered = before.without_answer_fed().filter(|fed| again(fed)).map(|fed| Unanswered {
            message: fed.message,
            run: before.run,
            given: fed.given.clone(),
        });
        self.run = run;
        let spent_usd = before.spending.of_session().1.unwrap_or(0.0);
        self.automatic = if continues {
            before.automatic_of_next()
        } else {
            AutomaticRuns::beginning(started_ms, before.turns, spent_usd)
        };
        self.process = Process::Running { started_ms, turn: None, input: Input::default() };
        self.native_id = before.native_id;
        self.mail = before.mail.for_next_run(unanswered);
        self.inbox = before.inbox;
        self.turns = before.turns;
        self.spending = before.spending;
        self.spending.begin_run();
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        // The end is final for a run: after it, only the start of the next run, answers to requests and alarms count.
        let begins = matches!(&entry.event, Event::Started { .. } | Event::Queued { .. } | Event::NotStarted { .. });
        let starts = begins && entry.run > self.run;
        let concerns_inbox = entry.request.is_some() || matches!(&entry.event, Event::Alarm { .. });
        if self.outcome.is_some() && !starts && !concerns_inbox {
            return;
        }
        let heard_before = self.output.understood;
        if let Some(out) = entry.out {
            self.output.understood = self.output.understood.max(out);
        }
        if let Some(inbox) = entry.inbox {
            self.inbox = self.inbox.max(inbox);
        }
        match &entry.event {
            Event::Started { plan, continues } => {
                if starts {
                    self.next_run(entry.run, plan.clone(), entry.ms, *continues);
                }
            }
            Event::Queued { plan } => {
                if starts {
                    self.next_run(entry.run, plan.clone(), entry.ms, false);
                    self.begin = Begin::Queued;
                }
            }
            Event::Begun => {
                if self.is_queued() {
                    self.begin = Begin::Begun;
                    self.process.begins(entry.ms);
                    // The time in the queue does not count for its limits.
                    let spent_usd = self.spending.of_session().1.unwrap_or(0.0);
                    self.automatic = AutomaticRuns::beginning(entry.ms, self.turns, spent_usd);
                }
            }
            Event::NotBegun { reason, stopped } => {
                if self.is_queued() {
                    self.begin = Begin::Never { reason: reason.clone(), stopped: *stopped };
                }
            }
            Event::NotStarted { reason } => {
                if starts {
                    self.next_run(entry.run, self.plan.clone(), entry.ms, true);
                    self.process.exit(HowExited::NeverStarted { reason: reason.clone() }, entry.ms);
                }
            }
            Event::KeeperStarted { pid, start, .. } => {
                self.keepers.starts += 1;
                self.keepers.newest = start.map(|start| (*pid, start));
            }
            Event::Accepted { n, place, now, by } => {
                self.mail.accept(Message { n: *n, at: *place }, *now);
                if *now && self.turn_running() {
                    self.interrupt.request(by);
                }
            }
            Event::Withdrawn { n, .. } => self.mail.withdraw(*n),
            Event::MessageWaits { why } => self.mail.waits.clone_from(why),
            Event::Feeding { n, written, kept } => {
                let at_ms = u64::try_from(entry.at.as_millisecond()).unwrap_or(0);
                let typed = written.map_or_else(Typed::default, |written| Typed { written, at_ms });
                self.mail.feed(*n, typed, Given { at_ms, out: heard_before, written: kept.clone() });
                // A typed message begins a turn when the agent reports one.
                self.begin_turn(heard_before, entry.ms, self.plan.channel != Channel::Tty(Tty::Hooks));
            }
            Event::Returned { n, place } => {
                if self.plan.mode() == Mode::Terminal && self.feeding().is_some_and(|message| message.n == *n) {
                    self.unsend();
                } else {
                    self.mail.forget_fed(*n);
                    if let Some(exited) = self.process.exited_mut() {
                        exited.unheard = exited.exit().is_some_and(|exit| exit.code.is_some());
                    }
                }
                self.mail.take_back(Message { n: *n, at: *place });
                self.is_prepared();
            }
            Event::MaybeDelivered { n, place } => self.mail.is_unclear(Message { n: *n, at: *place }),
            Event::FoundDelivered { n } => {
                self.mail.unanswered = None;
                self.mail.forget_fed(*n);
                self.mail.is_not_unclear(*n);
            }
            Event::Delivered { n } => self.mail.was_delivered(*n, entry.ms),
            Event::InputEnded => self.process.input_becomes(Input::Ended),
            Event::Native { id } => self.native_id = Some(id.clone()),
            Event::Transcript { path } => self.transcript = Some(path.clone()),
            Event::Ready => self.process.input_becomes(Input::Ready),
            Event::TurnStarted => {
                self.confirm_turn();
                self.begin_turn(heard_before, entry.ms, true);
            }
            Event::NoTurn => self.drop_unconfirmed_turn(),
            Event::NoAnswer => {
                if let Conversation::Opening { no_answer } = &mut self.conversation {
                    *no_answer = true;
                }
            }
            // Only the first answer counts: an agent that refuses may also answer what was asked together with it.
            Event::Opened { native_id } => {
                if self.is_opening() {
                    self.conversation = Conversation::Open;
                    if native_id.is_some() {
                        self.native_id.clone_from(native_id);
                    }
                }
            }
            Event::NotOpened { reason } => {
                if self.is_opening() {
                    self.conversation = Conversation::Refused { reason: reason.clone(), at_ms: entry.ms };
                }
            }
            Event::Asked { ask } => {
                if !self.asks().iter().any(|open| open.request == ask.request) {
                    self.ask(ask, heard_before, entry.ms);
                }
            }
            Event::AskClosed { request } | Event::Answered { request, .. } => {
                if let Some(turn) = self.process.turn_mut() {
                    turn.asks.retain(|open| open.request != *request);
                }
                self.questions.retain(|open| open.request != *request);
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
                self.output.err_read = self.output.err_read.max(err.unwrap_or(0));
                if let Some(turn) = self.process.turn_mut() {
                    turn.retry(retry, entry.ms);
                }
            }
            Event::Limited { limit } => self.limited = Some(limit.clone()),
            Event::WaitOver { .. } => self.wait_is_over(),
            Event::HandingOver { agent, id } => self.handover_is_reserved(agent, *id),
            Event::HandedOver => self.handover_is_over(Continues::Yes),
            Event::NotHandedOver { why } => self.handover_is_over(Continues::No { why: why.clone() }),
            Event::Continued => self.is_prepared(),
            Event::RetryOver => {
                if let Some(turn) = self.process.turn_mut() {
                    turn.retrying = None;
                }
            }
            Event::RetryAlarm { text } => {
                if let Some(retrying) = self.process.turn_mut().and_then(|turn| turn.retrying.as_mut()) {
                    retrying.alarm = Some(text.clone());
                }
            }
            Event::InterruptRequested { by, why } => {
                if self.turn_running() {
                    if self.interrupt.by.is_none() {
                        self.interrupt.why.clone_from(why);
                    }
                    self.interrupt.request(by);
                    // A command may need several interrupts; an agent's turn ends after the first one, or it does not.
                    if !self.plan.speaks().converses() {
                        self.interrupt.is_to_be_sent_again();
                    }
                }
            }
            Event::InterruptSent => self.interrupt.was_sent(entry.ms),
            Event::StopRequested { by, why, how, grace_ms } => self.request_stop(Stop {
                by: by.clone(),
                why: why.clone(),
                how: *how,
                grace_ms: *grace_ms,
                at_ms: entry.ms,
                in_turn: self.turn_running(),
            }),
            Event::EndAsked => {
                self.steps.asked_ms.get_or_insert(entry.ms);
            }
            Event::Signalled { signal } => match signal {
                9 => self.steps.killed = true,
                _ => self.steps.terminated = true,
            },
            Event::Exited { exit, progress } => {
                if !self.has_exited() {
                    self.progress = *progress;
                    self.process.exit(HowExited::Exit(*exit), entry.ms);
                    self.is_left_by_a_person(*exit);
                    // The end of a command is the end of its turn.
                    if self.plan.channel == Channel::Command && self.begin == Begin::Begun {
                        self.turns += 1;
                        self.turns_of_run += 1;
                    }
                    // What it wrote while it exited may be the proof that was missing.
                    if self.saved == Some(Saved::Unverified) {
                        self.saved = None;
                    }
                }
            }
            Event::Left { processes } => {
                if let Some(exited) = self.process.exited_mut() {
                    exited.left.clone_from(processes);
                }
            }
            Event::Cleared { forced } => {
                if let Some(exited) = self.process.exited_mut() {
                    exited.tree.tell(entry.ms, *forced);
                }
            }
            Event::Empty => {
                if let Some(exited) = self.process.exited_mut() {
                    exited.tree = Tree::Empty;
                }
            }
            Event::Saved { saved } => self.saved = Some(*saved),
            Event::Ended { outcome } => self.outcome = Some(outcome.clone()),
            Event::LongLine { start, to } => self.output.long_line = Some(LongLine { start: *start, to: *to }),
            Event::Trimmed { to } => self.output.trimmed = *to,
            Event::TrimmedErr { to } => self.output.trimmed_err = *to,
            Event::Held { why, remedy } => {
                self.output.held = Some(Held { why: why.clone(), remedy: remedy.clone() });
            }
            Event::Released => self.output.held = None,
            Event::Alarm { text } => self.alarm = Some(text.clone()),
            Event::HolderReplaced { .. }
            | Event::Refused { .. }
            | Event::Repaired { .. }
            | Event::Adopted { .. }
            | Event::Tick
            | Event::Unknown => {}
        }
    }

    /// The process was found to be gone, and the time of its exit is unknown.
    pub fn found_gone(&mut self, exit: Exit) {
        self.process.exit(HowExited::Exit(exit), 0);
    }

    /// `heard_before`: how far the output had been decoded before the line that reports the turn.
    fn begin_turn(&mut self, heard_before: u64, now_ms: u64, confirmed: bool) {
        let Process::Running { turn: turn @ None, .. } = &mut self.process else {
            return;
        };
        if self.plan.speaks().converses() {
            *turn = Some(Turn::new(confirmed, now_ms));
            self.mail.unanswered = None;
            self.interrupt.forget();
            self.limited = None;
            self.continuation = false;
            self.is_taken_up_by_a_person();
            if confirmed {
                self.saved = None;
            }
            self.output.turn_begins = heard_before;
        }
    }

    /// The agent has reported the turn that its message was to begin. Nothing of this turn is saved yet.
    fn confirm_turn(&mut self) {
        let confirmed = match &mut self.process {
            Process::Running { turn: Some(turn), .. } => &mut turn.confirmed,
            Process::Exited(Exited { turn: TurnAtExit::Unfinished { confirmed }, .. }) => confirmed,
            Process::Starting | Process::Running { turn: None, .. } | Process::Exited(_) => return,
        };
        if !std::mem::replace(confirmed, true) {
            self.saved = None;
        }
    }

    /// What was typed began no turn.
    fn drop_unconfirmed_turn(&mut self) {
        if self.has_turn() && !self.turn_is_confirmed() {
            self.drop_turn();
        }
    }

    fn drop_turn(&mut self) {
        match &mut self.process {
            Process::Running { turn, .. } => *turn = None,
            Process::Exited(exited) => exited.turn = TurnAtExit::Over,
            Process::Starting => {}
        }
    }

    /// The message that was being typed was never sent: it began no turn, and the message before it is the newest
    /// again.
    fn unsend(&mut self) {
        self.mail.unsend();
        self.drop_unconfirmed_turn();
        if self.has_exited() {
            // It was this message that was not found in the transcript.
            self.saved = None;
        }
    }

    /// An agent that asks is working on a turn.
    fn ask(&mut self, ask: &Ask, heard_before: u64, now_ms: u64) {
        if !self.is_running() {
            return;
        }
        if self.plan.channel == Channel::Command {
            self.questions.push(ask.clone());
            return;
        }
        self.confirm_turn();
        self.begin_turn(heard_before, now_ms, true);
        if let Some(turn) = self.process.turn_mut() {
            turn.retrying = None;
            turn.asks.push(ask.clone());
        }
    }

    fn end_turn(&mut self, end: &TurnEnd, now_ms: u64) {
        let interrupted = self.interrupt.sent_ms().is_some();
        let why = self.interrupt.why.as_deref();
        let end = if interrupted { end.clone().after_interrupt(why) } else { end.clone() };
        let began_ms = self.turn_began_ms().unwrap_or(now_ms);
        if !self.has_turn() || !self.turn_is_confirmed() {
            // The beginning of this turn was not observed: what is known to be saved is an earlier turn.
            self.saved = None;
        }
        self.drop_turn();
        if let Process::Exited(exited) = &mut self.process
            && end.verdict != Verdict::Succeeded
        {
            exited.turn = TurnAtExit::CutOff;
        }
        self.turns += 1;
        self.turns_of_run += 1;
        self.spending.note(self.run, self.turns, &end);
        let at_limit = self.limited.is_some() && end.verdict == Verdict::Failed;
        self.wait_after(&end, began_ms, now_ms);
        self.last_turn = Some(EndedTurn { end, at_ms: now_ms, at_limit });
        self.output.turn_begins = self.output.understood;
    }

    fn request_stop(&mut self, request: Stop) {
        match &mut self.stop {
            None => self.stop = Some(request),
            Some(first) => first.and(&request),
        }
    }
}
