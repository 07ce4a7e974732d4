//! Which branches were made by two processes that wrote at once.
//!
//! A branch by itself proves nothing: a person who takes a prompt back and types another one makes one, and so does claude when
//! it resumes. But one process writes one turn at a time. When it begins the later of two branches, the earlier one is
//! over: nothing is added to it in the middle of a turn. So two branches are the work of two processes
//!
//! * when, after the first message of the later one (by its time, or by its place in the file), the next thing on the
//!   earlier one is not a new prompt but an answer or a tool's result: that turn was running all the while;
//! * or when the later one begins with an answer to what was said before both, and the earlier one has had a prompt by
//!   then: the process that was to answer took its time, and another one did not wait for it.

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
        overlap(tree, &earlier.filter(|&index| !tree.shown(chain, index)).collect::<Vec<_>>(), other)
    } else {
        overlap(tree, &beside, branch.first)
    }
}

/// Whether a turn of one branch was running when the other began. `later` is the first message of the later one.
fn overlap(tree: &Tree<'_>, earlier: &[Index], later: Index) -> bool {
    let said = |&&index: &&Index| !tree.dropped[index as usize] && tree.role(index) != Role::Other;
    let time = |index: Index| tree.scan.times[index as usize];
    // What the earlier one began with is not a sign of its going on, also when it was said later than it is written down.
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

/// Joins a branch in: it stays where it hangs, and what followed there now follows its end. So the conversation ends where
/// it would have ended, and has the branch before that. Returns the message whose parent changed.
pub fn join(tree: &mut Tree<'_>, chain: &Chain, branch: &Branch) -> Option<Index> {
    let next = tree.beside(chain, branch).last().copied()?;
    tree.up[next as usize] = branch.end;
    Some(next)
}
