//! Parts of lines that have the same shape for several agents.

use crate::any_json::AnyJson;
use ostler_core::fact::Tokens;
use serde::Deserialize;

/// An error.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Problem<'a> {
    #[serde(borrow)]
    pub message: AnyJson<'a>,
}

/// Token counts.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Usage<'a> {
    #[serde(borrow)]
    input_tokens: AnyJson<'a>,
    output_tokens: AnyJson<'a>,
}

impl Usage<'_> {
    /// `None` unless the tokens of the answer were counted.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        Some(Tokens { input: self.input_tokens.count().unwrap_or(0), output: self.output_tokens.count()? })
    }
}
