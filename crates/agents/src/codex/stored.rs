//! Codex's threads: `sessions/Y/M/D/rollout-<time>-<id>.jsonl`.

use super::{Codex, used_by_thread};
use crate::stored::{ConversationFile, Stored, Stores};
use crate::transcript::Transcript;
use crate::{Variable, conversation_arguments};
use ostler_core::fact::Tokens;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The length of a UUID.
const ID: usize = 36;

impl Stored for Codex {
    fn stores(&self, variable: Variable<'_>) -> Option<Stores> {
        let folder = PathBuf::from(self.conversations_folder(variable)?).join("sessions");
        Some(Stores::Files { folder, deep: 3, inner: None })
    }

    fn conversation_file(&self, file: &Path) -> Option<ConversationFile> {
        let name = file.file_name()?.to_str()?.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
        let id = name.get(name.len().checked_sub(ID)?..)?;
        conversation_arguments::is_uuid(id).then(|| ConversationFile::Named(id.to_owned()))
    }

    fn copies_are_files(&self) -> bool {
        true
    }

    fn cwd_in(&self, line: &[u8]) -> Option<String> {
        let record: Value = serde_json::from_slice(line).ok()?;
        Some(record["payload"]["cwd"].as_str()?.to_owned())
    }

    fn used_up_to(&self, line: &[u8]) -> Option<Tokens> {
        used_by_thread(line)
    }

    fn continues_elsewhere(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_thread_and_another_file_is_none() {
        let of = |path: &str| Codex.conversation_file(Path::new(path));
        let id = "01a1ddbd-408d-7262-88d9-97e7e2d532f0";
        let rollout = format!("/h/.codex/sessions/2026/11/15/rollout-2026-11-15T05-45-30-{id}.jsonl");
        assert_eq!(of(&rollout), Some(ConversationFile::Named(id.to_owned())));
        assert_eq!(of("/h/.codex/sessions/rollout-é.jsonl"), None);
        assert_eq!(of("/h/.codex/state_5.sqlite"), None);
    }
}
