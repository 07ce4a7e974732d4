//! `fan`: copies a session once per prompt, waits for all of them, and sends their results back to it as one message.

use crate::{Driver, End, JobError, Waited};
use ostler_core::fact::Verdict;
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::outcome::Kind;
use ostler_core::view::View;
use ostler_engine::handover::beginning;
use ostler_engine::{Fork, Place, Resume};
use serde::{Deserialize, Serialize};

/// The kind of job.
pub const KIND: &str = "fan";

/// A copy that was cut off is continued, up to this many attempts in all.
const ATTEMPTS: u32 = 8;

/// How much of an answer goes into the message.
const ANSWER: usize = 16 << 10;

/// The spec of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fan {
    /// The session that is copied, and gets the results.
    pub session: SessionId,
    /// The prompt of each copy.
    pub prompts: Vec<String>,
}

/// The result of a copy, as it is noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CopyResult {
    session: SessionId,
    how: String,
    succeeded: bool,
    text: String,
}

/// Drives the copies.
///
/// # Errors
/// When it is to stop, or when a step cannot be taken.
pub fn drive(driver: &mut Driver, spec: Fan) -> Result<End, JobError> {
    let original = driver.engine().settled(spec.session)?.ok_or_else(|| JobError::Gone(spec.session.to_string()))?;
    // All copies are started before the first is waited for.
    let mut copies = Vec::new();
    for (number, prompt) in (1..).zip(&spec.prompts) {
        let message = Some(prompt.clone());
        let copy = driver.child_by(&format!("copy {number}"), |engine, id| {
            Ok(engine.fork(&original, Fork { message, id: Some(id), ..Fork::default() }, &mut |_| {})?.place)
        })?;
        driver.progress(&format!("copy {number}: started as {}", copy.id))?;
        copies.push(copy);
    }
    let mut came = Vec::new();
    for (number, (copy, prompt)) in (1..).zip(copies.iter().zip(&spec.prompts)) {
        let result = result(driver, number, copy, prompt)?;
        driver.progress(&format!("copy {number}: {}", result.how))?;
        came.push(result);
    }
    let message = driver.once("message", |_| Ok(message(&spec.prompts, &came)))?;
    let request = driver.send("results", &original, &message, Resume::default())?;
    driver.progress(&format!("the results are sent to {}", original.id))?;
    let Waited::Ended(reply) = driver.reply(&original, &request, None)? else {
        return Ok(End::failed("the time was up"));
    };
    let succeeded = came.iter().filter(|came| came.succeeded).count();
    let copies = format!("{succeeded} of {} succeeded", counted(came.len() as u64, "copy", "copies"));
    Ok(match reply.map(|end| end.verdict) {
        Some(Verdict::Succeeded) if succeeded == came.len() => {
            End::succeeded(format!("{copies}, {} has replied", original.id))
        }
        Some(Verdict::Succeeded) => End::failed(format!("{copies}, {} has replied", original.id)),
        Some(Verdict::Failed) => End::failed(format!("{copies}, the reply of {} failed", original.id)),
        Some(Verdict::Interrupted) => End::failed(format!("{copies}, the reply of {} was interrupted", original.id)),
        None => End::failed(format!("{copies}, {} ended without a reply", original.id)),
    })
}

/// Waits for a copy. A copy whose process was killed from outside is continued.
fn result(driver: &mut Driver, number: u32, copy: &Place, prompt: &str) -> Result<CopyResult, JobError> {
    let key = format!("result of copy {number}");
    if let Some(known) = driver.noted(&key)? {
        return Ok(known);
    }
    let mut attempt = 1;
    loop {
        let interrupted = format!("copy {number} was interrupted #{attempt}");
        if driver.noted::<bool>(&interrupted)?.is_none() {
            let Waited::Ended(view) = driver.wait(copy, None)? else { continue };
            if driver.cut_off(copy, &view)?.is_none() || attempt == ATTEMPTS {
                let came = came(&view);
                driver.note(&key, &came)?;
                return Ok(came);
            }
            driver.note(&interrupted, &true)?;
        }
        driver.progress(&format!("copy {number}: was interrupted and is continued"))?;
        attempt += 1;
        driver.continue_task(&format!("copy {number} #{attempt}"), copy, prompt)?;
    }
}

fn came(view: &View) -> CopyResult {
    let outcome = view.outcome.as_ref();
    let succeeded = outcome.is_some_and(|outcome| outcome.kind == Kind::Succeeded);
    let how = match outcome {
        Some(outcome) if succeeded => outcome.kind.word().to_owned(),
        Some(outcome) => format!("{}: {}", outcome.kind.word(), outcome.cause),
        None => "how it ended is not known".to_owned(),
    };
    let text = outcome.and_then(|outcome| outcome.text.clone()).unwrap_or_default();
    CopyResult { session: view.id, how, succeeded, text }
}

/// The results as one message.
fn message(prompts: &[String], came: &[CopyResult]) -> String {
    let count = counted(came.len() as u64, "copy", "copies");
    let mut text = format!("{count} of this conversation worked on a prompt each. Their results:\n");
    for (number, (prompt, came)) in (1..).zip(prompts.iter().zip(came)) {
        let prompt = beginning(prompt.trim(), 1000);
        let answer = beginning(came.text.trim(), ANSWER);
        text.push_str(&format!(
            "\n<result number=\"{number}\" session=\"{}\" outcome=\"{}\">\n<prompt>\n{prompt}\n</prompt>\n{answer}\n</result>\n",
            came.session,
            came.how.replace('"', "'"),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_every_result_and_is_bounded() {
        let id = SessionId::from_random(7);
        let came = |text: &str| CopyResult {
            session: id,
            how: "succeeded".to_owned(),
            succeeded: true,
            text: text.to_owned(),
        };
        let prompts = ["one".to_owned(), "two".to_owned()];
        let text = message(&prompts, &[came("first answer"), came(&"é".repeat(100_000))]);
        assert!(text.starts_with("2 copies of this conversation"), "{text}");
        assert!(text.contains("<prompt>\none\n</prompt>\nfirst answer\n</result>"), "{text}");
        assert!(text.len() < 20_000, "{}", text.len());
    }
}
