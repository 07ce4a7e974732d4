//! Every opencode has its database open, so its processes can be found, but not their conversations.

use super::{Opencode, agent_feed};
use crate::Variable;
use crate::ownership::Ownership;
use crate::transcript::Transcript;

impl Ownership for Opencode {
    fn open_files(&self, variable: Variable<'_>) -> Option<String> {
        self.conversations_folder(variable)
    }

    fn reports_conversation(&self) -> bool {
        true
    }

    fn reported_conversation(&self, line: &[u8], pid: i32) -> Option<String> {
        agent_feed::conversation(line, pid)
    }
}
