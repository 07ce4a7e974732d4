//! `loop`: turn after turn, until a check passes, the agent says that it is done, or a limit is reached.
//!
//! * `turn`: one turn, in a new conversation or in the same one.
//! * `words`: the prompt of the next turn, and what is looked for in an answer.

mod turn;
mod words;

use crate::{CutOff, Driver, End, JobError};
use jiff::Timestamp;
use ostler_core::rules::Rules;
use ostler_core::start_when::InQueue;
use ostler_core::view::View;
use ostler_engine::Place;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use turn::Turn;

/// The kind of job.
pub const KIND: &str = "loop";

/// A loop takes at most this many turns, unless the person chooses another number.
pub const MAX: u32 = 20;

/// The text in an answer that ends a loop, unless the person chooses another text.
pub const DONE: &str = "<done/>";

/// After this many failed turns in a row a loop ends: the next would fail as well, and may cost money.
const FAILURES: u32 = 3;

/// After this many turns in a row whose process was killed from outside a loop ends.
const KILLED: u32 = 8;

/// The spec of a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loop {
    /// The agent.
    pub agent: String,
    /// Further arguments of the agent's own.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The model, by the agent's own name for it.
    #[serde(default)]
    pub model: Option<String>,
    /// The prompt of each turn.
    #[serde(default)]
    pub prompt: String,
    /// A command that makes the prompt of each turn.
    #[serde(default)]
    pub prompt_command: Option<String>,
    /// A command that ends the loop when it exits with 0.
    #[serde(default)]
    pub until: Option<String>,
    /// A text in an answer that ends the loop.
    pub until_text: String,
    /// At most this many turns.
    pub max: u32,
    /// No further turn begins once this much was spent.
    #[serde(default)]
    pub budget_usd: Option<f64>,
    /// The loop does not run longer than this.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// One conversation for all turns.
    #[serde(default)]
    pub same: bool,
    /// The rules of each of its sessions: at a usage limit they wait.
    #[serde(default)]
    pub rules: Rules,
    /// The queue that each of its sessions waits in, and its priority there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<InQueue>,
}

/// The result of a turn, as it is noted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Done {
    /// Its process was killed from outside: the turn does not count.
    killed: bool,
    /// The turn was stopped together with the loop: it does not count either, and this may happen any number of times.
    #[serde(default)]
    stopped: bool,
    /// Why the turn failed.
    failed: Option<String>,
    /// The final answer.
    text: String,
    cost_usd: Option<f64>,
}

/// The state of a loop so far.
struct State {
    spent: Option<f64>,
    failures: u32,
    /// What is added to the next prompt.
    addition: String,
}

/// Drives a loop.
///
/// # Errors
/// When it is to stop, or when a step cannot be taken.
pub fn drive(driver: &mut Driver, spec: Loop) -> Result<End, JobError> {
    let began: Timestamp = driver.once("began", |_| Ok(ostler_engine::process::now()))?;
    let deadline = spec.timeout_s.map(|seconds| until(began, seconds));
    let mut state = State { spent: None, failures: 0, addition: String::new() };
    let end = turns(driver, &spec, &mut state, deadline)?;
    turn::leave(driver, &spec)?;
    let spent = state.spent.map(|usd| format!(", ${usd:.2}")).unwrap_or_default();
    Ok(End { words: format!("{}{spent}", end.words), ..end })
}

fn turns(driver: &mut Driver, spec: &Loop, state: &mut State, deadline: Option<Instant>) -> Result<End, JobError> {
    driver.begins_with(&format!("turn 1 of at most {}", spec.max));
    for number in 1..=spec.max {
        let Some(prompt) = words::prompt(driver, spec, number, &state.addition)? else {
            return Ok(End::failed(format!(
                "ended before turn {number}: the prompt command failed or printed nothing"
            )));
        };
        let left = spec.budget_usd.map(|budget| (budget - state.spent.unwrap_or(0.0)).max(0.0));
        let Some(done) = counted_turn(driver, spec, (number, left), &prompt, deadline)? else {
            return Ok(End::failed(format!("the time limit was reached in turn {number}")));
        };
        if done.killed {
            return Ok(End::failed(format!("turn {number} was interrupted {KILLED} times")));
        }
        if let Some(cost) = done.cost_usd {
            state.spent = Some(state.spent.unwrap_or(0.0) + cost);
        }
        state.failures = if done.failed.is_some() { state.failures + 1 } else { 0 };
        let check = match &spec.until {
            Some(command) => Some(driver.check(&format!("check {number}"), command, &driver.folder())?),
            None => None,
        };
        driver.progress(&words::progress(spec, number, &done, check.as_ref(), state.spent))?;
        if check.as_ref().is_some_and(|check| check.code == Some(0)) {
            return Ok(End::succeeded(format!("the check passes after {}", words::counted(number))));
        }
        if done.failed.is_none() && done.text.contains(&spec.until_text) {
            return Ok(End::succeeded(format!("done after {}", words::counted(number))));
        }
        if let Some(reason) = done.failed.as_ref().filter(|_| state.failures >= FAILURES) {
            return Ok(End::failed(format!("{FAILURES} turns failed one after the other: {reason}")));
        }
        if let (Some(budget), Some(spent)) = (spec.budget_usd, state.spent)
            && spent >= budget
        {
            return Ok(End::failed(format!("the budget of ${budget:.2} is used up after {}", words::counted(number))));
        }
        let asked = words::question(&done.text);
        let answered = match asked {
            Some(question) => Some((question.to_owned(), driver.ask(&format!("question {number}"), question)?)),
            None => None,
        };
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(End::failed(format!("the time limit was reached after {}", words::counted(number))));
        }
        state.addition = words::addition(spec, check.as_ref(), answered.as_ref());
    }
    Ok(End::failed(format!("the limit of {} was reached", words::counted(spec.max))))
}

/// Takes a turn until it counts: a turn whose process was killed from outside is taken again. `None`: the time was up.
fn counted_turn(
    driver: &mut Driver,
    spec: &Loop,
    (number, left_usd): (u32, Option<f64>),
    prompt: &str,
    deadline: Option<Instant>,
) -> Result<Option<Done>, JobError> {
    let (mut attempt, mut kills) = (1, 0);
    loop {
        let turn = Turn { number, attempt, prompt, left_usd };
        let Some(done) = turn.take(driver, spec, deadline)? else { return Ok(None) };
        if !done.killed && !done.stopped {
            return Ok(Some(done));
        }
        driver.progress(&format!("turn {number} was interrupted and is not counted"))?;
        kills += u32::from(done.killed);
        if kills == KILLED {
            return Ok(Some(done));
        }
        attempt += 1;
    }
}

/// The moment that many seconds after `began`, by the clock of this process.
fn until(began: Timestamp, seconds: u64) -> Instant {
    let passed = ostler_engine::process::now().duration_since(began);
    let passed = u64::try_from(passed.as_secs()).unwrap_or(0);
    Instant::now() + Duration::from_secs(seconds.saturating_sub(passed))
}

/// The result of a turn whose session has ended.
fn done(driver: &Driver, child: &Place, view: &View) -> Result<Done, JobError> {
    let cut_off = driver.cut_off(child, view)?;
    let outcome = view.outcome.as_ref();
    let succeeded = outcome.is_some_and(|outcome| outcome.kind == ostler_core::outcome::Kind::Succeeded);
    Ok(Done {
        killed: cut_off == Some(CutOff::Killed),
        stopped: cut_off == Some(CutOff::Stopped),
        failed: (!succeeded).then(|| outcome.map(|outcome| outcome.cause.clone()).unwrap_or_default()),
        text: outcome.and_then(|outcome| outcome.text.clone()).unwrap_or_default(),
        cost_usd: view.cost_usd,
    })
}
