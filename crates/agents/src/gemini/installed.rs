//! How Gemini CLI is installed.

use super::{Gemini, ONE_PROCESS};
use crate::acp::adapters::Behind;
use crate::installed::Installed;

impl Installed for Gemini {
    fn package(&self) -> Option<&'static str> {
        Some("@google/gemini-cli")
    }

    fn offline(&self) -> &'static [(&'static str, &'static str)] {
        &[ONE_PROCESS]
    }
}

impl Behind for Gemini {
    fn protocol_names(&self) -> &'static [&'static str] {
        &["gemini", "gemini-cli"]
    }
}
