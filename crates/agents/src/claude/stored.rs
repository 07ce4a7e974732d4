//! Claude's conversations: `projects/<folder>/<id>.jsonl`, where `<folder>` is made from the folder in which it was
//! begun.

use super::{Claude, config_folder};
use crate::stored::{ConversationFile, Stored, Stores};
use crate::stream_json::folder_name;
use crate::{Variable, conversation_arguments};
use serde_json::Value;
use std::path::{Path, PathBuf};

impl Stored for Claude {
    fn stores(&self, variable: Variable<'_>) -> Option<Stores> {
        let folder = PathBuf::from(config_folder(variable)?).join("projects");
        Some(Stores::Files { folder, deep: 1, inner: None })
    }

    fn conversation_file(&self, file: &Path) -> Option<ConversationFile> {
        let stem = file.file_stem()?.to_str()?;
        conversation_arguments::is_uuid(stem).then(|| ConversationFile::Named(stem.to_owned()))
    }

    fn copies_are_files(&self) -> bool {
        true
    }

    fn cwd_in(&self, line: &[u8]) -> Option<String> {
        let record: Value = serde_json::from_slice(line).ok()?;
        Some(record["cwd"].as_str()?.to_owned())
    }

    /// Claude resumes a conversation only in the folder in which it was begun. Later lines may name other folders that
    /// claude changed to.
    fn was_begun_in(&self, file: &Path, cwd: &str) -> bool {
        file.parent().and_then(Path::file_name).is_some_and(|project| project == folder_name(cwd).as_str())
    }

    /// Measured with 2.1: a conversation is not found by its id from another folder, but a copy can be made from its
    /// file. If claude resumes by the file, it writes into the project of the old folder, where the new folder would
    /// not find it again.
    fn copies_elsewhere(&self) -> bool {
        true
    }
}
