//! How Gemini CLI is installed.

use super::{Gemini, ONE_PROCESS};
use crate::installed::Installed;

impl Installed for Gemini {
    fn package(&self) -> Option<&'static str> {
        Some("@google/gemini-cli")
    }

    fn offline(&self) -> &'static [(&'static str, &'static str)] {
        &[ONE_PROCESS]
    }
}
