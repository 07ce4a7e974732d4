//! The prompt of an agent that reviews the work of a session.

use crate::engine::Engine;
use crate::error::Result;
use crate::handover::{Said, beginning, digest};
use ostler_core::worktree::Worktree;
use ostler_git::changes::Changes;
use ostler_store::home::Place;

/// How much of the task is in the prompt.
const TASK: usize = 16 << 10;
/// How much of the changes is in the prompt; the rest is in the files.
const DIFF: usize = 200 << 10;

const OPENING: &str = "Review the work of another agent in this folder. You can only read. Judge whether the change does what the task \
                       asks, and whether it is correct and complete.";

const FORM: &str = r#"End your answer with one JSON object of exactly this form, and write nothing after it:
{"verdict": "pass", "findings": [{"file": "path/from/the/top", "line": 1, "text": "what is wrong"}], "summary": "one sentence"}
The verdict is "pass", "fail" or "unsure". "findings" may be empty."#;

impl Engine {
    pub(super) fn review_prompt(&self, place: &Place, tree: &Worktree, opening: Option<&str>) -> Result<String> {
        let session = place.open()?.session()?;
        let asked: Vec<Said> = match session.job {
            // A job has no conversation of its own: its prompt is what its children were told.
            Some(_) => session.prompt.into_iter().map(Said::Person).collect(),
            None => self.said_in(place, None)?.into_iter().filter(|said| matches!(said, Said::Person(_))).collect(),
        };
        let task = digest(&asked, TASK);
        let changes = Changes::of(&self.git(), tree)?;
        let whole = changes.patch()?;
        let patch = beginning(&whole, DIFF);
        let cut = match patch.len() < whole.len() {
            true => format!("\nThe changes are too long and are cut here. All files:\n{}", changes.summary()?),
            false => String::new(),
        };
        let opening = opening.map_or(OPENING, str::trim);
        let patch = if patch.trim().is_empty() { "(nothing has changed)\n" } else { &patch };
        Ok(format!("{opening}\n\n<task>\n{task}\n</task>\n\n<diff>\n{patch}{cut}</diff>\n\n{FORM}"))
    }
}
