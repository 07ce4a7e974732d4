//! Transcripts of claude.
//!
//! The file is read once, for its lines and a few numbers of each message ([`scan`]). The rest is decided on the tree
//! of those numbers ([`tree`], [`writers`]), and only the lines that change are read again ([`rewrite`]).
//!
//! A healthy transcript is not changed: side arms of parallel tools, side chains of subagents, compactions, prompts
//! that were taken back and turns that were interrupted are what claude writes when nothing is wrong.

mod rejoin;
mod rewrite;
mod scan;
mod tree;
mod writers;

use super::Claude;
use crate::conversation_arguments;
use crate::repair::{Repair, Repairs, Source};
use ostler_transcript::edits::Edits;
use ostler_transcript::fields::Name;
use ostler_transcript::finding::{Finding, count_copy};
use ostler_transcript::place::Placed;
use ostler_transcript::record_lines;
use ostler_transcript::{Branches, Examination, Moved, Rejoined, new_uuid};
use rewrite::Rewrite;
use scan::{Index, Role, Scan};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use tree::{Branch, Chain, NONE, Roots, Tree};

/// How many messages back a replacement for a lost parent is looked for.
const NEAR: Index = 64;

impl Repair for Claude {
    fn repairs(&self) -> Option<&'static dyn Repairs> {
        Some(&Claude)
    }
}

impl Repairs for Claude {
    fn examine(&self, source: &mut dyn Source, branches: Branches) -> io::Result<Examination> {
        examine(source, branches)
    }

    fn is_record(&self, record: &Value) -> bool {
        let has = |name: &str| record.get(name).is_some();
        // Records of another agent look alike, except for these fields.
        let other = has("systemPayload") || record["message"].get("parts").is_some();
        has("type") && (has("sessionId") || has("parentUuid") || has("leafUuid")) && !other
    }

    fn is_name(&self, file: &Path, empty: bool) -> bool {
        let folder = || file.parent().and_then(Path::parent).and_then(Path::file_name);
        let is_id = file.file_stem().and_then(|stem| stem.to_str()).is_some_and(conversation_arguments::is_uuid);
        is_id
            && file.extension().is_some_and(|end| end == "jsonl")
            && (empty || folder().is_some_and(|name| name == "projects"))
    }

    fn rejoin(&self, transcript: &mut dyn Source, copy: &mut dyn Read) -> io::Result<Option<Rejoined>> {
        rejoin::rejoin(transcript, copy)
    }
}

fn examine<R: Read + Seek>(mut source: R, branches: Branches) -> io::Result<Examination> {
    source.seek(SeekFrom::Start(0))?;
    let mut scan = Scan::default();
    let surface = record_lines::read(&mut source, &mut scan)?;
    let mut examination = Examination {
        findings: surface.findings,
        edits: Edits::default(),
        moved: Vec::new(),
        messages: scan.ids.len(),
    };
    // If a line was not read, it is not known what is missing.
    if !surface.unseen {
        Repairing::new(&scan, &mut source, &mut examination).repair(branches)?;
    }
    examination.edits.then(surface.edits);
    Ok(examination)
}

struct Repairing<'a, R> {
    tree: Tree<'a>,
    source: &'a mut R,
    out: &'a mut Examination,
    rewrite: Rewrite,
    /// Calls without a result, by message.
    open: BTreeMap<Index, usize>,
    /// Results without a call, by message.
    orphans: BTreeMap<Index, usize>,
    /// Second results of one call that differ from the first.
    doubled: HashSet<Index>,
}

impl<'a, R: Read + Seek> Repairing<'a, R> {
    fn new(scan: &'a Scan, source: &'a mut R, out: &'a mut Examination) -> Repairing<'a, R> {
        let tree = Tree::new(scan);
        Repairing {
            tree,
            source,
            out,
            rewrite: Rewrite::default(),
            open: BTreeMap::new(),
            orphans: BTreeMap::new(),
            doubled: HashSet::new(),
        }
    }

    fn repair(mut self, branches: Branches) -> io::Result<()> {
        self.drop_copies()?;
        self.drop_doubles()?;
        self.tree.open_circles();
        let answered = self.match_calls();
        self.reattach_orphans(&answered);
        let words = self.keep_orphans()?;
        let mut at_once = HashSet::new();
        self.join(branches, &mut at_once)?;
        // A message that is put on the chain may make a branch below it visible.
        while self.put_first_on_chain(&words) {
            self.join(branches, &mut at_once)?;
        }
        self.report_abandoned_branches();
        self.answer_open_calls()?;
        self.rewrite.write(&self.tree, self.source, &mut self.out.edits)
    }

    /// Removes records that occur twice, identical to the byte.
    fn drop_copies(&mut self) -> io::Result<()> {
        let pairs: Vec<(Index, Index)> = self.tree.same_ids().collect();
        let mut instead: HashMap<Index, Index> = HashMap::new();
        for (earlier, later) in pairs {
            let first = instead.get(&earlier).copied().unwrap_or(earlier);
            let copy = Placed::read(&mut *self.source, self.tree.scan.start(later))?;
            if copy.text == Placed::read(&mut *self.source, self.tree.scan.start(first))?.text {
                instead.insert(later, first);
                self.out.edits.cut(copy.start, copy.line_end());
                count_copy(&mut self.out.findings);
            } else {
                // As claude does: of two with one id the later one of a known kind replaces the other.
                let unknown = self.tree.is_unknown_kind(later) && !self.tree.is_unknown_kind(first);
                let (gone, stays) = if unknown { (later, first) } else { (first, later) };
                instead.insert(gone, stays);
                self.out.findings.push(Finding::SameId);
            }
        }
        self.tree.replace(&instead);
        Ok(())
    }

    /// Removes messages with the same content for one tool call under another id. A second result with other content
    /// becomes text: the model accepts only one result.
    fn drop_doubles(&mut self) -> io::Result<()> {
        for list in [&self.tree.scan.calls, &self.tree.scan.results] {
            let mut list: Vec<_> = list.iter().filter(|(_, index)| self.tree.counts(*index)).copied().collect();
            list.sort_unstable();
            let is_double = |two: &&[(Name, Index)]| two[0].0 == two[1].0 && two[0].1 != two[1].1;
            let doubles = list.windows(2).filter(is_double).filter(|two| two[0].0 != Name::unset());
            let mut instead: HashMap<Index, Index> = HashMap::new();
            for two in doubles {
                let (first, second) = (two[0].1, two[1].1);
                let kept = Placed::read(&mut *self.source, self.tree.scan.start(first))?;
                let double = Placed::read(&mut *self.source, self.tree.scan.start(second))?;
                if rewrite::say_the_same(&kept, &double)? {
                    if instead.insert(second, first).is_none() {
                        self.out.edits.cut(double.start, double.line_end());
                        count_copy(&mut self.out.findings);
                    }
                } else if self.tree.role(second) == Role::Result {
                    self.doubled.insert(second);
                }
            }
            for child in self.tree.replace(&instead) {
                self.rewrite.parent(child);
            }
        }
        Ok(())
    }

    /// Finds calls without results and results without calls; returns which message has the call of each result.
    fn match_calls(&mut self) -> BTreeMap<Index, Index> {
        let scan = self.tree.scan;
        let mut calls: Vec<_> = scan.calls.iter().filter(|(_, index)| self.tree.counts(*index)).copied().collect();
        let mut results: Vec<_> = scan.results.iter().filter(|(_, index)| self.tree.counts(*index)).copied().collect();
        calls.sort_unstable();
        results.sort_unstable();
        for &(name, call) in &calls {
            if results.binary_search_by_key(&name, |&(name, _)| name).is_err() {
                *self.open.entry(call).or_default() += 1;
            }
        }
        let mut displaced = BTreeMap::new();
        for &(name, result) in &results {
            match calls.binary_search_by_key(&name, |&(name, _)| name) {
                Ok(_) if self.doubled.contains(&result) => *self.orphans.entry(result).or_default() += 1,
                Ok(found) if self.tree.up[result as usize] == NONE => {
                    displaced.insert(result, calls[found].1);
                }
                Ok(_) => {}
                Err(_) => *self.orphans.entry(result).or_default() += 1,
            }
        }
        displaced
    }

    /// Gives messages whose parent is lost a new parent: the message of their call, or the message before them.
    fn reattach_orphans(&mut self, calls: &BTreeMap<Index, Index>) {
        let mut roots = Roots::new(&self.tree.up);
        for index in 0..self.tree.scan.len() {
            let lost = self.tree.up[index as usize] == NONE && self.tree.scan.parents[index as usize].is_some();
            if !lost || !self.tree.counts(index) {
                continue;
            }
            let near = (index.saturating_sub(NEAR)..index).rev();
            let fits = |&other: &Index| self.tree.counts(other) && roots.of(other) != index;
            if let Some(parent) = calls.get(&index).copied().into_iter().chain(near).find(fits) {
                self.tree.up[index as usize] = parent;
                roots.hang(index, parent);
                self.rewrite.parent(index);
                self.out.findings.push(Finding::LostParent);
            }
        }
    }

    /// Joins what two processes wrote at the same time, or moves it to another file. One branch at a time, since each
    /// changes the parents of the others; `at_once` remembers which branches were found to be written at the same time.
    fn join(&mut self, how: Branches, at_once: &mut HashSet<Index>) -> io::Result<()> {
        loop {
            let chain = self.tree.chain();
            let heads = self.tree.heads(&chain);
            let found = self.tree.branches(&chain, &heads);
            for branch in &found {
                if writers::wrote_at_once(&self.tree, &chain, &heads, branch) {
                    at_once.insert(branch.first);
                }
            }
            // The last branch first, so that they end up in the order of the file.
            let next = found.iter().rev().find_map(|branch| {
                let dropped_call = self.is_dropped_call(branch, &chain, &heads);
                (dropped_call || at_once.contains(&branch.first)).then_some((branch, dropped_call))
            });
            let Some((branch, dropped_call)) = next else {
                return Ok(());
            };
            if how == Branches::Split && !dropped_call {
                self.move_out(branch, &chain, &heads)?;
                continue;
            }
            let Some(changed) = writers::join(&mut self.tree, &chain, branch) else {
                return Ok(());
            };
            self.rewrite.parent(changed);
            if !dropped_call {
                self.out.findings.push(Finding::Joined { messages: branch.messages });
            }
        }
    }

    /// Whether an earlier resume has silently left out a call that was cut off.
    fn is_dropped_call(&self, branch: &Branch, chain: &Chain, heads: &[Index]) -> bool {
        let is_in = |&call: &Index| heads[call as usize] == branch.head && !self.tree.shown(chain, call);
        branch.prompts == 0 && self.open.keys().any(is_in) && !self.tree.beside(chain, branch).is_empty()
    }

    /// Moves everything below a branch from this file to a new one.
    fn move_out(&mut self, branch: &Branch, chain: &Chain, heads: &[Index]) -> io::Result<()> {
        let after: HashSet<Index> = self.tree.beside(chain, branch).into_iter().collect();
        let moved: Vec<bool> = (0..self.tree.scan.len())
            .map(|index| heads[index as usize] == branch.head && !self.tree.shown(chain, index))
            .collect();
        let mut without = Vec::new();
        for index in 0..self.tree.scan.len() {
            let head = heads[index as usize];
            let hangs_on = if head == NONE { index } else { self.tree.up[head as usize] };
            let start = self.tree.scan.start(index);
            if moved[index as usize] {
                let placed = Placed::read(&mut *self.source, start)?;
                self.out.edits.cut(placed.start, placed.line_end());
                self.tree.dropped[index as usize] = true;
                self.open.remove(&index);
                self.orphans.remove(&index);
                self.rewrite.forget(index);
            } else if after.contains(&hangs_on) || self.tree.dropped[index as usize] {
                without.push(start);
            }
        }
        let head = Placed::read(&mut *self.source, self.tree.scan.start(branch.head))?;
        let moved = as_its_own(&head, without)?;
        self.out.findings.push(Finding::Split { messages: branch.messages, into: moved.id.clone() });
        self.out.moved.push(moved);
        Ok(())
    }

    /// Reports the branches that the conversation no longer follows.
    fn report_abandoned_branches(&mut self) {
        let chain = self.tree.chain();
        let found = self.tree.branches(&chain, &self.tree.heads(&chain));
        let left = found.iter().filter(|branch| branch.prompts > 0 && branch.first == branch.head);
        self.out.findings.extend(left.map(|branch| Finding::LeftAside { messages: branch.messages }));
    }

    /// A result whose call is lost is kept as text. Returns the messages that contain nothing else.
    fn keep_orphans(&mut self) -> io::Result<Vec<Index>> {
        let calls = self.names(&self.tree.scan.calls);
        for (&orphan, &lost) in &self.orphans {
            let placed = Placed::read(&mut *self.source, self.tree.scan.start(orphan))?;
            let doubled = self.doubled.contains(&orphan);
            rewrite::results_as_text(&placed, |name| !doubled && calls.contains(&name), &mut self.out.edits)?;
            self.out.findings.push(Finding::ResultWithoutCall);
            // A message that also has the result of another call stays with that call.
            let has = self.tree.scan.results.iter().filter(|&&(_, index)| index == orphan).count();
            if has == lost {
                self.tree.words.insert(orphan);
            }
        }
        let mut words: Vec<Index> = self.tree.words.iter().copied().collect();
        words.sort_unstable();
        Ok(words)
    }

    /// Of these messages, moves the first one that the model would not see onto the chain; `false` when the model sees
    /// all of them.
    fn put_first_on_chain(&mut self, words: &[Index]) -> bool {
        let chain = self.tree.chain();
        let unseen =
            words.iter().copied().find(|&index| !chain.on[index as usize] && !self.tree.dropped[index as usize]);
        unseen.is_some_and(|unseen| self.put_on_chain(&chain, unseen))
    }

    /// Puts a message between two of the chain, before the first that follows it in the file and begins something new.
    fn put_on_chain(&mut self, chain: &Chain, message: Index) -> bool {
        let scan = self.tree.scan;
        let begins = |index: Index| {
            let above = self.tree.up[index as usize];
            let answer = scan.answers[index as usize];
            above != NONE
                && match self.tree.role(index) {
                    Role::Prompt => true,
                    Role::Assistant => answer == 0 || answer != scan.answers[above as usize],
                    Role::Result | Role::Other => false,
                }
        };
        let next = chain.messages.iter().rev().copied().find(|&index| index > message && begins(index));
        match (next, chain.messages.first()) {
            (Some(next), _) => {
                self.tree.up[message as usize] = self.tree.up[next as usize];
                self.tree.up[next as usize] = message;
                self.rewrite.parent(next);
            }
            (None, Some(&leaf)) => {
                self.tree.up[message as usize] = leaf;
                self.tree.end = Some(message);
                self.rewrite.end_at(message);
            }
            (None, None) => return false,
        }
        self.rewrite.parent(message);
        true
    }

    /// Adds results that tell the model about calls that were cut off.
    fn answer_open_calls(&mut self) -> io::Result<()> {
        let chain = self.tree.chain();
        let results = self.names(&self.tree.scan.results);
        let open: Vec<Index> = self.open.keys().copied().filter(|&call| self.tree.shown(&chain, call)).collect();
        let mut notes: HashMap<Index, String> = HashMap::new();
        for call in open {
            let placed = Placed::read(&mut *self.source, self.tree.scan.start(call))?;
            let note = rewrite::note_for(&placed, &results)?;
            let last = self.tree.scan.start(self.last_of_answer(call));
            let behind = Placed::read(&mut *self.source, last)?;
            self.out.findings.extend(note.tools.iter().map(|tool| Finding::CallWithoutResult { tool: tool.clone() }));
            self.out.edits.insert(behind.end(), [b"\n", note.line.as_slice()].concat());
            notes.insert(call, note.uuid);
        }
        // What followed a call now follows the result of that call.
        for index in 0..self.tree.scan.len() {
            let call = self.tree.up[index as usize];
            let Some(note) = notes.get(&call).filter(|_| self.tree.counts(index)) else {
                continue;
            };
            let (answer, other) = (self.tree.scan.answers[call as usize], self.tree.scan.answers[index as usize]);
            match self.tree.role(index) {
                Role::Assistant if other != 0 && other == answer => {}
                Role::Prompt | Role::Other | Role::Assistant => self.rewrite.parent_is(index, note.clone()),
                Role::Result => {}
            }
        }
        Ok(())
    }

    /// The calls or results that count.
    fn names(&self, list: &[(Name, Index)]) -> HashSet<Name> {
        list.iter().filter(|(_, index)| self.tree.counts(*index)).map(|&(name, _)| name).collect()
    }

    /// The last line, in an unbroken sequence, of the answer that a call belongs to and of its results.
    fn last_of_answer(&self, call: Index) -> Index {
        let scan = self.tree.scan;
        let answer = scan.answers[call as usize];
        let same = |index: Index| index == call || answer != 0 && scan.answers[index as usize] == answer;
        let mut last = call;
        for index in call + 1..scan.len() {
            let up = self.tree.up[index as usize];
            let belongs = same(index) || self.tree.role(index) == Role::Result && up != NONE && same(up);
            if !belongs || self.tree.dropped[index as usize] {
                break;
            }
            last = index;
        }
        last
    }
}

/// The conversation that begins with this message, as a conversation of its own.
fn as_its_own(head: &Placed, without: Vec<u64>) -> io::Result<Moved> {
    #[derive(serde::Deserialize)]
    struct Session {
        #[serde(rename = "sessionId", default)]
        id: String,
    }
    let name = |id: &str| format!(r#""sessionId":{}"#, serde_json::json!(id));
    let old: Session = head.fields()?;
    let id = new_uuid(&[b"split", &head.text]);
    Ok(Moved {
        renamed: (name(&old.id), name(&id)),
        id,
        // Only messages; notes about where to continue concern the other branch.
        taken: r#"{"parentUuid":"#,
        without: without.into_iter().collect(),
    })
}
