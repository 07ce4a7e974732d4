//! Qwen's conversations: `projects/<folder>/chats/<id>.jsonl` below its home, where `<folder>` is made from the folder
//! in which it works. It opens and closes the file for each write, so open files do not show which process uses a
//! conversation.

use super::Qwen;
use crate::ownership::Ownership;
use crate::repair::Repair;
use crate::stored::{ConversationFile, Stored, Stores};
use crate::stream_json::folder_name;
use crate::transcript::Transcript;
use crate::{Variable, conversation_arguments};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub const CHATS: &str = "chats";

impl Stored for Qwen {
    fn stores(&self, variable: Variable<'_>) -> Option<Stores> {
        let folder = PathBuf::from(self.conversations_folder(variable)?).join("projects");
        Some(Stores::Files { folder, deep: 1, inner: Some(CHATS) })
    }

    fn conversation_file(&self, file: &Path) -> Option<ConversationFile> {
        let id = file.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        let is_one = conversation_arguments::is_uuid(id) && file.parent()?.file_name()? == CHATS;
        is_one.then(|| ConversationFile::Named(id.to_owned()))
    }

    fn cwd_in(&self, line: &[u8]) -> Option<String> {
        let record: Value = serde_json::from_slice(line).ok()?;
        Some(record["cwd"].as_str()?.to_owned())
    }

    fn was_begun_in(&self, file: &Path, cwd: &str) -> bool {
        let project = file.parent().and_then(Path::parent).and_then(Path::file_name);
        project.is_some_and(|project| project == folder_name(cwd).as_str())
    }

    fn copies_conversations(&self) -> bool {
        false
    }
}

impl Ownership for Qwen {
    fn open_files(&self, variable: Variable<'_>) -> Option<String> {
        self.conversations_folder(variable)
    }

    fn reports_processes(&self) -> bool {
        false
    }
}

impl Repair for Qwen {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_named_by_its_id_and_lies_in_the_folder_of_its_project() {
        let id = "01a1ddbd-408d-7262-88d9-97e7e2d532f0";
        let chat = PathBuf::from(format!("/h/.qwen/projects/-w-a-b/chats/{id}.jsonl"));
        assert_eq!(Qwen.conversation_file(&chat), Some(ConversationFile::Named(id.to_owned())));
        assert_eq!(Qwen.conversation_file(Path::new("/h/.qwen/projects/-w/meta.json")), None);
        assert!(Qwen.was_begun_in(&chat, "/w/a.b") && !Qwen.was_begun_in(&chat, "/w"));
    }
}
