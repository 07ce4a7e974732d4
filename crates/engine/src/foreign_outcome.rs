//! The outcome of a run that ostler did not start: of an adopted conversation, and of a conversation that was split off
//! from another one.

use ostler_core::outcome::{Closing, Kind, Outcome, Saved, Source};

/// Everything that was said is in the transcript, where it was before. New work belongs to the next run.
pub(crate) fn of_past(kind: Kind, cause: String, closing: Closing) -> Outcome {
    Outcome {
        kind,
        source: Source::Ostler,
        exit_code: None,
        signal: None,
        saved: Saved::Verified,
        cause,
        text: None,
        tokens: None,
        cost_usd: None,
        turns: 0,
        duration_ms: None,
        left: Vec::new(),
        closing: Some(Box::new(closing)),
    }
}
