//! One turn of a loop: in a new conversation, or as the next message of one that is kept.

use super::{Done, Loop, done};
use crate::driver::within_job;
use crate::{Driver, JobError, Waited};
use ostler_core::fact::{TurnEnd, Verdict};
use ostler_core::outcome::Kind;
use ostler_core::rules::Rules;
use ostler_core::view::Phase;
use ostler_engine::queues::StartLater;
use ostler_engine::{Launch, Place, Resume};
use std::collections::BTreeMap;
use std::time::Instant;

/// The key of the only conversation.
const SAME: &str = "conversation";

/// One attempt of a turn.
pub struct Turn<'a> {
    pub number: u32,
    pub attempt: u32,
    pub prompt: &'a str,
    /// What is left of the budget.
    pub left_usd: Option<f64>,
}

impl Turn<'_> {
    fn key(&self) -> String {
        format!("turn {}.{}", self.number, self.attempt)
    }

    /// Takes the turn, once; `None` when the time was up first.
    pub fn take(&self, driver: &mut Driver, spec: &Loop, until: Option<Instant>) -> Result<Option<Done>, JobError> {
        let result = format!("{} result", self.key());
        if let Some(known) = driver.noted(&result)? {
            return Ok(Some(known));
        }
        let taken = if spec.same { self.same(driver, spec, until)? } else { self.fresh(driver, spec, until)? };
        if let Some(taken) = &taken {
            driver.note(&result, taken)?;
        }
        Ok(taken)
    }

    fn launch(&self, driver: &Driver, spec: &Loop) -> Launch {
        Launch {
            agent: spec.agent.clone(),
            arguments: spec.arguments.clone(),
            model: spec.model.clone(),
            rules: within_job(Rules { budget_usd: self.left_usd, ..spec.rules.clone() }),
            start: StartLater::in_queue(spec.queue.clone()),
            ..driver.child_launch()
        }
    }

    fn fresh(&self, driver: &mut Driver, spec: &Loop, until: Option<Instant>) -> Result<Option<Done>, JobError> {
        let launch = Launch { prompt: Some(self.prompt.to_owned()), ..self.launch(driver, spec) };
        let launch = Launch { labels: BTreeMap::from([("turn".to_owned(), self.number.to_string())]), ..launch };
        let child = driver.child(&self.key(), launch)?;
        match driver.wait(&child, until)? {
            Waited::Ended(view) => Ok(Some(done(driver, &child, &view)?)),
            Waited::TimeIsUp => {
                driver.stop(vec![child])?;
                Ok(None)
            }
        }
    }

    fn same(&self, driver: &mut Driver, spec: &Loop, until: Option<Instant>) -> Result<Option<Done>, JobError> {
        let child = driver.child(SAME, Launch { keep: true, ..self.launch(driver, spec) })?;
        // A session that is being stopped takes no further message, so its end is waited for: the next run takes the
        // message.
        if driver.engine().view_without_last(&child)?.state == Phase::Stopping {
            driver.wait(&child, until)?;
        }
        let before = driver.once(&format!("{} cost before", self.key()), |driver| cost(driver, &child))?;
        let resume = Resume { keep: true, rules: Some(within_job(spec.rules.clone())), ..Resume::default() };
        let request = driver.send(&self.key(), &child, self.prompt, resume)?;
        match driver.reply(&child, &request, until)? {
            Waited::Ended(Some(end)) => {
                let spent = cost(driver, &child)?.map(|after| (after - before.unwrap_or(0.0)).max(0.0));
                let done = of_turn(end, spent);
                // The turn was ended together with the loop.
                let stopped = done.failed.is_some() && driver.engine().stopped_with_job(&child, driver.id())?;
                let killed = done.failed.is_some() && driver.engine().reply_was_cut_off(&child, &request)?;
                if killed {
                    withdraw_waiting(driver, &child)?;
                }
                Ok(Some(Done { stopped, killed, ..done }))
            }
            // The session ended before the turn did.
            Waited::Ended(None) => {
                let view = driver.engine().view_without_last(&child)?;
                let never_told = withdraw_waiting(driver, &child)?.contains(&request);
                let done = done(driver, &child, &view)?;
                // The conversation was stopped before this turn began, so the turn does not count.
                let was_none = never_told && view.outcome.is_some_and(|outcome| outcome.kind == Kind::Stopped);
                Ok(Some(Done { stopped: done.stopped || was_none, ..done }))
            }
            Waited::TimeIsUp => {
                driver.stop(vec![child])?;
                Ok(None)
            }
        }
    }
}

/// Withdraws messages that the agent has not taken, because the next attempt sends them again. Returns the requests
/// that the agent certainly has not seen.
fn withdraw_waiting(driver: &Driver, child: &Place) -> Result<Vec<String>, JobError> {
    let mut unseen = Vec::new();
    for waiting in driver.engine().waiting(child)? {
        driver.engine().withdraw(child, waiting.n)?;
        if !waiting.unclear {
            unseen.push(waiting.request.id);
        }
    }
    Ok(unseen)
}

/// Ends the conversation that all turns share, if there is one.
pub fn leave(driver: &mut Driver, spec: &Loop) -> Result<(), JobError> {
    match if spec.same { driver.child_of(SAME)? } else { None } {
        Some(child) => driver.stop(vec![child]),
        None => Ok(()),
    }
}

fn cost(driver: &Driver, child: &Place) -> Result<Option<f64>, JobError> {
    Ok(driver.engine().view_without_last(child)?.cost_usd)
}

fn of_turn(end: TurnEnd, cost_usd: Option<f64>) -> Done {
    let failed = match end.verdict {
        Verdict::Succeeded => None,
        Verdict::Failed | Verdict::Interrupted => Some(end.reason.unwrap_or_else(|| "no reason was given".to_owned())),
    };
    Done { killed: false, stopped: false, failed, text: end.text.unwrap_or_default(), cost_usd }
}
