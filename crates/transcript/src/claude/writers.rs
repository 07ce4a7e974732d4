//! Which branches were made by two processes that wrote at once.
//!
//! A branch by itself proves nothing: whoever takes a prompt back and says something else makes one, and so does claude when
//! it resumes. But one process writes one turn at a time. When it begins the later of two branches, the earlier one is
//! over: nothing is added to it in the middle of a turn. So two branches are the work of two processes when, after the
//! first message of the later one (by its time, or by its place in the file), the next thing on the earlier one is not a
//! new prompt but an answer or a tool's result: that turn was running all the while.

use super::scan::{Index, Role};
use super::tree::{Branch, Chain, Tree};
use std::collections::HashMap;

/// Whether this branch and the part of the conversation that left from the same message were written at once.
#[must_use]
pub fn wrote_at_once(tree: &Tree<'_>, chain: &Chain, heads: &[Index], branch: &Branch) -> bool {
    let fork = tree.up[branch.head as usize];
    let Some(at) = chain.messages.iter().position(|&message| message == fork) else {
        return false;
    };
    // From the end of the conversation down to the message after the fork.
    let Some(&other) = at.checked_sub(1).and_then(|next| chain.messages.get(next)) else {
        return false;
    };
    if branch.head < other {
        let earlier = (branch.head..=branch.end).filter(|&index| heads[index as usize] == branch.head);
        went_on(tree, earlier, other)
    } else {
        went_on(tree, chain.messages[..at].iter().copied(), branch.head)
    }
}

/// Whether the turn of the earlier branch went on after the later one had begun.
fn went_on(tree: &Tree<'_>, earlier: impl Iterator<Item = Index>, later: Index) -> bool {
    let time = |index: Index| tree.scan.times[index as usize];
    let next = earlier
        .filter(|&index| !tree.dropped[index as usize] && tree.scan.role(index) != Role::Other)
        .filter(|&index| index > later || time(index) > time(later))
        .min_by_key(|&index| (time(index), index));
    next.is_some_and(|next| match tree.scan.role(next) {
        Role::Assistant | Role::Result => true,
        Role::Prompt | Role::Other => false,
    })
}

/// Joins branches in: each stays where it hangs, and what followed there now follows its end. So the conversation ends
/// where it would have ended, and has all of them before that.
pub fn join(tree: &mut Tree<'_>, chain: &Chain, branches: &[&Branch]) {
    let mut following: HashMap<Index, Index> = HashMap::new();
    // The last one first, so that they end up in the order of the file.
    for branch in branches.iter().rev() {
        let fork = tree.up[branch.head as usize];
        let on_chain = || {
            let at = chain.messages.iter().position(|&message| message == fork)?;
            chain.messages.get(at.checked_sub(1)?).copied()
        };
        if let Some(next) = following.get(&fork).copied().or_else(on_chain) {
            tree.up[next as usize] = branch.end;
            following.insert(fork, branch.head);
        }
    }
}
