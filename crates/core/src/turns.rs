//! Which snapshots of its working tree a session has. A file of the session's folder lists them, one object per line,
//! the oldest first: snapshots that were taken, snapshots that could not be taken, and when files were put back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why something is not in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    TooLarge,
    Socket,
    Pipe,
    Device,
    /// It may not be read.
    Unreadable,
    /// A repository inside the tree that has no commit.
    NoCommit,
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

impl Why {
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Why::TooLarge => "too large",
            Why::Socket => "a socket",
            Why::Pipe => "a pipe",
            Why::Device => "a device",
            Why::Unreadable => "not readable",
            Why::NoCommit => "a repository without a commit",
            Why::Unknown => "left out",
        }
    }
}

/// Something that is not in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Below the top of the tree.
    pub path: String,
    pub why: Why,
}

/// The working tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name in the store; the names count from 1.
    pub n: u64,
    /// After so many turns.
    pub turn: u32,
    /// In which run.
    pub run: u32,
    /// The commit in the store.
    pub commit: String,
    /// How many files are in it.
    pub files: usize,
    /// How many were different from the snapshot before.
    pub changed: usize,
    /// How long it took, and how much processor time.
    pub ms: u64,
    #[serde(default)]
    pub cpu_ms: u64,
    /// Files may have been changed by the next turn already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// What is not in it, or the beginning of that list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// Taken at the beginning of a run.
    Begun(Snapshot),
    /// Taken at the end of a turn.
    Ended(Snapshot),
    /// Taken before files were put back. From here on the files may be as in `to`, or between the two states.
    Rewind {
        saved: Snapshot,
        to: String,
        /// This is an undo: it goes back to the snapshot with this name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undoes: Option<u64>,
    },
    /// The files are put back.
    Rewound,
    /// No snapshot was taken after this turn.
    Failed { turn: u32, why: String },
    /// No snapshots are taken any more.
    GaveUp { turn: u32, why: String },
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

impl What {
    fn snapshot(&self) -> Option<&Snapshot> {
        match self {
            What::Begun(snapshot) | What::Ended(snapshot) | What::Rewind { saved: snapshot, .. } => Some(snapshot),
            What::Rewound | What::Failed { .. } | What::GaveUp { .. } | What::Unknown => None,
        }
    }
}

/// All lines of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(pub Vec<Entry>);

/// So many of the newest entries are kept, however old they are.
const NEWEST: usize = 120;

impl History {
    /// All snapshots that were taken, the oldest first.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.0.iter().filter_map(|entry| entry.what.snapshot())
    }

    /// The files as they were before anything was done.
    #[must_use]
    pub fn first(&self) -> Option<&Snapshot> {
        self.snapshots().next()
    }

    /// The files at the end of a turn; of turn 0, at the beginning of the session.
    #[must_use]
    pub fn end_of(&self, turn: u32) -> Option<&Snapshot> {
        let ends = |entry: &Entry| match &entry.what {
            What::Ended(_) => true,
            What::Begun(_) => turn == 0,
            What::Rewind { .. } | What::Rewound | What::Failed { .. } | What::GaveUp { .. } | What::Unknown => false,
        };
        self.0.iter().filter(|entry| ends(entry)).filter_map(|entry| entry.what.snapshot()).find(|one| one.turn == turn)
    }

    /// The files with which a turn began. What was changed after the turn before, by others or by putting files back,
    /// is not part of the turn.
    #[must_use]
    pub fn before(&self, turn: u32) -> Option<&Snapshot> {
        let before = turn.checked_sub(1)?;
        // A snapshot of the start of a run may contain changes of this turn, if the turn was quick.
        let begins = |entry: &&Entry| match &entry.what {
            What::Begun(snapshot) => snapshot.turn == before && !snapshot.mixed,
            What::Ended(snapshot) => snapshot.turn == before,
            What::Rewind { .. } | What::Rewound | What::Failed { .. } | What::GaveUp { .. } | What::Unknown => false,
        };
        let newest = self.0.iter().rev().find(begins).and_then(|entry| entry.what.snapshot());
        newest.or_else(|| self.end_of(before))
    }

    /// The ends of turns, and the beginning as turn 0, in order and each once.
    #[must_use]
    pub fn ends(&self) -> Vec<&Snapshot> {
        let mut found: BTreeMap<u32, &Snapshot> = BTreeMap::new();
        for turn in self.snapshots().map(|one| one.turn) {
            if let Some(snapshot) = self.end_of(turn) {
                found.insert(turn, snapshot);
            }
        }
        found.into_values().collect()
    }

    /// Whether a snapshot of this moment was taken or has failed.
    #[must_use]
    pub fn has(&self, turn: u32, run: u32, begins: bool) -> bool {
        self.0.iter().any(|entry| match &entry.what {
            What::Begun(snapshot) => begins && (snapshot.turn, snapshot.run) == (turn, run),
            What::Ended(snapshot) => !begins && snapshot.turn == turn,
            What::Failed { turn: failed, .. } => !begins && *failed == turn,
            What::Rewind { .. } | What::Rewound | What::GaveUp { .. } | What::Unknown => false,
        })
    }

    /// The last time files were put back: the snapshot from before, and whether it was finished.
    #[must_use]
    pub fn last_rewind(&self) -> Option<(&Snapshot, bool)> {
        let mut finished = false;
        for entry in self.0.iter().rev() {
            match &entry.what {
                What::Rewound => finished = true,
                What::Rewind { saved, .. } => return Some((saved, finished)),
                What::Begun(_) | What::Ended(_) | What::Failed { .. } | What::GaveUp { .. } | What::Unknown => {}
            }
        }
        None
    }

    /// The snapshots that an undo can go back to, the nearest first. An undo after an undo goes further back; after
    /// another rewind everything that was ever saved can be reached again. If an undo was not finished, its snapshot
    /// comes first.
    #[must_use]
    pub fn undoable(&self) -> Vec<&Snapshot> {
        let mut saved: Vec<&Snapshot> = Vec::new();
        let mut last = None;
        for entry in &self.0 {
            match &entry.what {
                What::Rewind { saved: one, undoes, .. } => {
                    // After a rewind that was killed, the snapshot from before it is noted again.
                    saved.retain(|known| known.n != one.n);
                    saved.push(one);
                    last = undoes.map(|undoes| (undoes, false));
                }
                What::Rewound => last = last.map(|(undoes, _)| (undoes, true)),
                What::Begun(_) | What::Ended(_) | What::Failed { .. } | What::GaveUp { .. } | What::Unknown => {}
            }
        }
        if let Some((undoes, finished)) = last {
            let end = saved.iter().position(|one| one.n == undoes).map_or(0, |at| at + usize::from(!finished));
            saved.truncate(end);
        }
        saved.reverse();
        saved
    }

    /// Why no more snapshots are taken.
    #[must_use]
    pub fn gave_up(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|entry| match &entry.what {
            What::GaveUp { why, .. } => Some(why.as_str()),
            _ => None,
        })
    }

    /// Why the newest snapshot was not taken, if it was not.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        match &self.0.last()?.what {
            What::Failed { why, .. } => Some(why),
            _ => None,
        }
    }

    /// The name for the next snapshot.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.snapshots().map(|snapshot| snapshot.n).max().unwrap_or(0) + 1
    }

    /// Thinned out in the same way as checkpoints: everything of the last ten minutes is kept, then one every ten
    /// minutes for a day, then one a day. The first and the newest are kept, and so are those that were saved before
    /// files were put back.
    #[must_use]
    pub fn thinned(&self, now: Timestamp) -> History {
        let spacing = |at: Timestamp| match now.as_second() - at.as_second() {
            ..600 => 1,
            600..86_400 => 600,
            86_400.. => 86_400,
        };
        let slot = |entry: &Entry| (spacing(entry.at), entry.at.as_second() / spacing(entry.at));
        let old = self.0.len().saturating_sub(NEWEST);
        let kept = self.0.iter().enumerate().filter(|(place, entry)| {
            let last_of_slot = self.0.get(place + 1).is_none_or(|next| slot(next) != slot(entry));
            *place == 0 || *place >= old || last_of_slot || !matches!(entry.what, What::Begun(_) | What::Ended(_))
        });
        History(kept.map(|(_, entry)| entry.clone()).collect())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn snapshot(n: u64, turn: u32) -> Snapshot {
        let commit = format!("commit{n}");
        Snapshot { n, turn, run: 1, commit, files: 1, changed: 1, ms: 1, cpu_ms: 1, mixed: false, skipped: Vec::new() }
    }

    fn history(whats: impl IntoIterator<Item = What>) -> History {
        let at = |second| Timestamp::from_second(second).unwrap();
        History(whats.into_iter().zip(0..).map(|(what, second)| Entry { at: at(second * 5), what }).collect())
    }

    #[test]
    fn a_turn_begins_with_what_was_there_last_and_ends_with_what_it_left() {
        let history = history([
            What::Begun(snapshot(1, 0)),
            What::Ended(snapshot(2, 1)),
            What::Begun(snapshot(3, 1)),
            What::Ended(snapshot(4, 2)),
            What::Rewind { saved: snapshot(5, 2), to: "x".to_owned(), undoes: None },
        ]);
        assert_eq!(history.end_of(0).unwrap().n, 1);
        assert_eq!(history.end_of(1).unwrap().n, 2);
        assert_eq!((history.before(1).unwrap().n, history.before(2).unwrap().n), (1, 3));
        let mut quick = history.clone();
        quick.0[2].what = What::Begun(Snapshot { mixed: true, ..snapshot(3, 1) });
        assert_eq!(quick.before(2).unwrap().n, 2);
        assert!(history.before(0).is_none() && history.end_of(3).is_none());
        assert_eq!(history.ends().iter().map(|one| one.n).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(history.last_rewind().map(|(saved, done)| (saved.n, done)), Some((5, false)));
        assert_eq!(history.next(), 6);
    }

    #[test]
    fn each_undo_goes_further_back_and_nothing_that_was_saved_becomes_unreachable() {
        let rewind = |n, undoes| What::Rewind { saved: snapshot(n, 2), to: "x".to_owned(), undoes };
        let mut whats = vec![rewind(5, None), What::Rewound, rewind(6, None), What::Rewound];
        let undoable =
            |whats: &Vec<What>| history(whats.clone()).undoable().iter().map(|one| one.n).collect::<Vec<_>>();
        assert_eq!(undoable(&whats), [6, 5]);
        whats.push(rewind(7, Some(6)));
        assert_eq!(undoable(&whats), [6, 5], "one that was killed is done again");
        whats.push(What::Rewound);
        assert_eq!(undoable(&whats), [5]);
        whats.extend([rewind(8, Some(5)), What::Rewound]);
        assert_eq!(undoable(&whats), [0; 0]);
        whats.extend([rewind(9, None), What::Rewound]);
        assert_eq!(undoable(&whats), [9, 8, 7, 6, 5]);
        // A rewind that was killed and done again: the snapshot from before it comes first.
        whats.extend([rewind(10, None), rewind(11, None), rewind(10, None), What::Rewound]);
        assert_eq!(undoable(&whats), [10, 11, 9, 8, 7, 6, 5]);
    }

    #[test]
    fn lines_of_a_newer_version_are_passed_over() {
        let line = r#"{"at":"2026-11-17T00:00:00Z","what":"something_new","and":1}"#;
        assert_eq!(serde_json::from_str::<Entry>(line).unwrap().what, What::Unknown);
        let entry = Entry { at: Timestamp::UNIX_EPOCH, what: What::Begun(snapshot(1, 0)) };
        assert_eq!(serde_json::from_str::<Entry>(&serde_json::to_string(&entry).unwrap()).unwrap(), entry);
    }

    #[test]
    fn old_ones_go_and_the_first_and_what_was_saved_stay() {
        let turns = (1..5000).map(|turn| match turn {
            40 => What::Rewind { saved: snapshot(40, 39), to: String::new(), undoes: None },
            turn => What::Ended(snapshot(u64::from(turn), turn)),
        });
        let history = history(turns);
        let thinned = history.thinned(Timestamp::from_second(5000 * 5).unwrap());
        assert!(thinned.0.len() < NEWEST + 60, "{}", thinned.0.len());
        let names: Vec<u64> = thinned.snapshots().map(|one| one.n).collect();
        assert!(
            names.contains(&1) && names.contains(&40) && names.contains(&4999) && !names.contains(&41),
            "{names:?}"
        );
    }
}
