//! Gemini opens a conversation for each write and closes it again, so a process is found only by chance.

use super::Gemini;
use crate::Variable;
use crate::ownership::Ownership;
use crate::transcript::Transcript;

impl Ownership for Gemini {
    fn open_files(&self, variable: Variable<'_>) -> Option<String> {
        self.conversations_folder(variable)
    }

    fn reports_processes(&self) -> bool {
        false
    }
}
