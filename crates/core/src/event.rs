//! What happens in the life of a session. The journal is a list of these, one JSON object per line; the state of a
//! session is what [`crate::life`] makes of them in order.

use crate::fact::{Ask, Retry, Tokens, TurnEnd, UsageLimit};
use crate::id::SessionId;
use crate::moment::Moment;
use crate::outcome::{Exit, Outcome, Saved};
use crate::record::{Plan, Written};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

fn is_false(flag: &bool) -> bool {
    !flag
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// For people.
    pub at: Timestamp,
    /// For deadlines: milliseconds since boot, which a change of the clock does not move.
    pub ms: u64,
    pub run: u32,
    /// How far the agent's output had been understood, when the event was found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<u64>,
    /// The request that this is the answer to.
    #[serde(default, rename = "wish", skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// How far the inbox had been processed, when this is the answer to a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<u64>,
    /// A person is to be notified of this ([`crate::moment`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Moment>,
    #[serde(flatten)]
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Event {
    /// The program runs.
    Started {
        plan: Plan,
        /// The run began automatically: it continues the run before it.
        #[serde(default, skip_serializing_if = "is_false")]
        continues: bool,
    },
    /// A run exists whose program waits to be started: in a queue, for a time, or for other sessions.
    Queued {
        plan: Plan,
    },
    /// The program of a queued run was started.
    Begun,
    /// The program of a queued run will never be started: why, and whether that counts as stopped.
    NotBegun {
        reason: String,
        stopped: bool,
    },
    /// The process of a further run could not be started, and why. The message for that run keeps waiting.
    NotStarted {
        reason: String,
    },
    /// A keeper took over (the first, or a replacement).
    KeeperStarted {
        pid: i32,
        /// Its start time, as the kernel counts it. Together with the pid it identifies the process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<u64>,
        version: String,
    },
    /// The holder died and another process watches the agent now.
    HolderReplaced {
        pid: i32,
    },
    /// A message was accepted; `n` counts from 1 over the life of the session, `place` is its position in the inbox.
    Accepted {
        n: u64,
        place: u64,
        by: String,
        #[serde(default)]
        now: bool,
    },
    /// A request was refused, and why.
    Refused {
        why: String,
    },
    /// A waiting message was withdrawn.
    Withdrawn {
        n: u64,
        by: String,
    },
    /// A message is being put into the agent's input. Written before the first byte.
    Feeding {
        n: u64,
        /// For a message that is typed: how long the agent's transcript was. What is before this position is another
        /// message, even if it has the same words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        written: Option<u64>,
        /// The file in which an agent behind a protocol stores the conversation, and how long it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Written>,
    },
    /// Why the next message for a terminal cannot be typed or confirmed yet; `None` when nothing prevents that any
    /// more.
    MessageWaits {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A message waits again: an earlier process may have taken it but it is not in the agent's transcript, or it was
    /// typed into a terminal and never sent.
    Returned {
        n: u64,
        place: u64,
    },
    /// A process ended while it had this message, and it is unknown whether the agent took it: a person decides.
    MaybeDelivered {
        n: u64,
        place: u64,
    },
    /// It was found that the agent took a message whose process ended.
    FoundDelivered {
        n: u64,
    },
    /// The last byte of a message was taken. A message that is typed into a prompt that we can see was also found in
    /// the transcript.
    Delivered {
        n: u64,
    },
    /// The agent's input was closed: the agent takes one message, and was given it.
    InputEnded,
    /// The agent's own name for the conversation.
    Native {
        id: String,
    },
    /// Where the agent stores that conversation, when it is another place than was known at the start.
    Transcript {
        path: String,
    },
    /// The agent's terminal accepts messages.
    Ready,
    /// The conversation is open for messages; with the agent's own name for it, if the agent has just named it. One
    /// event, because messages need both: a keeper that is killed between two events has already read the line that the
    /// second event came from.
    Opened {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native_id: Option<String>,
    },
    /// The conversation cannot be opened, so there is no reason to keep the process.
    NotOpened {
        reason: String,
    },
    /// The agent has not reported in time whether the conversation can be opened.
    NoAnswer,
    TurnStarted,
    /// What was typed into its terminal did not begin a turn.
    NoTurn,
    Asked {
        ask: Ask,
    },
    AskClosed {
        request: String,
    },
    Answered {
        request: String,
        by: String,
        allowed: bool,
        /// What else was allowed for as long as this process runs, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always: Option<String>,
    },
    TurnEnded {
        end: TurnEnd,
    },
    /// What a turn used, according to the agent's transcript: the agent did not report it at the end of the turn.
    Counted {
        turn: u32,
        tokens: Tokens,
    },
    /// What the conversation has cost according to the agent's own record: noted first when a run begins, then when it
    /// is over. The turns of this agent do not report their cost.
    Cost {
        usd: f64,
        /// The agent continued with another conversation, for which it counts from zero.
        #[serde(default, skip_serializing_if = "is_false")]
        left: bool,
    },
    /// A background task of the agent has started or ended.
    Background {
        task: String,
        runs: bool,
    },
    /// The agent has reached a usage limit, which ends its turn.
    Limited {
        #[serde(flatten)]
        limit: UsageLimit,
    },
    /// The wait of a session is over: the time has come, or the session was asked to continue now.
    WaitOver {
        by: String,
    },
    /// Another agent is to continue, in the session with this id, which is reserved for it.
    HandingOver {
        agent: String,
        id: SessionId,
    },
    /// That session was started.
    HandedOver,
    /// That session could not be started.
    NotHandedOver {
        why: String,
    },
    /// The message with which a session continues after a limit or a failure has been added to its messages.
    Continued,
    /// The agent repeats a request that the model's server did not answer.
    Retrying {
        #[serde(flatten)]
        retry: Retry,
        /// How far its standard error had been read, when the agent reported the retry there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        err: Option<u64>,
    },
    /// The model's server has answered again.
    RetryOver,
    /// The agent has been retrying for longer than the run's `retry_alarm_ms`. An alarm until it gets an answer.
    RetryAlarm {
        text: String,
    },
    /// An interrupt was requested: the running turn is to end.
    #[serde(rename = "interrupt_wanted")]
    InterruptRequested {
        by: String,
        /// The limit for which it was requested, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The interrupt was sent to the agent, in the way that the agent supports.
    InterruptSent,
    /// A stop was requested: the session is to end. Never forgotten, never taken back.
    #[serde(rename = "stop_wanted")]
    StopRequested {
        by: String,
        why: String,
        how: StopHow,
        grace_ms: u64,
    },
    /// The agent was asked to exit, in the way that its plan says ([`crate::record::Ending`]).
    EndAsked,
    /// A signal was sent to the agent.
    Signalled {
        signal: i32,
    },
    /// The process is gone.
    Exited {
        exit: Exit,
        /// The process was the driver of a job and has recorded a step in this run.
        #[serde(default, skip_serializing_if = "is_false")]
        progress: bool,
    },
    /// The processes that it left running when it ended.
    Left {
        processes: Vec<String>,
    },
    /// The processes that it left running were asked to exit (`forced`: were killed).
    Cleared {
        forced: bool,
    },
    /// None of its processes is alive any more, and its output is complete.
    Empty,
    /// Whether the end of the conversation is in the agent's own transcript.
    Saved {
        saved: Saved,
    },
    /// The result, as it is in outcome.json.
    Ended {
        outcome: Outcome,
    },
    /// The output has a line that begins at `start`, is too long to read, and has not ended before `to`. A reader need
    /// not read it again.
    LongLine {
        start: u64,
        to: u64,
    },
    /// The oldest output was dropped up to this position.
    Trimmed {
        to: u64,
    },
    /// The same for its standard error.
    TrimmedErr {
        to: u64,
    },
    /// Output is paused: why, and what a person can do.
    Held {
        why: String,
        #[serde(default)]
        remedy: String,
    },
    /// Output is no longer paused.
    Released,
    /// The agent's transcript was repaired; a copy from before is in `backup`.
    #[serde(rename = "mended")]
    Repaired {
        changes: Vec<String>,
        backup: String,
    },
    /// The conversation was begun outside ostler, and is kept by ostler from here on.
    Adopted {
        by: String,
        native_id: String,
        transcript: String,
        messages: u64,
    },
    /// Something that a person should look at.
    Alarm {
        text: String,
    },
    /// Time passes. Never written to the journal.
    #[serde(skip)]
    Tick,
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

/// What is to happen to the turn that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopHow {
    /// End it by the agent's own means.
    Interrupt,
    /// Let it finish.
    AfterTurn,
    /// Ignore it: the process is killed.
    Kill,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// The fields of an event are written beside those of its entry, so no field may have the name of another.
    #[test]
    fn every_event_reads_back_as_it_was_written() {
        let by = || "a user".to_owned();
        let plan = Plan {
            channel: crate::record::Channel::Lines(crate::record::Lines::Turns),
            keep: false,
            ending: crate::record::Ending::EndOfInput,
            linger_ms: 1,
            rules: crate::rules::Rules::default(),
        };
        let end = TurnEnd {
            verdict: crate::fact::Verdict::Failed,
            text: None,
            reason: None,
            tokens: None,
            cost_usd: None,
            messages: Vec::new(),
        };
        let ask = Ask {
            request: by(),
            tool: None,
            input: serde_json::Value::Null,
            text: by(),
            suggestions: serde_json::Value::Null,
            details: serde_json::Value::Null,
        };
        let outcome = crate::outcome::judge(&crate::life::State::new(plan.clone()), 0);
        let events = [
            Event::Started { plan: plan.clone(), continues: true },
            Event::Queued { plan },
            Event::Begun,
            Event::NotBegun { reason: by(), stopped: true },
            Event::NotStarted { reason: by() },
            Event::KeeperStarted { pid: 2, start: Some(3), version: by() },
            Event::HolderReplaced { pid: 2 },
            Event::Accepted { n: 1, place: 2, by: by(), now: true },
            Event::Refused { why: by() },
            Event::Withdrawn { n: 1, by: by() },
            Event::Feeding { n: 1, written: Some(2), kept: Some(Written { path: by(), size: 2 }) },
            Event::MessageWaits { why: Some(by()) },
            Event::Returned { n: 1, place: 2 },
            Event::MaybeDelivered { n: 1, place: 2 },
            Event::FoundDelivered { n: 1 },
            Event::Delivered { n: 1 },
            Event::InputEnded,
            Event::Native { id: by() },
            Event::Opened { native_id: Some(by()) },
            Event::NotOpened { reason: by() },
            Event::NoAnswer,
            Event::TurnStarted,
            Event::Asked { ask },
            Event::Transcript { path: by() },
            Event::Ready,
            Event::NoTurn,
            Event::AskClosed { request: by() },
            Event::Answered { request: by(), by: by(), allowed: true, always: Some(by()) },
            Event::TurnEnded { end },
            Event::Counted { turn: 1, tokens: Tokens { input: 2, output: 3 } },
            Event::Cost { usd: 0.5, left: true },
            Event::Background { task: by(), runs: true },
            Event::Retrying { retry: Retry { reason: by(), attempt: Some(1) }, err: Some(2) },
            Event::RetryOver,
            Event::RetryAlarm { text: by() },
            Event::InterruptRequested { by: by(), why: Some(by()) },
            Event::Limited { limit: UsageLimit { resets_at: Some(7), ..UsageLimit::new("x") } },
            Event::WaitOver { by: by() },
            Event::HandingOver { agent: by(), id: SessionId::from_random(7) },
            Event::HandedOver,
            Event::NotHandedOver { why: by() },
            Event::Continued,
            Event::InterruptSent,
            Event::StopRequested { by: by(), why: by(), how: StopHow::Kill, grace_ms: 1 },
            Event::EndAsked,
            Event::Signalled { signal: 9 },
            Event::Exited { exit: Exit::UNKNOWN, progress: false },
            Event::Exited { exit: Exit::UNKNOWN, progress: true },
            Event::Left { processes: vec![by()] },
            Event::Cleared { forced: true },
            Event::Empty,
            Event::Saved { saved: Saved::Verified },
            Event::Ended { outcome },
            Event::LongLine { start: 1, to: 2 },
            Event::Trimmed { to: 1 },
            Event::TrimmedErr { to: 1 },
            Event::Held { why: by(), remedy: by() },
            Event::Released,
            Event::Repaired { changes: vec![by()], backup: by() },
            Event::Adopted { by: by(), native_id: by(), transcript: by(), messages: 2 },
            Event::Alarm { text: by() },
        ];
        for event in events {
            let entry = Entry {
                at: Timestamp::UNIX_EPOCH,
                ms: 1,
                run: 1,
                out: Some(2),
                request: Some(by()),
                inbox: Some(3),
                notify: Some(Moment::Ended),
                event,
            };
            let text = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry, "{text}");
        }
    }
}
