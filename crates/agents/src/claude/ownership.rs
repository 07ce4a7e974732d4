//! Claude's own list of its processes: `sessions/<pid>.json` below its config folder, one file for each process,
//! including background agents. The file of a process that is killed stays.
//!
//! Its tools write to files whose path names the conversation: `…/claude-<user>/…/<conversation>/tasks/<file>`.

use super::{Claude, config_folder};
use crate::Variable;
use crate::ownership::{Ownership, Registered};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The fields of a file that we use; everything else may change from version to version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    pid: i32,
    session_id: Option<String>,
    cwd: Option<String>,
    /// A text today; a later version may write a number.
    proc_start: Option<Value>,
    /// Only for a process in a terminal.
    status: Option<String>,
}

impl Ownership for Claude {
    fn registry(&self, variable: Variable<'_>) -> Option<String> {
        config_folder(variable).map(|folder| format!("{folder}/sessions"))
    }

    fn registered(&self, record: &[u8]) -> Option<Registered> {
        let Record { pid, session_id, cwd, proc_start, status } = serde_json::from_slice(record).ok()?;
        let start = match proc_start {
            Some(Value::String(ticks)) => ticks.parse().ok(),
            Some(Value::Number(ticks)) => ticks.as_u64(),
            Some(_) | None => None,
        };
        Some(Registered { pid, native_id: session_id, cwd, start, status })
    }

    /// The beginning of the path is where temporary files go, which a person may choose.
    fn conversation_of_tool(&self, output: &Path, user: u32) -> Option<String> {
        let own = format!("claude-{user}");
        let tasks = output.parent()?;
        let conversation = tasks.parent()?;
        let is_one = tasks.file_name()? == "tasks" && conversation.parent()?.iter().any(|part| part == own.as_str());
        is_one.then_some(conversation.file_name()?.to_str()?.to_owned())
    }

    fn tool_outputs(&self, temporary: &Path, user: u32) -> Option<PathBuf> {
        Some(temporary.join(format!("claude-{user}")))
    }

    fn may_be_it(&self, command: &[String]) -> bool {
        command.iter().any(|word| word.contains("claude"))
    }

    fn own_record(&self, pid: i32, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        config_folder(variable).map(|folder| format!("{folder}/sessions/{pid}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_its_output_names_the_conversation_of_a_tool() {
        let of = |before: &str, user: u32, after: &str| {
            Claude.conversation_of_tool(Path::new(&format!("{before}/claude-{user}{after}")), 7)
        };
        assert_eq!(of("/tmp", 7, "/-home-a/0f-1/tasks/b.output").as_deref(), Some("0f-1"));
        assert_eq!(of("/home/a/tmp", 7, "/-home-a/0f-1/tasks/b.output").as_deref(), Some("0f-1"));
        assert_eq!(of("/tmp", 8, "/-home-a/0f-1/tasks/b.output"), None, "another user's");
        assert_eq!(of("/tmp", 7, "/-home-a/0f-1/notes/b.output"), None);
        assert_eq!(of("/tmp", 7, "/tasks/b.output"), None);
        assert_eq!(of("/tmp", 7, ""), None);
    }

    #[test]
    fn a_start_is_read_as_a_text_and_as_a_number() {
        let start = |record: &str| Claude.registered(record.as_bytes()).and_then(|record| record.start);
        assert_eq!(start(r#"{"pid":1,"procStart":"70"}"#), Some(70));
        assert_eq!(start(r#"{"pid":1,"procStart":70,"new":1}"#), Some(70));
        assert_eq!(start(r#"{"pid":1}"#), None);
        assert_eq!(Claude.registered(b"\"not a record\""), None);
    }
}
