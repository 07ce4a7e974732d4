//! The git worktree of one session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A git worktree that was made for a session.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Worktree {
    pub name: String,
    pub path: String,
    /// The branch that was made for it.
    pub branch: String,
    /// The commit that it began with.
    pub base: String,
    /// The branch whose newest commit that was; `None` when it was not a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The main working tree of the repository.
    pub repository: String,
}
