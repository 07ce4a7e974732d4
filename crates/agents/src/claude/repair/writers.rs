//! Which branches were made by two processes that wrote at the same time.
//!
//! A branch alone proves nothing: a person who takes a prompt back and types another one makes a branch, and so does
//! claude when it resumes. But one process writes one turn at a time: when it begins the later of two branches, the
//! earlier one is finished, and nothing is added to it in the middle of a turn. So two branches were written by two
//! processes in these cases:
//!
//! * After the first message of the later branch (by its time, or by its place in the file) the next message on the
//!   earlier branch is not a new prompt but an answer or a tool's result: that turn was running all the time.
//! * The later branch begins with an answer to what was said before both, and the earlier branch already had a prompt:
//!   one process was still waiting for its answer, and another did not wait for it.

use super::scan::{Index, Role};
use super::tree::{Branch, Chain, Tree};

/// Whether this branch and the part of the conversation after the same message were written at the same time.
#[must_use]
pub fn wrote_at_once(tree: &Tree<'_>, chain: &Chain, heads: &[Index], branch: &Branch) -> bool {
    let beside = tree.beside(chain, branch);
    let Some(&other) = beside.last() else {
        return false;
    };
    if branch.first < other {
        let earlier = (branch.first..=branch.end).filter(|&index| heads[index as usize] == branch.head);
        overlap(tree, &earlier.filter(|&index| !tree.shown(chain, index)).collect::<Vec<_>>(), other)
    } else {
        overlap(tree, &beside, branch.first)
    }
}

/// Whether a turn of one branch was running when the other began. `later` is the first message of the later branch.
fn overlap(tree: &Tree<'_>, earlier: &[Index], later: Index) -> bool {
    let said = |&&index: &&Index| !tree.dropped[index as usize] && tree.role(index) != Role::Other;
    let time = |index: Index| tree.scan.times[index as usize];
    // The first message of the earlier branch does not show that it continued, also if it was said later than its place
    // in the file suggests.
    let began = earlier.iter().filter(said).min().copied();
    let next = earlier
        .iter()
        .filter(said)
        .filter(|&&index| Some(index) != began && (index > later || time(index) > time(later)))
        .min_by_key(|&&index| (time(index), index));
    let had_prompt = || earlier.iter().filter(said).any(|&index| index < later && tree.role(index) == Role::Prompt);
    next.is_some_and(|&next| goes_on(tree.role(next))) || (goes_on(tree.role(later)) && had_prompt())
}

/// Whether this belongs to a turn that began before it.
fn goes_on(role: Role) -> bool {
    match role {
        Role::Assistant | Role::Result => true,
        Role::Prompt | Role::Other => false,
    }
}

/// Joins a branch: the branch keeps its parent, and what followed that parent on the chain now follows the end of the
/// branch. So the conversation has the same end as before, with the branch before it. Returns the message whose parent
/// changed.
pub fn join(tree: &mut Tree<'_>, chain: &Chain, branch: &Branch) -> Option<Index> {
    let next = tree.beside(chain, branch).last().copied()?;
    tree.up[next as usize] = branch.end;
    Some(next)
}
