//! Claude's conversations: `projects/<folder>/<id>.jsonl`, where `<folder>` is made from the folder in which it was begun.

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

    /// It goes on with a conversation only in the folder in which that was begun; later lines may tell of other folders that it
    /// went to.
    fn was_begun_in(&self, file: &Path, cwd: &str) -> bool {
        file.parent().and_then(Path::file_name).is_some_and(|project| project == folder_name(cwd).as_str())
    }

    /// Measured with 2.1: by its id a conversation is not found from another folder; a copy can be made of its file. Going on by
    /// the file writes into the project of the old folder, where it would not be found again by the new one.
    fn copies_elsewhere(&self) -> bool {
        true
    }
}
