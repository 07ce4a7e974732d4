//! `progress.json`: the state that the keeper has derived so far, so that a reader of a long session reads only what
//! came after it.
//!
//! It is derived: the state of the journal up to one position, and the memory of the decoder of the agent's output at
//! another position. It may be deleted at any time. A file that is damaged, from another build of ostler, or does not
//! fit the journal is read as if it were not there. The keeper replaces it now and then, in one step and without
//! waiting for the disk.

use crate::StoreError;
use crate::journal::{self, Found};
use ostler_core::life::{State, step};
use ostler_core::record::Plan;
use ostler_sys::dir::{Dir, Sync};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const NAME: &str = "progress.json";

/// Identifies the code that has derived the state.
pub const BUILD: &str = env!("OSTLER_UNDERSTANDING");

/// The state that has been derived of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    build: String,
    /// The journal up to this position is in the state.
    journal: u64,
    /// The mark of the journal at this position.
    mark: u64,
    bad_lines: u32,
    state: State,
    heard: Option<Heard>,
}

/// How far the agent's output has been read in the running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    pub run: u32,
    /// Everything before this position is in the state, or changes nothing in it.
    pub position: u64,
    /// The memory of the decoder at this position.
    pub memory: Value,
}

/// What the whole journal says of a session.
#[derive(Debug)]
pub struct Past {
    pub state: State,
    pub bad_lines: u32,
    pub heard: Option<Heard>,
    /// How much of the journal comes after the progress.
    pub behind: u64,
}

/// Folds the journal, starting where the keeper's progress ends. `plan`: the plan of the newest run.
pub fn past(dir: &Dir, plan: &Plan) -> Result<Past, StoreError> {
    let (progress, found) = match behind_progress(dir)? {
        Some(found) => found,
        None => (Progress::none(plan), journal::read(dir, 0)?),
    };
    Ok(Past {
        state: found.entries.iter().fold(progress.state, |state, entry| step(state, entry).0),
        bad_lines: progress.bad_lines + found.bad_lines,
        heard: progress.heard,
        behind: found.end - progress.journal,
    })
}

/// The progress, and what the journal has after it. `None`: there is no progress that can be trusted.
fn behind_progress(dir: &Dir) -> Result<Option<(Progress, Found)>, StoreError> {
    let Some(progress) = read(dir) else {
        return Ok(None);
    };
    let found = journal::read_behind(dir, progress.journal, progress.mark)?;
    Ok(found.map(|found| (progress, found)))
}

impl Progress {
    fn none(plan: &Plan) -> Progress {
        let state = State::new(plan.clone());
        Progress { build: BUILD.to_owned(), journal: 0, mark: 0, bad_lines: 0, state, heard: None }
    }
}

fn read(dir: &Dir) -> Option<Progress> {
    let bytes = dir.read(NAME).ok()??;
    let (sum, json) = bytes.split_first_chunk::<16>()?;
    if std::str::from_utf8(sum).ok()? != checksum(json) {
        return None;
    }
    let progress: Progress = serde_json::from_slice(json).ok()?;
    (progress.build == BUILD).then_some(progress)
}

/// Writes the derived state of the journal up to its present end, which has this `mark`. Returns the size of the file.
pub fn write(
    dir: &Dir,
    (journal, mark): (u64, u64),
    bad_lines: u32,
    state: &State,
    heard: Option<Heard>,
) -> Result<u64, StoreError> {
    let progress = Progress { build: BUILD.to_owned(), journal, mark, bad_lines, state: state.clone(), heard };
    let json = crate::folder::to_json(&progress);
    let mut bytes = checksum(&json).into_bytes();
    bytes.extend(&json);
    dir.replace(NAME, &bytes, Sync::No).map_err(StoreError::io(NAME))?;
    Ok(bytes.len() as u64)
}

/// A torn or changed file does not have the right one.
fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", journal::mark_of(bytes))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::journal::Journal;
    use jiff::Timestamp;
    use ostler_core::event::{Entry, Event};
    use ostler_core::record::{Channel, Ending, Lines};

    fn plan() -> Plan {
        Plan {
            channel: Channel::Lines(Lines::Turns),
            keep: true,
            ending: Ending::Terminate,
            linger_ms: 0,
            rules: ostler_core::rules::Rules::default(),
        }
    }

    fn entry(ms: u64, event: Event) -> Entry {
        Entry { at: Timestamp::UNIX_EPOCH, ms, run: 1, out: None, request: None, inbox: None, notify: None, event }
    }

    /// A session with entries before and after its progress.
    struct Fixture {
        folder: tempfile::TempDir,
        dir: Dir,
    }

    impl Fixture {
        fn new() -> Fixture {
            let folder = tempfile::tempdir().unwrap();
            let dir = Dir::open(folder.path()).unwrap();
            let fixture = Fixture { folder, dir };
            let mut journal = Journal::open(&fixture.dir).unwrap();
            journal.append(&entry(1, Event::Started { plan: plan(), continues: false })).unwrap();
            for n in 1..=50 {
                journal.append(&entry(n, Event::Alarm { text: format!("before {n}") })).unwrap();
            }
            let state = past(&fixture.dir, &plan()).unwrap().state;
            write(&fixture.dir, journal.end().unwrap(), 7, &state, None).unwrap();
            journal.append(&entry(99, Event::Native { id: "later".to_owned() })).unwrap();
            fixture
        }

        fn uses_progress(&self) -> bool {
            // Only the progress counts bad lines here; the journal has none.
            let past = past(&self.dir, &plan()).unwrap();
            assert_eq!(past.state.native_id.as_deref(), Some("later"));
            assert_eq!(past.state.alarm.as_deref(), Some("before 50"));
            past.bad_lines == 7
        }

        fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
            let path = self.folder.path().join(name);
            let mut bytes = std::fs::read(&path).unwrap();
            change(&mut bytes);
            std::fs::write(path, bytes).unwrap();
        }
    }

    #[test]
    fn a_reader_goes_on_where_the_progress_ends() {
        assert!(Fixture::new().uses_progress());
    }

    #[test]
    fn whatever_is_wrong_with_it_the_state_is_that_of_the_journal() {
        let length = std::fs::metadata(Fixture::new().folder.path().join(NAME)).unwrap().len();
        for at in (0..length).step_by(13) {
            let at = usize::try_from(at).unwrap();
            let fixture = Fixture::new();
            fixture.change(NAME, |bytes| bytes[at] ^= 1);
            assert!(!fixture.uses_progress(), "byte {at} is another one");
            let fixture = Fixture::new();
            fixture.change(NAME, |bytes| bytes.truncate(at));
            assert!(!fixture.uses_progress(), "cut off at {at}");
        }
        let fixture = Fixture::new();
        std::fs::remove_file(fixture.folder.path().join(NAME)).unwrap();
        assert!(!fixture.uses_progress(), "deleted");
    }

    #[test]
    fn the_progress_of_another_build_is_not_taken_over() {
        let fixture = Fixture::new();
        fixture.change(NAME, |bytes| {
            let json = String::from_utf8(bytes[16..].to_vec()).unwrap().replace(BUILD, "0123456789abcdef");
            *bytes = (checksum(json.as_bytes()) + &json).into_bytes();
        });
        assert!(!fixture.uses_progress());
    }

    #[test]
    fn a_progress_that_does_not_fit_the_journal_is_not_taken_over() {
        let fixture = Fixture::new();
        fixture.change("journal.jsonl", |bytes| {
            let text = String::from_utf8(bytes.clone()).unwrap();
            *bytes = text.replacen("before 50", "BEFORE 50", 1).into_bytes();
        });
        assert_eq!(past(&fixture.dir, &plan()).unwrap().bad_lines, 0, "another journal");
        let fixture = Fixture::new();
        fixture.change("journal.jsonl", |bytes| bytes.truncate(200));
        assert_eq!(past(&fixture.dir, &plan()).unwrap().bad_lines, 0, "a shorter journal");
        let fixture = Fixture::new();
        std::fs::remove_file(fixture.folder.path().join("journal.jsonl")).unwrap();
        assert_eq!(past(&fixture.dir, &plan()).unwrap().state, State::new(plan()), "no journal");
    }
}
