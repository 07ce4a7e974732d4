//! opencode's conversations: rows of one database, in the tables `session`, `message` and `part`.

use super::Opencode;
use crate::Variable;
use crate::stored::{ConversationFile, Queries, Stored, Stores};
use crate::transcript::Transcript;
use std::path::{Path, PathBuf};

const QUERIES: Queries = Queries {
    conversations: "SELECT id, directory, time_updated FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC",
    parts: "SELECT message.data, part.data FROM part JOIN message ON message.id = part.message_id \
            WHERE part.session_id = ?1 ORDER BY message.time_created, message.id, part.id",
    part_ids: "SELECT id FROM part WHERE session_id = ?1 ORDER BY id DESC",
    part: "SELECT message.data, part.data FROM part JOIN message ON message.id = part.message_id WHERE part.id = ?1",
    newest_message: "SELECT message_id FROM part WHERE session_id = ?1 ORDER BY id DESC LIMIT 1",
    parts_after: "SELECT part.id, part.message_id, message.data, part.data FROM part \
                  JOIN message ON message.id = part.message_id \
                  WHERE part.session_id = ?1 AND part.id > ?2 ORDER BY part.id",
    part_before_end: "SELECT id FROM part WHERE session_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2",
    count: "SELECT count(*) FROM part WHERE session_id = ?1",
};

impl Stored for Opencode {
    fn stores(&self, variable: Variable<'_>) -> Option<Stores> {
        self.database(variable).map(|database| Stores::Database(PathBuf::from(database)))
    }

    fn conversation_file(&self, file: &Path) -> Option<ConversationFile> {
        (file.file_name()? == "opencode.db").then_some(ConversationFile::Many)
    }

    fn queries(&self) -> Option<&'static Queries> {
        Some(&QUERIES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_holds_many_conversations_and_other_files_none() {
        let of = |path: &str| Opencode.conversation_file(Path::new(path));
        assert_eq!(of("/d/opencode/opencode.db"), Some(ConversationFile::Many));
        assert_eq!(of("/d/opencode/log/opencode.log"), None);
    }
}
