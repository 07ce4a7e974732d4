//! How Codex is installed.

use super::Codex;
use crate::installed::Installed;

impl Installed for Codex {
    fn package(&self) -> Option<&'static str> {
        Some("@openai/codex")
    }

    /// The npm package's `codex` is a script that starts the real program and would outlive its death.
    fn beside_its_launcher(&self) -> Vec<String> {
        let (short, long) = match std::env::consts::ARCH {
            "aarch64" => ("arm64", "aarch64"),
            _ => ("x64", "x86_64"),
        };
        vec![format!("../codex-linux-{short}/vendor/{long}-unknown-linux-musl/bin/codex")]
    }
}
