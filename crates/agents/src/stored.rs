//! Conversations that an agent stores, whether or not a process runs. Nothing is read here: an agent says where its
//! conversations are and what a file, a line or a row means; the callers read.

use crate::Variable;
use ostler_core::fact::Tokens;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where and how an agent keeps its conversations.
pub trait Stored {
    /// Where all conversations are. `None` when they cannot be listed.
    fn stores(&self, variable: Variable<'_>) -> Option<Stores> {
        let _ = variable;
        None
    }

    /// The conversation of a file; `None` for any other file of the agent.
    fn conversation_file(&self, file: &Path) -> Option<ConversationFile> {
        let _ = file;
        None
    }

    /// The id in the first line of a [`ConversationFile::TellsInFirstLine`].
    fn id_in_first_line(&self, line: &[u8]) -> Option<String> {
        let _ = line;
        None
    }

    /// Whether an older version has written `.json` files in the place of `.jsonl` files.
    fn has_older_form(&self) -> bool {
        false
    }

    /// What is in such a file. It is only searched: the agent converts it when it resumes the conversation.
    fn older_form(&self, text: &[u8]) -> Option<OlderForm> {
        let _ = text;
        None
    }

    /// The positions of the messages in such a file. Each would be a line in a `.jsonl` file.
    fn older_messages(&self, text: &[u8]) -> Vec<Range<usize>> {
        let _ = text;
        Vec::new()
    }

    /// A file that says in which folder the conversation of this file works.
    fn file_with_cwd(&self, file: &Path) -> Option<PathBuf> {
        let _ = file;
        None
    }

    /// The folder in which the agent worked, if this line of a conversation has it.
    fn cwd_in(&self, line: &[u8]) -> Option<String> {
        let _ = line;
        None
    }

    /// Whether the conversation in this file was begun in this folder, as far as the file's name shows it.
    fn was_begun_in(&self, file: &Path, cwd: &str) -> bool {
        let _ = (file, cwd);
        true
    }

    /// What the conversation has used from its beginning up to this line, if the line has it.
    fn used_up_to(&self, line: &[u8]) -> Option<Tokens> {
        let _ = line;
        None
    }

    /// The SQL with which its database is read, when it keeps its conversations in one.
    fn queries(&self) -> Option<&'static Queries> {
        None
    }

    /// Whether the file of a conversation is named by the minute in which the conversation began. A process that
    /// resumes it through a protocol in the same minute then overwrites the file.
    fn names_files_by_the_minute(&self) -> bool {
        false
    }

    /// Whether it can begin a conversation as a copy of another.
    fn copies_conversations(&self) -> bool {
        true
    }

    /// Whether it can resume a conversation in another folder than the one in which the conversation began.
    fn continues_elsewhere(&self) -> bool {
        false
    }

    /// Whether it can begin a conversation in another folder as a copy of this one.
    fn copies_elsewhere(&self) -> bool {
        self.continues_elsewhere()
    }

    /// Whether a file with the lines of a conversation up to a prompt, and with another id in its name and its lines,
    /// is a conversation.
    fn copies_are_files(&self) -> bool {
        false
    }

    /// Whether it copies a conversation from the conversation's file, so that the file must exist.
    fn forks_from_file(&self) -> bool {
        false
    }
}

/// Where conversations are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Each in a `.jsonl` file `deep` folders below this one, or in the folder `inner` of each of those.
    Files { folder: PathBuf, deep: usize, inner: Option<&'static str> },
    /// All in one SQLite database.
    Database(PathBuf),
}

impl Stores {
    /// The folder or the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Stores::Files { folder: path, .. } | Stores::Database(path) => path,
        }
    }
}

/// How the conversation in a file is identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationFile {
    /// Its name has the id.
    Named(String),
    /// Its first line has the id ([`Stored::id_in_first_line`]).
    TellsInFirstLine,
    /// It holds many conversations.
    Many,
}

/// A conversation as an older version has written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OlderForm {
    pub id: String,
    /// The command with which the agent itself resumes it.
    pub resume: String,
}

/// The SQL of a database of conversations, in which a message consists of parts. `?1` is the conversation's id.
#[derive(Debug)]
pub struct Queries {
    /// Id, folder and time of the last change (milliseconds since 1970) of every conversation of a person, the newest
    /// first.
    pub conversations: &'static str,
    /// Message and part (JSON) of every part, in the order in which they were said.
    pub parts: &'static str,
    /// The ids of all parts, the newest first.
    pub part_ids: &'static str,
    /// Message and part of the part with id `?1`.
    pub part: &'static str,
    /// The message of the newest part.
    pub newest_message: &'static str,
    /// Id, message's id, message and part of every part after part `?2`, in order.
    pub parts_after: &'static str,
    /// The id of the part that has `?2` parts after it.
    pub part_before_end: &'static str,
    /// How many parts there are.
    pub count: &'static str,
}
