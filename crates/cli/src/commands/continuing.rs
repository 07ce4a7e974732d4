//! The words of `resume` and `fork`: `[-w [NAME]] ID [MESSAGE]`, in any order.
//!
//! The word after `-w` may be a name for the worktree, the session or the message. A worktree that is called like the
//! session, or an agent that is given the name of a worktree as its task, would be expensive mistakes, so the sessions
//! that exist decide.

use crate::args::{Message, WorktreeArgs};
use crate::context::Context;
use ostler_engine::worktrees::Asked;

/// What is asked for, where `id` and `message` are the words that clap has assigned; both are corrected.
pub fn worktree(
    context: &Context,
    args: &mut WorktreeArgs,
    id: &mut Option<String>,
    message: &mut Message,
) -> Option<Asked> {
    let mut name = args.worktree.take()?;
    let is_session = |word: &str| context.engine.select(word).is_ok();
    if let Some(word) = name.clone() {
        let has_message = message.word.is_some() || message.option.is_some();
        match id {
            None if is_session(&word) => *id = name.take(),
            Some(first) if !has_message && !is_session(first) && is_session(&word) => {
                message.word = id.replace(word);
                name = None;
            }
            Some(_) if !has_message && word.contains(char::is_whitespace) => message.word = name.take(),
            None | Some(_) => {}
        }
    }
    Some(Asked { name, base: args.base.take(), from: None })
}
