//! The texts of a loop: the prompt of the next turn, what is looked for in an answer, and the progress line of each
//! turn.

use super::{Done, Loop};
use crate::{Check, Driver, JobError};

/// What an agent writes around a question to a person.
const ASKS: (&str, &str) = ("<wait-for-user>", "</wait-for-user>");

/// The prompt of a turn. `None`: the command that makes it has failed, or printed nothing.
pub fn prompt(driver: &mut Driver, spec: &Loop, number: u32, addition: &str) -> Result<Option<String>, JobError> {
    let words = match &spec.prompt_command {
        Some(command) => {
            let (code, text) = driver.output(&format!("prompt {number}"), command, &driver.folder())?;
            if code != Some(0) || text.trim().is_empty() {
                return Ok(None);
            }
            text
        }
        None => spec.prompt.clone(),
    };
    Ok(Some(format!("{}{addition}", words.trim_end())))
}

/// What is added to the next prompt: how the check failed, and what a person has answered.
pub fn addition(spec: &Loop, check: Option<&Check>, answered: Option<&(String, String)>) -> String {
    let mut text = String::new();
    if let (Some(check), Some(command)) = (check, &spec.until) {
        text.push_str(&format!(
            "\n\nThe check `{command}` {}.",
            match check.code {
                Some(code) => format!("failed with exit code {code}"),
                None => "was ended by a signal".to_owned(),
            }
        ));
        if !check.tail.trim().is_empty() {
            text.push_str(&format!(" The end of its output:\n\n```\n{}\n```", check.tail.trim_end()));
        }
    }
    if let Some((question, answer)) = answered {
        text.push_str(&format!("\n\nYou asked: {question}\nThe answer: {answer}"));
    }
    text
}

/// The question to a person in an answer.
pub fn question(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(ASKS.0)?;
    let question = rest.split_once(ASKS.1).map_or(rest, |(question, _)| question).trim();
    (!question.is_empty()).then_some(question)
}

/// The progress line of a turn.
pub fn progress(spec: &Loop, number: u32, done: &Done, check: Option<&Check>, spent: Option<f64>) -> String {
    let mut parts = vec![format!("turn {number} of {}", spec.max)];
    parts.extend(done.failed.as_ref().map(|reason| format!("failed: {reason}")));
    parts.extend(check.map(Check::words));
    parts.extend(spent.map(|usd| format!("${usd:.2}")));
    parts.join(", ")
}

/// `1 turn`, `3 turns`.
pub fn counted(number: u32) -> String {
    ostler_core::limits::counted(number.into(), "turn", "turns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_the_text_between_its_marks() {
        assert_eq!(question("so <wait-for-user> which one? </wait-for-user> ok"), Some("which one?"));
        assert_eq!(question("<wait-for-user>no end"), Some("no end"));
        assert_eq!(question("<wait-for-user> </wait-for-user>"), None);
        assert_eq!(question("nothing"), None);
    }

    #[test]
    fn the_output_of_the_check_goes_into_the_next_prompt() {
        let spec = Loop { until: Some("make test".to_owned()), max: 3, ..Loop::default() };
        let check = Check { code: Some(2), tail: "one\ntwo\n".to_owned() };
        let text = addition(&spec, Some(&check), Some(&("a or b?".to_owned(), "b".to_owned())));
        assert_eq!(
            text,
            "\n\nThe check `make test` failed with exit code 2. The end of its output:\n\n```\none\ntwo\n```\n\nYou asked: a or b?\nThe answer: b"
        );
        let done = Done { cost_usd: Some(0.1), ..Done::default() };
        assert_eq!(progress(&spec, 2, &done, Some(&check), Some(0.25)), "turn 2 of 3, check failed (exit 2), $0.25");
    }
}
