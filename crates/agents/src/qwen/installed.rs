//! How Qwen Code is installed.

use super::{ONE_PROCESS, Qwen};
use crate::acp::adapters::Behind;
use crate::installed::Installed;

impl Installed for Qwen {
    fn package(&self) -> Option<&'static str> {
        Some("@qwen-code/qwen-code")
    }

    fn offline(&self) -> &'static [(&'static str, &'static str)] {
        &[ONE_PROCESS]
    }
}

impl Behind for Qwen {
    fn protocol_names(&self) -> &'static [&'static str] {
        &["qwen", "qwen-code"]
    }
}
