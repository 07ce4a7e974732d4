//! Parts of lines that look the same no matter which agent wrote them.

use crate::any_json::AnyJson;
use ostler_core::fact::Tokens;
use serde::Deserialize;

/// What went wrong.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Problem<'a> {
    #[serde(borrow)]
    pub message: AnyJson<'a>,
}

/// What was used.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Usage<'a> {
    #[serde(borrow)]
    input_tokens: AnyJson<'a>,
    output_tokens: AnyJson<'a>,
}

impl Usage<'_> {
    /// Nothing, unless the answer was counted.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        Some(Tokens { input: self.input_tokens.count().unwrap_or(0), output: self.output_tokens.count()? })
    }
}
