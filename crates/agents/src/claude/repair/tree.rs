//! The tree of messages as claude reads it: the branch that it continues, what belongs to that branch, and what does
//! not.
//!
//! Measured with claude 2.1.197. It continues at the message that the newest `last-prompt` line names, or at the last
//! message of the file if that is a descendant of the named one or there is no such line. From there it walks up
//! through `parentUuid`. Each block of an answer has its own line with the answer's message id, and the parent of each
//! result is the line of its call. So healthy trees have side arms, which claude collects by that id.

use super::scan::{Index, Role, Scan};
use ostler_transcript::fields::Name;
use std::collections::{HashMap, HashSet};

pub const NONE: Index = Index::MAX;

/// The parents of all messages.
#[derive(Debug)]
pub struct Tree<'a> {
    pub scan: &'a Scan,
    /// The parent of each message.
    pub up: Vec<Index>,
    /// Copies that do not count.
    pub dropped: Vec<bool>,
    /// Results that have become text.
    pub words: HashSet<Index>,
    /// Where the conversation is to end.
    pub end: Option<Index>,
    /// Messages sorted by id; of two with one id the later is last.
    order: Vec<Index>,
}

/// The conversation that is continued.
#[derive(Debug)]
pub struct Chain {
    /// From its end to its beginning.
    pub messages: Vec<Index>,
    pub on: Vec<bool>,
    /// The answers on the chain, sorted.
    answers: Vec<u32>,
}

/// Messages that descend from the conversation but are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its first message below the chain.
    pub head: Index,
    /// Its first and its last message that are not shown with the chain.
    pub first: Index,
    pub end: Index,
    pub messages: usize,
    pub prompts: usize,
}

impl<'a> Tree<'a> {
    pub fn new(scan: &'a Scan) -> Tree<'a> {
        let mut order: Vec<Index> = (0..scan.len()).collect();
        order.sort_unstable_by_key(|&index| (scan.ids[index as usize], index));
        let dropped = vec![false; scan.ids.len()];
        let mut tree = Tree { scan, up: Vec::new(), dropped, words: HashSet::new(), end: None, order };
        tree.up = scan.parents.iter().map(|&parent| tree.find(parent).unwrap_or(NONE)).collect();
        tree
    }

    /// Breaks cycles, which only damage causes: the message that closes a cycle counts as one that has lost its parent.
    pub fn open_circles(&mut self) {
        const NEVER: Index = Index::MAX;
        // For each message, the start of the walk that reached it first.
        let mut reached = vec![NEVER; self.up.len()];
        for index in 0..self.scan.len() {
            let mut at = index;
            while reached[at as usize] == NEVER {
                reached[at as usize] = index;
                let above = self.up[at as usize];
                if above == NONE {
                    break;
                }
                if reached[above as usize] == index {
                    self.up[at as usize] = NONE;
                    break;
                }
                at = above;
            }
        }
    }

    #[must_use]
    pub fn role(&self, of: Index) -> Role {
        if self.words.contains(&of) { Role::Prompt } else { self.scan.role(of) }
    }

    /// The message with this id.
    #[must_use]
    pub fn find(&self, name: Name) -> Option<Index> {
        if !name.is_some() {
            return None;
        }
        let id = |index: &Index| self.scan.ids[*index as usize];
        let end = self.order.partition_point(|index| id(index) <= name);
        let same = self.order[..end].iter().rev().take_while(|index| id(index) == name).copied();
        let mut counting = same.filter(|&index| !self.dropped[index as usize]);
        let last = counting.next()?;
        let known =
            if self.is_unknown_kind(last) { counting.find(|&index| !self.is_unknown_kind(index)) } else { None };
        known.or(Some(last))
    }

    /// Whether the message is of a kind that claude does not know.
    #[must_use]
    pub fn is_unknown_kind(&self, index: Index) -> bool {
        self.scan.strange.binary_search(&index).is_ok()
    }

    /// Pairs of messages with one id, the earlier first.
    pub fn same_ids(&self) -> impl Iterator<Item = (Index, Index)> {
        self.order
            .windows(2)
            .map(|two| (two[0], two[1]))
            .filter(|&(one, other)| self.scan.ids[one as usize] == self.scan.ids[other as usize])
    }

    /// Drops messages and puts another in the place of each. Returns the messages that were below them.
    pub fn replace(&mut self, instead: &HashMap<Index, Index>) -> Vec<Index> {
        for &gone in instead.keys() {
            self.dropped[gone as usize] = true;
        }
        let mut moved = Vec::new();
        for index in 0..self.scan.len() {
            let parent = &mut self.up[index as usize];
            // The replacement may itself be replaced.
            for _ in 0..instead.len() {
                let Some(&other) = instead.get(parent) else { break };
                *parent = other;
                moved.push(index);
            }
        }
        moved
    }

    /// Whether a message is after the newest compaction: the model does not see what is before it.
    #[must_use]
    pub fn counts(&self, index: Index) -> bool {
        !self.dropped[index as usize] && self.scan.boundary.is_none_or(|boundary| index > boundary)
    }

    /// A message and its ancestors; ends also in a damaged file.
    pub fn path(&self, from: Index) -> impl Iterator<Item = Index> {
        let mut next = from;
        let mut left = self.up.len();
        std::iter::from_fn(move || {
            if next == NONE || left == 0 {
                return None;
            }
            left -= 1;
            let this = next;
            next = self.up[this as usize];
            Some(this)
        })
    }

    #[must_use]
    pub fn descends(&self, from: Index, ancestor: Index) -> bool {
        self.path(from).any(|index| index == ancestor)
    }

    /// The end of the conversation, without attachments after it.
    #[must_use]
    pub fn leaf(&self) -> Option<Index> {
        if let Some(end) = self.end {
            return Some(end);
        }
        let counts = |&index: &Index| !self.dropped[index as usize] && !self.is_unknown_kind(index);
        let last = (0..self.scan.len()).rev().find(counts)?;
        let named = self.scan.leaf.and_then(|leaf| Some((self.find(leaf.message)?, leaf.chosen)));
        let leaf = match named {
            Some((named, true)) => named,
            Some((named, false)) if !self.descends(last, named) => named,
            Some(_) | None => last,
        };
        self.path(leaf).find(|&index| self.role(index) != Role::Other)
    }

    #[must_use]
    pub fn chain(&self) -> Chain {
        let mut on = vec![false; self.up.len()];
        let mut messages = Vec::new();
        for index in self.leaf().into_iter().flat_map(|leaf| self.path(leaf)) {
            if std::mem::replace(&mut on[index as usize], true) {
                break;
            }
            messages.push(index);
        }
        let mut answers: Vec<u32> =
            messages.iter().map(|&index| self.scan.answers[index as usize]).filter(|&answer| answer != 0).collect();
        answers.sort_unstable();
        answers.dedup();
        Chain { messages, on, answers }
    }

    /// Whether claude shows a message: it is on the chain, or a block of an answer on the chain, or the result of such
    /// a block.
    #[must_use]
    pub fn shown(&self, chain: &Chain, index: Index) -> bool {
        let block = |index: Index| index != NONE && chain.has_answer(self.scan.answers[index as usize]);
        chain.on[index as usize] || block(index) || self.role(index) == Role::Result && block(self.up[index as usize])
    }

    /// For each message that is not on the chain, its topmost ancestor below the chain; `NONE` for messages on the
    /// chain, and for those that do not descend from it.
    #[must_use]
    pub fn heads(&self, chain: &Chain) -> Vec<Index> {
        const UNKNOWN: Index = Index::MAX - 1;
        let mut heads = vec![UNKNOWN; self.up.len()];
        let mut way = Vec::new();
        for index in 0..self.scan.len() {
            way.clear();
            let mut at = index;
            let head = loop {
                if at == NONE || chain.on[at as usize] {
                    break if at == NONE { NONE } else { way.last().copied().unwrap_or(NONE) };
                }
                if heads[at as usize] != UNKNOWN {
                    break heads[at as usize];
                }
                // Marked during the walk, so that a cycle ends it.
                heads[at as usize] = NONE;
                way.push(at);
                at = self.up[at as usize];
            };
            for &passed in &way {
                heads[passed as usize] = head;
            }
            if chain.on[index as usize] {
                heads[index as usize] = NONE;
            }
        }
        heads
    }

    /// Branches that descend from the chain and are not shown with it, in file order of their first messages.
    #[must_use]
    pub fn branches(&self, chain: &Chain, heads: &[Index]) -> Vec<Branch> {
        let mut found: HashMap<Index, Branch> = HashMap::new();
        for index in 0..self.scan.len() {
            let (head, role) = (heads[index as usize], self.role(index));
            if head == NONE || role == Role::Other || !self.counts(index) || self.shown(chain, index) {
                continue;
            }
            let branch =
                found.entry(head).or_insert(Branch { head, first: index, end: index, messages: 0, prompts: 0 });
            branch.end = index;
            branch.messages += 1;
            branch.prompts += usize::from(role == Role::Prompt);
        }
        let mut branches: Vec<Branch> = found.into_values().collect();
        branches.sort_unstable_by_key(|branch| branch.first);
        branches
    }

    /// What follows on the chain after the point where a branch begins, from the end of the chain backwards. Messages
    /// of the same answer as the branch's head are left out: the branch is a side arm of that answer.
    #[must_use]
    pub fn beside(&self, chain: &Chain, branch: &Branch) -> Vec<Index> {
        let answer = |index: Index| if index == NONE { 0 } else { self.scan.answers[index as usize] };
        let answer_of = |index: Index| match self.role(index) {
            Role::Result => answer(self.up[index as usize]),
            Role::Prompt | Role::Assistant | Role::Other => answer(index),
        };
        let (fork, arm) = (self.up[branch.head as usize], answer_of(branch.head));
        let after = chain.messages.iter().copied().take_while(|&message| message != fork);
        after.filter(|&message| arm == 0 || answer_of(message) != arm).collect()
    }
}

impl Chain {
    fn has_answer(&self, answer: u32) -> bool {
        answer != 0 && self.answers.binary_search(&answer).is_ok()
    }
}

/// The topmost ancestor of each message, also after messages have been moved below others.
#[derive(Debug)]
pub struct Roots {
    /// Shortcuts to ancestors.
    up: Vec<Index>,
}

impl Roots {
    #[must_use]
    pub fn new(up: &[Index]) -> Roots {
        Roots { up: up.to_vec() }
    }

    pub fn of(&mut self, message: Index) -> Index {
        let mut at = message;
        // A cycle in a damaged file ends here as well.
        for _ in 0..self.up.len() {
            let above = self.up[at as usize];
            if above == NONE {
                break;
            }
            let further = self.up[above as usize];
            if further != NONE {
                self.up[at as usize] = further;
            }
            at = above;
        }
        at
    }

    pub fn hang(&mut self, message: Index, on: Index) {
        self.up[message as usize] = on;
    }
}
