//! `ostler review`: another agent, which can only read, judges what a session has changed.

use super::run::{check_agent_name, read_prompt};
use crate::args::Review as Args;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{notice, say, tell};
use ostler_core::review::{Review, ReviewVerdict};
use ostler_core::visible::visible;
use ostler_engine::review::{ReviewRequest, Reviewed};

pub fn run(context: &Context, args: &Args) -> Result<Code> {
    let engine = &context.engine;
    let place = engine.select(&args.id)?;
    args.by.as_deref().map_or(Ok(()), |by| check_agent_name(context, by))?;
    let prompt = args.prompt.as_deref().map(read_prompt).transpose()?;
    let request = ReviewRequest { by: args.by.clone(), prompt, ..ReviewRequest::default() };
    let reviewer = engine.start_review(&place, &request, &mut notice)?;
    tell!("ostler: {} is reviewed by session {}", place.id, reviewer.id);
    let review = match engine.finish_review(&reviewer)? {
        Reviewed::Done(review) => review,
        Reviewed::Asks(reviewer) => {
            let words = format!(
                "session {0}, which reviews, asks something; answer it: ostler answer {0}, then run this command again",
                reviewer.id
            );
            return Err(Failure::new(Code::Asks, words));
        }
    };
    if args.json {
        say!("{}", serde_json::to_string_pretty(&review).unwrap_or_default())?;
    } else {
        for line in lines(&review) {
            say!("{}", visible(&line))?;
        }
    }
    Ok(code(&review))
}

/// Only a pass is a success.
pub fn code(review: &Review) -> Code {
    match review.verdict {
        ReviewVerdict::Pass => Code::Succeeded,
        ReviewVerdict::Fail | ReviewVerdict::Unsure => Code::Failed,
    }
}

/// The verdict, and a line for each finding.
pub fn lines(review: &Review) -> Vec<String> {
    let more = review.reason.as_ref().or(review.summary.as_ref());
    let first = match more {
        Some(words) => format!("{}: {words}", review.verdict.word()),
        None => review.verdict.word().to_owned(),
    };
    let findings = review.findings.iter().map(|finding| format!("{}:{}: {}", finding.file, finding.line, finding.text));
    std::iter::once(first).chain(findings).collect()
}
