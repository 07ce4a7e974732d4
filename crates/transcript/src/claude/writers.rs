//! Which branches were made by two processes that wrote at once.
//!
//! A branch by itself proves nothing: whoever takes a prompt back and says something else makes one, and so does claude when
//! it resumes. But one process writes one turn at a time. When it begins the later of two branches, the earlier one is
//! over: nothing is added to it in the middle of a turn. So two branches are the work of two processes when, after the
//! first message of the later one (by its time, or by its place in the file), the next thing on the earlier one is not a
//! new prompt but an answer or a tool's result: that turn was running all the while.

use super::scan::{Index, Role};
use super::tree::{Branch, Chain, Tree};

/// Whether this branch and the part of the conversation that left from the same message were written at once.
#[must_use]
pub fn wrote_at_once(tree: &Tree<'_>, chain: &Chain, heads: &[Index], branch: &Branch) -> bool {
    let beside = tree.beside(chain, branch);
    let Some(&other) = beside.last() else {
        return false;
    };
    if branch.first < other {
        let earlier = (branch.first..=branch.end).filter(|&index| heads[index as usize] == branch.head);
        went_on(tree, earlier.filter(|&index| !tree.shown(chain, index)), other)
    } else {
        went_on(tree, beside.into_iter(), branch.first)
    }
}

/// Whether the turn of the earlier branch went on after the later one had begun.
fn went_on(tree: &Tree<'_>, earlier: impl Iterator<Item = Index>, later: Index) -> bool {
    let time = |index: Index| tree.scan.times[index as usize];
    let next = earlier
        .filter(|&index| !tree.dropped[index as usize] && tree.role(index) != Role::Other)
        .filter(|&index| index > later || time(index) > time(later))
        .min_by_key(|&index| (time(index), index));
    next.is_some_and(|next| match tree.role(next) {
        Role::Assistant | Role::Result => true,
        Role::Prompt | Role::Other => false,
    })
}

/// Joins a branch in: it stays where it hangs, and what followed there now follows its end. So the conversation ends where
/// it would have ended, and has the branch before that. Returns the message whose parent changed.
pub fn join(tree: &mut Tree<'_>, chain: &Chain, branch: &Branch) -> Option<Index> {
    let next = tree.beside(chain, branch).last().copied()?;
    tree.up[next as usize] = branch.end;
    Some(next)
}
