//! Every opencode has its database open, so that its processes are seen and their conversations are not.

use super::Opencode;
use crate::ownership::Ownership;
use crate::{Agent, Variable};

impl Ownership for Opencode {
    fn open_files(&self, variable: Variable<'_>) -> Option<String> {
        self.conversations_folder(variable)
    }
}
