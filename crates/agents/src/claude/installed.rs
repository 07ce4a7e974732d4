//! How Claude Code is installed.

use super::Claude;
use crate::acp::adapters::Behind;
use crate::installed::Installed;

impl Installed for Claude {
    fn package(&self) -> Option<&'static str> {
        Some("@anthropic-ai/claude-code")
    }

    /// If the npm package was installed without its scripts, its `claude` only prints that; the program is in a package
    /// next to it.
    fn beside_its_launcher(&self) -> Vec<String> {
        let short = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
        vec![format!("../claude-code-linux-{short}/claude")]
    }

    fn example_arguments(&self) -> Option<&'static str> {
        Some("--permission-mode acceptEdits")
    }

    fn offline(&self) -> &'static [(&'static str, &'static str)] {
        &[("DISABLE_AUTOUPDATER", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")]
    }

    fn nesting_marks(&self) -> &'static [&'static str] {
        &[
            "CLAUDECODE",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_ENV_FILE",
            "CLAUDE_PROJECT_DIR",
        ]
    }
}

impl Behind for Claude {
    fn protocol_names(&self) -> &'static [&'static str] {
        &["claude-code-acp", "claude-agent-acp", "claude-code"]
    }

    fn repeats_history_first(&self) -> bool {
        true
    }
}
