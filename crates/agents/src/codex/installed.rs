//! How Codex is installed.

use super::Codex;
use crate::acp::adapters::Behind;
use crate::installed::Installed;

impl Installed for Codex {
    fn package(&self) -> Option<&'static str> {
        Some("@openai/codex")
    }

    /// The npm package's `codex` is a script that starts the real program and stays alive when that program is killed.
    fn beside_its_launcher(&self) -> Vec<String> {
        let (short, long) = match std::env::consts::ARCH {
            "aarch64" => ("arm64", "aarch64"),
            _ => ("x64", "x86_64"),
        };
        vec![format!("../codex-linux-{short}/vendor/{long}-unknown-linux-musl/bin/codex")]
    }
}

impl Behind for Codex {
    fn protocol_names(&self) -> &'static [&'static str] {
        &["codex-acp", "codex"]
    }

    fn repeats_history_first(&self) -> bool {
        true
    }

    fn mixes_in_notices(&self) -> bool {
        true
    }
}
