//! How opencode is installed.

use super::Opencode;
use crate::acp::adapters::Behind;
use crate::installed::Installed;

impl Installed for Opencode {
    fn package(&self) -> Option<&'static str> {
        Some("opencode-ai")
    }

    /// The npm package's `opencode` is a script that starts the real program.
    fn beside_its_launcher(&self) -> Vec<String> {
        let short = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
        vec![format!("../opencode-linux-{short}/bin/opencode")]
    }

    fn offline(&self) -> &'static [(&'static str, &'static str)] {
        &[("OPENCODE_DISABLE_AUTOUPDATE", "true"), ("OPENCODE_DISABLE_MODELS_FETCH", "true")]
    }
}

impl Behind for Opencode {
    fn protocol_names(&self) -> &'static [&'static str] {
        &["opencode", "opencode-ai"]
    }

    fn repeats_history_first(&self) -> bool {
        true
    }
}
