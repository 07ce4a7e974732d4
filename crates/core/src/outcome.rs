//! How a run ended. Written once, by link(2), and never replaced.

use crate::fact::{Tokens, TurnEnd, Verdict};
use crate::life::{Conversation, OUTPUT_LOST, State};
use crate::record::{Session, Speaks};
use crate::start_when::Begin;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `exit.json`: what is known about the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    #[serde(default)]
    pub code: Option<i32>,
    #[serde(default)]
    pub signal: Option<i32>,
}

impl Exit {
    /// The process is gone, and how it ended is unknown. Never counts as success.
    pub const UNKNOWN: Exit = Exit { code: None, signal: None };

    /// It ended because it was told to: by SIGTERM, or with the exit code of programs that catch SIGTERM.
    #[must_use]
    pub fn is_by_request(self) -> bool {
        self.signal == Some(15) || self.code == Some(143)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Succeeded,
    Failed,
    Interrupted,
    Stopped,
    Lost,
}

impl Kind {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Succeeded => "succeeded",
            Kind::Failed => "failed",
            Kind::Interrupted => "interrupted",
            Kind::Stopped => "stopped",
            Kind::Lost => "lost",
        }
    }
}

impl From<Verdict> for Kind {
    fn from(verdict: Verdict) -> Kind {
        match verdict {
            Verdict::Succeeded => Kind::Succeeded,
            Verdict::Failed => Kind::Failed,
            Verdict::Interrupted => Kind::Interrupted,
        }
    }
}

/// What the kind was derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Agent,
    Exit,
    Ostler,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saved {
    Verified,
    Unverified,
    NotApplicable,
}

impl Saved {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Saved::Verified => "verified",
            Saved::Unverified => "unverified",
            Saved::NotApplicable => "not applicable",
        }
    }
}

/// `outcome.json`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Outcome {
    pub kind: Kind,
    pub source: Source,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub saved: Saved,
    /// One line: who or what ended it.
    pub cause: String,
    /// The final answer.
    pub text: Option<String>,
    /// Of this run, like `cost_usd`.
    pub tokens: Option<Tokens>,
    pub cost_usd: Option<f64>,
    /// Finished turns of this run.
    pub turns: u32,
    /// Unknown when the end was not observed.
    pub duration_ms: Option<u64>,
    /// Processes that were still running when the program had ended, and were then ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// In the file only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub closing: Option<Box<Closing>>,
}

/// What a reader of an ended session would otherwise have to compute again, from files of any length: in a list of
/// thousands, nearly all sessions have ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closing {
    /// A copy of session.json, and the size of that file.
    pub session: Session,
    pub session_size: u64,
    /// Which run this is the end of.
    pub run: u32,
    pub ended: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// The agent that keeps the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_agent: Option<String>,
    /// What git had checked out in its directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Over all runs, like `tokens` and `cost_usd`.
    pub turns: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Messages that wait for the next run.
    pub queued: u32,
    /// Messages of which it is unknown whether the agent took them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maybe_delivered: Vec<u64>,
    /// How far the inbox had been read.
    pub inbox: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<String>,
    /// The holder and the keeper, as `holder.json` and `keeper.json` named them. Both files are removed at the end, and
    /// a process that moves or deletes the folder waits for these processes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helpers: Option<Unparsed>,
}

/// JSON that a list of thousands of sessions does not have to understand.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unparsed(Box<RawValue>);

impl Unparsed {
    pub fn of(value: &impl Serialize) -> serde_json::Result<Unparsed> {
        serde_json::value::to_raw_value(value).map(Unparsed)
    }

    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.0.get())
    }
}

impl PartialEq for Unparsed {
    fn eq(&self, other: &Unparsed) -> bool {
        let value = |unparsed: &Unparsed| unparsed.parse::<serde_json::Value>().ok();
        value(self) == value(other)
    }
}

/// Judges a run whose process is gone, from everything that is known about it: what the agent reported, then how the
/// process ended, then "lost".
#[must_use]
pub fn judge(state: &State, now_ms: u64) -> Outcome {
    let exit = state.exit().unwrap_or(Exit::UNKNOWN);
    let (kind, source, cause) = match &state.begin {
        Begin::Begun => verdict(state, exit),
        Begin::Queued => never_begun(state, exit, None),
        Begin::Never { reason, stopped } => never_begun(state, exit, Some((reason, *stopped))),
    };
    // A reader of the outcome alone has to know that the output is not complete.
    let lost = state.alarm.as_ref().filter(|alarm| alarm.ends_with(OUTPUT_LOST));
    let cause = lost.map_or(cause.clone(), |alarm| format!("{cause}; {alarm}"));
    let last = state.last_turn();
    let saved = state.saved.unwrap_or(match state.plan.speaks() {
        Speaks::Bytes => Saved::NotApplicable,
        Speaks::Turns | Speaks::OneTurn | Speaks::Hooks if last.is_none() && !state.turn_running() => {
            Saved::NotApplicable
        }
        Speaks::Turns | Speaks::OneTurn | Speaks::Hooks => Saved::Unverified,
    });
    let (tokens, cost_usd) = state.spending.of_run(state.run);
    Outcome {
        kind,
        source,
        exit_code: exit.code,
        signal: exit.signal,
        saved,
        cause,
        text: last.and_then(|turn| turn.text.clone()),
        tokens,
        cost_usd,
        turns: state.turns_of_run,
        duration_ms: state
            .started_ms()
            .filter(|_| state.begin == Begin::Begun)
            .map(|started_ms| now_ms.saturating_sub(started_ms)),
        left: state.left().to_vec(),
        closing: None,
    }
}

/// The kind alone.
pub(crate) fn kind_of(state: &State) -> Kind {
    verdict(state, state.exit().unwrap_or(Exit::UNKNOWN)).0
}

/// How a session ended whose program was never started.
fn never_begun(state: &State, exit: Exit, never: Option<(&String, bool)>) -> (Kind, Source, String) {
    const NOTHING_RAN: &str = "it was queued, and nothing ran";
    match (never, &state.stop) {
        (_, Some(stop)) => {
            (Kind::Stopped, Source::Ostler, format!("stopped by {}: {}; {NOTHING_RAN}", stop.by, stop.why))
        }
        (Some((reason, stopped)), None) => {
            let kind = if stopped { Kind::Stopped } else { Kind::Failed };
            (kind, Source::Ostler, format!("{reason}; nothing ran"))
        }
        (None, None) => match (exit.code, exit.signal) {
            (None, None) => (Kind::Lost, Source::None, format!("the waiting process is gone; {NOTHING_RAN}")),
            (_, Some(signal)) => {
                let cause = format!("the waiting process was killed by {}; {NOTHING_RAN}", signal_name(signal));
                (Kind::Failed, Source::Exit, cause)
            }
            (Some(code), None) => {
                (Kind::Failed, Source::Exit, format!("the waiting process exited with {code}; {NOTHING_RAN}"))
            }
        },
    }
}

fn verdict(state: &State, exit: Exit) -> (Kind, Source, String) {
    // If the process had already exited, and was not collected yet, the signal had no effect.
    let was_killed = state.steps.killed && (exit.signal == Some(9) || exit == Exit::UNKNOWN);
    let forced = match (was_killed && state.kill_needs_explanation(), state.steps.asked_ms) {
        (false, _) => "",
        (true, Some(_)) => "; killed at the end of the grace period",
        (true, None) => WITH_TASKS,
    };
    // Only a stop that reached the process before it ended by itself counts as one.
    let stopped = state.stop.as_ref().filter(|_| state.end_requested());
    match state.plan.speaks() {
        Speaks::Turns | Speaks::OneTurn | Speaks::Hooks if !state.turn_running() => {
            if let Some(TurnEnd { verdict, reason, .. }) = state.last_turn() {
                let cause = match (stopped, reason) {
                    (Some(stop), _) => format!("stopped by {}: {}{forced}", stop.by, stop.why),
                    (None, Some(reason)) => reason.clone(),
                    (None, None) => format!("the agent reported the end of its turn{}", after_report(state, exit)),
                };
                let cause = match state.handover_in_words() {
                    Some(words) => format!("{cause}; {words}"),
                    None => cause,
                };
                // A stop in the middle of a turn counts as stopped, even though the agent ended that turn properly.
                let broken_off = stopped.is_some_and(|stop| stop.in_turn) && *verdict == Verdict::Interrupted;
                let kind = if broken_off { Kind::Stopped } else { (*verdict).into() };
                return (kind, Source::Agent, cause);
            }
        }
        Speaks::Turns | Speaks::OneTurn | Speaks::Hooks | Speaks::Bytes => {}
    }
    if let Some(reason) = state.not_started() {
        return (Kind::Failed, Source::Ostler, reason.to_owned());
    }
    if let Some(stop) = stopped {
        return (Kind::Stopped, Source::Ostler, format!("stopped by {}: {}{forced}", stop.by, stop.why));
    }
    if let Conversation::Refused { reason, .. } = &state.conversation {
        return (Kind::Failed, Source::Agent, reason.clone());
    }
    let process = match state.plan.speaks() {
        Speaks::Bytes => "the program",
        Speaks::Turns | Speaks::OneTurn | Speaks::Hooks => "the agent",
    };
    // In a terminal a person may start and quit the agent without a turn: then only the exit can be judged.
    let by_exit = match state.plan.speaks() {
        Speaks::Bytes => true,
        Speaks::Hooks => !state.turn_running(),
        Speaks::Turns | Speaks::OneTurn => false,
    };
    let interrupted = state.interrupt.by.as_ref().filter(|_| exit.signal == Some(2) || exit.code == Some(130));
    if let Some(by) = interrupted {
        return (Kind::Interrupted, Source::Exit, format!("interrupted by {by}"));
    }
    match (exit.code, exit.signal, by_exit) {
        (Some(0), _, true) => (Kind::Succeeded, Source::Exit, format!("{process} exited with 0")),
        (Some(code), _, true) => (Kind::Failed, Source::Exit, format!("{process} exited with {code}")),
        (Some(code), _, false) => {
            let when = if state.turn_running() { " before the end of its turn" } else { " before its first turn" };
            (Kind::Failed, Source::Exit, format!("{process} exited with {code}{when}"))
        }
        (None, Some(signal), _) => {
            (Kind::Failed, Source::Exit, format!("{process} was killed by {}", signal_name(signal)))
        }
        (None, None, _) => (Kind::Lost, Source::None, format!("{process} is gone; how it ended is unknown")),
    }
}

/// Why an agent was killed that had not been asked to exit.
const WITH_TASKS: &str = "; killed together with its background tasks, so that their end started no new turn";

fn after_report(state: &State, exit: Exit) -> String {
    if state.steps.killed && state.steps.asked_ms.is_none() {
        return WITH_TASKS.to_owned();
    }
    match (exit.code, exit.signal) {
        (Some(0), _) | (None, None) => String::new(),
        (Some(code), _) => format!("; its process then exited with {code}"),
        (None, Some(signal)) => format!("; its process was then killed by {}", signal_name(signal)),
    }
}

/// The usual name of a signal.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
