//! Codex's own lock: the process that writes a thread holds flock on `thread-writer-locks/<id>.lock` below its home.
//! The file stays after the process has exited.

use super::{Codex, server};
use crate::Variable;
use crate::ownership::Ownership;
use crate::transcript::Transcript;
use serde_json::Value;

impl Ownership for Codex {
    fn locks(&self, variable: Variable<'_>) -> Option<String> {
        self.conversations_folder(variable).map(|home| format!("{home}/thread-writer-locks"))
    }

    fn is_begun_by_a_person(&self, first_line: &[u8]) -> bool {
        let first: Value = serde_json::from_slice(first_line).unwrap_or_default();
        first["payload"]["thread_source"] == "user"
    }

    fn open_files(&self, variable: Variable<'_>) -> Option<String> {
        self.conversations_folder(variable)
    }

    fn works_behind(&self, argv: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let home = self.conversations_folder(variable)?;
        server::may_be_used(argv).then(|| server::socket(&home))
    }

    fn shared_by_many(&self, argv: &[String]) -> Option<&'static str> {
        server::is_one(argv).then_some(server::HOW_TO_END)
    }
}
