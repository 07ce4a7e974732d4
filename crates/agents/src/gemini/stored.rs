//! Gemini's conversations: `tmp/<project>/chats/session-<time>-<start of the id>.jsonl`, whose first line has the
//! complete id. Next to the chats of a project, `.project_root` contains the path of that project.

use super::Gemini;
use crate::Variable;
use crate::stored::{ConversationFile, OlderForm, Stored, Stores};
use crate::transcript::Transcript;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Range;
use std::path::{Path, PathBuf};

const CHATS: &str = "chats";

/// The fields that are needed of a chat in its older form.
#[derive(Default, Deserialize)]
struct OlderChat<'a> {
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
}

impl Stored for Gemini {
    fn stores(&self, variable: Variable<'_>) -> Option<Stores> {
        let folder = PathBuf::from(self.conversations_folder(variable)?).join("tmp");
        Some(Stores::Files { folder, deep: 1, inner: Some(CHATS) })
    }

    fn conversation_file(&self, file: &Path) -> Option<ConversationFile> {
        let is_one = file.file_name()?.to_str()?.starts_with("session-") && file.parent()?.file_name()? == CHATS;
        is_one.then_some(ConversationFile::TellsInFirstLine)
    }

    fn id_in_first_line(&self, line: &[u8]) -> Option<String> {
        let first: Value = serde_json::from_slice(line).ok()?;
        Some(first["sessionId"].as_str()?.to_owned())
    }

    fn has_older_form(&self) -> bool {
        true
    }

    /// One object for the complete chat, on several lines. When it is resumed, gemini writes a `.jsonl` file next to it
    /// (measured, 0.61).
    fn older_form(&self, text: &[u8]) -> Option<OlderForm> {
        let id = self.id_in_first_line(text)?;
        let resume = format!("gemini --resume {id}");
        Some(OlderForm { id, resume })
    }

    fn older_messages(&self, text: &[u8]) -> Vec<Range<usize>> {
        let chat = serde_json::from_slice::<OlderChat<'_>>(text).unwrap_or_default();
        let place = |message: &&RawValue| {
            let start = message.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
            Some(start..start + message.get().len())
        };
        chat.messages.iter().filter_map(place).collect()
    }

    fn file_with_cwd(&self, file: &Path) -> Option<PathBuf> {
        Some(file.parent()?.parent()?.join(".project_root"))
    }

    /// Behind the Agent Client Protocol gemini rewrites the file from its beginning when it loads a conversation
    /// (measured, 0.61).
    fn names_files_by_the_minute(&self) -> bool {
        true
    }

    fn forks_from_file(&self) -> bool {
        true
    }

    /// For a copy gemini reads the file of the original, in any folder. To resume a conversation it searches below the
    /// folder's own name.
    fn copies_elsewhere(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_in_the_older_form_is_cut_into_its_messages() {
        let text =
            b"{\n  \"sessionId\": \"a\",\n  \"messages\": [\n    { \"id\": \"1\" },\n {\"x\": [\"\xc3\xa9\"]}]\n}";
        let messages: Vec<&[u8]> = Gemini.older_messages(text).into_iter().map(|place| &text[place]).collect();
        assert_eq!(messages, [&b"{ \"id\": \"1\" }"[..], b"{\"x\": [\"\xc3\xa9\"]}"]);
        for other in [&b""[..], b"{}", b"[1]", b"{\"messages\":{}}", b"\xff{\"messages\":[]}"] {
            assert_eq!(Gemini.older_messages(other), []);
        }
    }

    #[test]
    fn a_chat_tells_its_id_in_its_first_line() {
        let of = |path: &str| Gemini.conversation_file(Path::new(path));
        let chat = "/h/.gemini/tmp/w/chats/session-2026-11-15T05-45-04184da8.jsonl";
        assert_eq!(of(chat), Some(ConversationFile::TellsInFirstLine));
        assert_eq!(of("/h/.gemini/tmp/w/session-1.jsonl"), None);
        assert_eq!(Gemini.id_in_first_line(b"{\"sessionId\":\"04184da8-2696\"}").as_deref(), Some("04184da8-2696"));
        assert_eq!(Gemini.id_in_first_line(b"{\"sessio"), None);
        assert_eq!(Gemini.file_with_cwd(Path::new(chat)), Some(PathBuf::from("/h/.gemini/tmp/w/.project_root")));
    }
}
