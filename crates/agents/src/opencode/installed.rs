//! How opencode is installed.

use super::Opencode;
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
