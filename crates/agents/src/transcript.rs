//! Where an agent keeps a conversation, and what it contains. Nothing is read here: the callers read.

use crate::Variable;
use crate::recorded;

/// The record that an agent keeps of one conversation.
pub trait Transcript {
    /// The folder in which it keeps its conversations: in another folder the same id means another conversation. `None`
    /// when it has no conversations.
    fn conversations_folder(&self, variable: Variable<'_>) -> Option<String> {
        let _ = variable;
        None
    }

    /// Whether a conversation that has an id is already on disk, even before its first turn.
    fn keeps_what_it_names(&self) -> bool {
        false
    }

    /// Where its transcript of this conversation is. `None`: it does not write a file for each conversation.
    fn transcript(&self, native_id: &str, cwd: &str, variable: Variable<'_>) -> Option<Location> {
        let _ = (native_id, cwd, variable);
        None
    }

    /// Whether this line of its transcript makes it a conversation that can be resumed. Some agents create the file
    /// before it has a message, and neither resume such a file nor begin another one of that name.
    fn begins_with(&self, line: &[u8]) -> bool {
        let _ = line;
        true
    }

    /// The same for a complete transcript, line by line: some lines take back what came before.
    fn begins(&self, lines: &mut dyn Iterator<Item = Vec<u8>>) -> bool {
        let mut lines = lines;
        Iterator::any(&mut lines, |line| self.begins_with(&line))
    }

    /// Where its conversations are, when it keeps them all in one database.
    fn database(&self, variable: Variable<'_>) -> Option<String> {
        let _ = variable;
        None
    }

    /// What it says in this line of its transcript, where that is a text for a person.
    fn said_in(&self, line: &[u8]) -> Option<String> {
        let _ = line;
        None
    }

    /// A reader for the conversation in its transcript or its database, where it keeps one.
    fn recording(&self) -> Option<Box<dyn recorded::Recording>> {
        None
    }

    /// The file with the cost of the last conversation in a directory, if it does not report the cost with its turns.
    fn costs_record(&self, variable: Variable<'_>) -> Option<String> {
        let _ = variable;
        None
    }

    /// The cost of this conversation in that record. `left`: only if the last process there has exited in an orderly
    /// way.
    fn cost_in(&self, record: &[u8], cwd: &str, native_id: &str, left: bool) -> Option<f64> {
        let _ = (record, cwd, native_id, left);
        None
    }
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    At(String),
    /// Somewhere below a folder, with a name that ends like this.
    UnderFolder {
        folder: String,
        name_ends_with: String,
    },
}
