//! Which process uses a conversation, from the records that an agent keeps about itself. Nothing is read here: an agent
//! says where to look, and what the content means.

use crate::Variable;
use std::path::{Path, PathBuf};

/// How the processes of an agent are recognised. The processes of an agent that overrides nothing cannot be recognised.
pub trait Ownership {
    /// The folder in which it keeps a JSON file about each of its processes.
    fn registry(&self, variable: Variable<'_>) -> Option<String> {
        let _ = variable;
        None
    }

    /// The content of such a file; `None` when it is not a record.
    fn registered(&self, record: &[u8]) -> Option<Registered> {
        let _ = record;
        None
    }

    /// The folder of the files on which its processes hold flock, one per conversation.
    fn locks(&self, variable: Variable<'_>) -> Option<String> {
        let _ = variable;
        None
    }

    /// The name of the lock file of a conversation, without the conversation's id in front.
    fn lock_suffix(&self) -> &'static str {
        ".lock"
    }

    /// Whether a person began the conversation whose record begins with this line; others belong to subagents.
    fn is_begun_by_a_person(&self, first_line: &[u8]) -> bool {
        let _ = first_line;
        true
    }

    /// The folder below which its processes hold the files of conversations open for writing
    /// ([`crate::stored::Stored::conversation_file`] says which files are conversations).
    fn open_files(&self, variable: Variable<'_>) -> Option<String> {
        let _ = variable;
        None
    }

    /// Whether any of the above shows which process uses a conversation. If not, a person is asked to make sure.
    fn reports_processes(&self) -> bool {
        true
    }

    /// The conversation whose tool writes its output to this file. `user`: the user id.
    fn conversation_of_tool(&self, output: &Path, user: u32) -> Option<String> {
        let _ = (output, user);
        None
    }

    /// Where the tools of this user write their output, below the folder for temporary files.
    fn tool_outputs(&self, temporary: &Path, user: u32) -> Option<PathBuf> {
        let _ = (temporary, user);
        None
    }

    /// The socket of a server that does the work of the program started with these arguments, if a server listens
    /// there: that work is in no process of ours, and cannot be stopped. `None` when the program always works in its
    /// own process.
    fn works_behind(&self, argv: &[String], variable: Variable<'_>) -> Option<String> {
        let _ = (argv, variable);
        None
    }

    /// How a person ends a process of the agent that works for several conversations at once; `None` when a process
    /// with these arguments has only its own. Such a process is never ended because of one conversation.
    fn shared_by_many(&self, argv: &[String]) -> Option<&'static str> {
        let _ = argv;
        None
    }

    /// Whether we can make it report its conversation in the file [`crate::CONVERSATION`].
    fn reports_conversation(&self) -> bool {
        false
    }

    /// The conversation that its process `pid` reports in a line of that file.
    fn reported_conversation(&self, line: &[u8], pid: i32) -> Option<String> {
        let _ = (line, pid);
        None
    }

    /// The path of its record of its own process.
    fn own_record(&self, pid: i32, variable: Variable<'_>) -> Option<String> {
        let _ = (pid, variable);
        None
    }

    /// Whether a process with these arguments may be this agent.
    fn may_be_it(&self, command: &[String]) -> bool {
        let _ = command;
        false
    }
}

/// What an agent records about one of its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    pub pid: i32,
    pub native_id: Option<String>,
    pub cwd: Option<String>,
    /// Start of the process in clock ticks.
    pub start: Option<u64>,
    /// Busy or idle, if the record has it.
    pub status: Option<String>,
}
