//! The copies of a transcript that were taken while the agent worked, and putting one back.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::quantities::{parse_duration, to_the_millisecond};
use crate::quiesced::{NotQuiesced, Quiesced};
use jiff::Timestamp;
use ostler_agents::recorded::What;
use ostler_core::fact::Fact;
use ostler_store::StoreError;
pub use ostler_store::checkpoints::Checkpoint;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::{archive_file, archived, checkpoints};
use ostler_sys::clock;
use ostler_view::recorded;
use serde::Serialize;
use std::collections::HashMap;
use std::path::PathBuf;

/// A checkpoint, and what was said last when it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// When, of which file, how much.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    /// The last message in it.
    pub last: Option<LastMessage>,
}

/// A message in a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastMessage {
    /// Which side said it.
    pub by: Speaker,
    /// The whole text.
    pub text: String,
}

/// The sides of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// What the agent was told.
    Person,
    /// What the agent said.
    Agent,
}

/// Why no checkpoint was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotChosen {
    /// There are no checkpoints.
    NoCheckpoints,
    /// No checkpoint is of that time.
    NoneOfThatTime {
        /// The name of the newest checkpoint.
        last: String,
    },
    /// Several checkpoints are of that time.
    Ambiguous {
        /// The names of the newest of them.
        newest: Vec<String>,
        /// How many older ones there are.
        more: usize,
    },
}

/// At most this many of the possible checkpoints are named.
const NAMED: usize = 5;

impl Engine {
    /// The checkpoints of a session, the oldest first.
    pub fn checkpoints(&self, place: &Place) -> Result<Vec<Taken>> {
        let folder = place.open()?;
        let all = checkpoints::list(&folder)?;
        let messages = last_messages(&folder, &all)?;
        let taken = all.into_iter().zip(messages);
        Ok(taken.map(|(checkpoint, last)| Taken { checkpoint, last: last.and_then(in_words) }).collect())
    }

    /// The same without the last messages: the copies are not read.
    pub fn checkpoint_times(&self, place: &Place) -> Result<Vec<Checkpoint>> {
        Ok(checkpoints::list(&place.open()?)?)
    }

    /// Restores the transcript from a checkpoint. Returns where the replaced file is now; `None` when there was no
    /// file.
    pub fn restore_checkpoint(&self, place: &Place, checkpoint: &Checkpoint) -> Result<Option<PathBuf>> {
        let take = || {
            Quiesced::take(place).map_err(|not| match not {
                NotQuiesced::Runs => Error::StillWriting { session: place.into() },
                NotQuiesced::Failed(error) => error,
            })
        };
        let was_packed = place.is_packed();
        if was_packed {
            let quiesced = take()?;
            // After packing the files again, it would no longer be known that they are damaged.
            if let [first, ..] = &archive_file::damaged_files(&place.open()?)?[..] {
                let reason = "the archived file is damaged".to_owned();
                return Err(StoreError::Damaged { file: first.clone(), reason }.of(place.id).into());
            }
            archive_file::unpack(&quiesced.parent()?, place.id, quiesced.held())?;
        }
        let quiesced = take()?;
        let folder = place.open()?;
        let before = checkpoints::restore(&folder, checkpoint)?;
        // The next resume must not report this change, which ostler made itself.
        checkpoints::settle(&folder, &checkpoint.of, clock::now())?;
        if place.archived {
            archived::note_transcript(&folder)?;
        }
        if was_packed {
            // The session is archived in either form: when it cannot be packed now, it is read as a folder.
            let month = quiesced.parent()?;
            let _ =
                archive_file::lock(&self.home.archive()).and_then(|lock| archive_file::pack(&month, place.id, &lock));
        }
        Ok(before)
    }
}

fn in_words(what: What) -> Option<LastMessage> {
    match what {
        What::Told { text } => Some(LastMessage { by: Speaker::Person, text }),
        What::Agent(Fact::Said { text }) => Some(LastMessage { by: Speaker::Agent, text }),
        What::Agent(_) => None,
    }
}

/// The last message in each checkpoint. Copies only grow, so what was read for the previous checkpoint is not read
/// again.
fn last_messages(folder: &Folder, all: &[Checkpoint]) -> Result<Vec<Option<What>>> {
    let run = folder.run(folder.newest_or_first()?)?;
    let agent = ostler_agents::keeps_conversation(&folder.session()?, &run.record()?);
    let mut known: HashMap<u32, (u64, Option<What>)> = HashMap::new();
    let mut messages = Vec::new();
    for one in all {
        let (from, before) = known.get(&one.copy).cloned().unwrap_or_default();
        let found = match agent {
            Some(agent) if one.length > from => {
                recorded::last_message(agent, &checkpoints::copy(folder, one)?, from..one.length)?
            }
            Some(_) | None => None,
        };
        let message = found.or(before);
        known.insert(one.copy, (one.length.max(from), message.clone()));
        messages.push(message);
    }
    Ok(messages)
}

/// The name of a checkpoint: its time, as exact as needed to distinguish it from the others.
#[must_use]
pub fn name(all: &[Checkpoint], one: &Checkpoint) -> String {
    let alone =
        |written: fn(Timestamp) -> String| all.iter().filter(|other| written(other.at) == written(one.at)).count() == 1;
    [to_the_second, to_the_millisecond].into_iter().find(|&written| alone(written)).unwrap_or(exactly)(one.at)
}

fn to_the_second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn exactly(at: Timestamp) -> String {
    at.to_string()
}

/// The checkpoint that `time` names. `last`: the newest. An age (`10m`): the newest that is at least this old.
/// Otherwise: a time as [`name`] writes it, or the beginning of one if only one checkpoint begins with it.
pub fn choose(all: &[Checkpoint], time: &str, now: Timestamp) -> std::result::Result<Checkpoint, NotChosen> {
    let none = || match all.last() {
        Some(last) => NotChosen::NoneOfThatTime { last: name(all, last) },
        None => NotChosen::NoCheckpoints,
    };
    if time == "last" {
        return all.last().cloned().ok_or_else(none);
    }
    if let Ok(back) = parse_duration(time) {
        let then = now.as_second().saturating_sub_unsigned(back.as_secs());
        return all.iter().rfind(|one| one.at.as_second() <= then).cloned().ok_or_else(none);
    }
    if let Some(one) = all.iter().find(|one| [name(all, one), exactly(one.at)].iter().any(|name| name == time)) {
        return Ok(one.clone());
    }
    let meant: Vec<&Checkpoint> =
        all.iter().filter(|one| exactly(one.at).starts_with(time.trim_end_matches('Z'))).collect();
    match meant[..] {
        [] => Err(none()),
        [one] if !time.is_empty() => Ok(one.clone()),
        _ => {
            let newest: Vec<String> = meant.iter().rev().take(NAMED).map(|one| name(all, one)).collect();
            let more = meant.len() - newest.len();
            Err(NotChosen::Ambiguous { newest, more })
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    fn taken_at(milliseconds: &[i64]) -> Vec<Checkpoint> {
        let one = |&then: &i64| Checkpoint { at: at(then), of: "talk".into(), copy: 1, length: 1, settled: false };
        milliseconds.iter().map(one).collect()
    }

    #[test]
    fn a_checkpoint_is_chosen_by_word_age_or_time() {
        let all = taken_at(&[0, 60_000, 120_000]);
        let second = |time| choose(&all, time, at(180_000)).map(|one| one.at.as_second()).ok();
        assert_eq!(second("last"), Some(120));
        assert_eq!(second("90s"), Some(60));
        assert_eq!(second("1h"), None);
        assert_eq!(second("1970-01-01T00:01"), Some(60));
        assert_eq!(second("yesterday"), None);
    }

    #[test]
    fn what_could_be_several_is_none_of_them_and_they_are_named() {
        let all = taken_at(&[0, 60_000, 120_000]);
        for time in ["", "1970-01-01", "Z"] {
            let newest = ["1970-01-01T00:02:00Z", "1970-01-01T00:01:00Z", "1970-01-01T00:00:00Z"].map(str::to_owned);
            let several = NotChosen::Ambiguous { newest: newest.into(), more: 0 };
            assert_eq!(choose(&all, time, at(180_000)), Err(several));
        }
        assert!(choose(&all[..1], "", at(180_000)).is_err());
        assert!(choose(&[], "", at(180_000)).is_err());
    }

    #[test]
    fn two_of_one_second_are_told_apart() {
        let all = taken_at(&[1_000, 60_250, 60_750]);
        let names: Vec<String> = all.iter().map(|one| name(&all, one)).collect();
        assert_eq!(names, ["1970-01-01T00:00:01Z", "1970-01-01T00:01:00.250Z", "1970-01-01T00:01:00.750Z"]);
        for (one, name) in all.iter().zip(&names) {
            assert_eq!(choose(&all, name, at(180_000)).as_ref(), Ok(one));
        }
        assert!(choose(&all, "1970-01-01T00:01:00Z", at(180_000)).is_err());
    }
}
