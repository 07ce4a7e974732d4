//! One session's folder: the records in it, by name.
//!
//! The folder is held open and everything is reached relative to it, so it may be renamed (archived, restored) while we
//! look, and its path may be longer than a socket's name allows.

use crate::home::Home;
use crate::{HelperRecord, RunRecord, StoreError, ended};
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::outcome::{Exit, Outcome};
use ostler_core::record::{FolderId, Renamed, Session};
use ostler_core::start_when::Claim;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::process::Identity;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

const RECORD: &str = "run.json";
const OUTCOME: &str = "outcome.json";
/// Only an outcome has this field.
const CLOSING: &str = "closing";
/// Fields of a record that are for lists of running sessions; an outcome has its own copy.
const SESSION_COPY: [&str; 2] = ["session", "session_size"];

/// The file with the name that a session was given after its start.
pub const RENAMED: &str = "renamed.json";

/// A session's folder.
#[derive(Debug)]
pub struct Folder {
    dir: Dir,
}

/// The state of the session before a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The session has ended, and may be at rest.
    Rest,
    /// The keeper continues with another process. The session is never at rest in between, and the keeper must not wait
    /// for a client's lock.
    Running,
}

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    dir: Dir,
    pub number: u32,
}

impl Folder {
    #[must_use]
    pub fn new(dir: Dir) -> Folder {
        Folder { dir }
    }

    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    pub fn session(&self) -> Result<Session, StoreError> {
        Ok(self.with_its_name(require(&self.dir, "session.json")?))
    }

    /// With the name that it was given later. If the record of that name cannot be read, only the new name is lost, not
    /// the session.
    fn with_its_name(&self, mut session: Session) -> Session {
        if let Ok(Some(Renamed { name, .. })) = read(&self.dir, RENAMED) {
            session.name = Some(name);
        }
        session
    }

    /// Gives it another name. From then on the summary is not enough any more: the note of a session at rest has the
    /// old name.
    pub fn rename(&self, home: &Home, id: SessionId, renamed: &Renamed) -> Result<(), StoreError> {
        let _dropped = self.drop_summary()?;
        ended::note(&home.open_or_make(home.root())?, id).map_err(StoreError::io("woken"))?;
        write(&self.dir, RENAMED, renamed)
    }

    /// The same, from the copy in a run's record if that is still what session.json says.
    pub fn session_of(&self, record: &RunRecord) -> Result<Session, StoreError> {
        let Some(session) = record.session.as_deref().filter(|session| session.schema <= SCHEMA) else {
            return self.session();
        };
        let size = self.dir.stat("session.json").map_err(StoreError::io("session.json"))?.map(|stat| stat.size);
        if size == record.session_size { Ok(self.with_its_name(session.clone())) } else { self.session() }
    }

    /// Written once, into a folder that is not visible to other processes yet.
    pub fn write_session(&self, session: &Session) -> Result<(), StoreError> {
        create(&self.dir, "session.json", session)
    }

    /// Written again, for a run that works in another folder. Only the caller may start a run.
    pub fn replace_session(&self, session: &Session) -> Result<(), StoreError> {
        write(&self.dir, "session.json", session)
    }

    pub fn holder(&self) -> Result<Option<HelperRecord>, StoreError> {
        self.helper("holder.json")
    }

    fn helper(&self, name: &str) -> Result<Option<HelperRecord>, StoreError> {
        let Some(mut helper) = read::<HelperRecord>(&self.dir, name)? else {
            return Ok(None);
        };
        if is_of_another(&self.dir, helper.folder.take())? {
            helper.process = helper.process.of_no_boot();
        }
        Ok(Some(helper))
    }

    fn of_this_folder(&self, helper: &HelperRecord) -> Result<HelperRecord, StoreError> {
        Ok(HelperRecord { folder: Some(id_of(&self.dir)?), ..helper.clone() })
    }

    /// Both helpers, as far as their records can be read: a damaged record must not prevent a session from being ended.
    #[must_use]
    pub fn helpers(&self) -> Vec<HelperRecord> {
        [self.holder(), self.keeper()].into_iter().filter_map(|record| record.ok().flatten()).collect()
    }

    /// The processes that keep it or kept its newest run: they may still be exiting.
    #[must_use]
    pub fn helper_processes(&self) -> Vec<Identity> {
        let mut found: Vec<Identity> = self.helpers().into_iter().map(|helper| helper.process).collect();
        if let Ok((_, Some(Outcome { closing: Some(closing), .. }))) = self.newest_outcome() {
            found.extend(closing.helpers.and_then(|helpers| helpers.parse::<Vec<Identity>>().ok()).unwrap_or_default());
        }
        found
    }

    /// Writes the record of the first holder of a session that is not visible to other processes yet.
    pub fn write_first_holder(&self, holder: &HelperRecord) -> Result<(), StoreError> {
        create(&self.dir, "holder.json", &self.of_this_folder(holder)?)
    }

    pub fn write_holder(&self, holder: &HelperRecord) -> Result<(), StoreError> {
        write(&self.dir, "holder.json", &self.of_this_folder(holder)?)
    }

    pub fn keeper(&self) -> Result<Option<HelperRecord>, StoreError> {
        self.helper("keeper.json")
    }

    pub fn write_keeper(&self, keeper: &HelperRecord) -> Result<(), StoreError> {
        write(&self.dir, "keeper.json", &self.of_this_folder(keeper)?)
    }

    /// The number of the newest run, and its outcome when it has one. Nearly all sessions have one run, and looking up
    /// a name is cheaper than listing a folder.
    pub fn newest_outcome(&self) -> Result<(u32, Option<Outcome>), StoreError> {
        let mut number = self.newest_or_first()?;
        loop {
            let outcome = read::<Outcome>(&self.dir, &format!("runs/{number}/outcome.json"))?;
            // The outcome of a run that another one continues is published after the other was made: this run may not
            // be the newest any more.
            let now = if outcome.is_some() { self.newest_or_first()? } else { number };
            if now == number {
                return Ok((number, outcome));
            }
            number = now;
        }
    }

    /// The number of the newest run; 1 also before the first.
    pub fn newest_or_first(&self) -> Result<u32, StoreError> {
        let single = matches!(self.dir.stat("runs/2"), Ok(None));
        if single { Ok(1) } else { self.newest_run() }
    }

    /// The number of the newest run; 0 before the first.
    pub fn newest_run(&self) -> Result<u32, StoreError> {
        if matches!(self.dir.stat("runs/2"), Ok(None)) && matches!(self.dir.stat("runs/1"), Ok(Some(_))) {
            return Ok(1);
        }
        let runs = match self.dir.open_dir("runs") {
            Ok(runs) => runs,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(StoreError::io("runs")(error)),
        };
        let names = runs.names().map_err(StoreError::io("runs"))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).max().unwrap_or(0))
    }

    pub fn run(&self, number: u32) -> Result<RunFolder, StoreError> {
        let name = format!("runs/{number}");
        let dir = self.dir.open_dir(&name).map_err(StoreError::io(name))?;
        Ok(RunFolder { dir, number })
    }

    pub fn make_run(&self, number: u32) -> Result<RunFolder, StoreError> {
        let name = format!("runs/{number}");
        // A folder that was made in advance has both.
        if let Ok(dir) = self.dir.open_dir(&name) {
            return Ok(RunFolder { dir, number });
        }
        for folder in ["runs", &name] {
            match self.dir.make_dir(folder) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StoreError::io(folder)(error)),
            }
        }
        self.run(number)
    }

    /// Makes the folder of a run with its record in it, so that one is never visible without the other. If several
    /// processes try at once, one succeeds; for the others the run already exists.
    pub fn begin_run(&self, record: &RunRecord, after: After) -> Result<RunFolder, StoreError> {
        self.begin_run_with(record, &[], after)
    }

    /// The same with these files beside the record.
    pub fn begin_run_with(
        &self,
        record: &RunRecord,
        files: &[(&str, Vec<u8>)],
        after: After,
    ) -> Result<RunFolder, StoreError> {
        let runs = self.dir.open_dir("runs").map_err(StoreError::io("runs"))?;
        let number = record.run.to_string();
        let hidden = format!(".new-{number}-{}", std::process::id());
        runs.make_dir(&hidden).map_err(StoreError::io(hidden.as_str()))?;
        let begun = (|| {
            let run = RunFolder { dir: runs.open_dir(&hidden).map_err(StoreError::io(&hidden))?, number: record.run };
            for (name, bytes) in files {
                run.dir.replace(name, bytes, Sync::No).map_err(StoreError::io(*name))?;
            }
            run.write_record(record)?;
            let _dropped = match after {
                After::Rest => Some(self.drop_summary()?),
                After::Running => None,
            };
            runs.rename_new(&hidden, &runs, &number).map_err(StoreError::io(format!("runs/{number}")))?;
            Ok(run)
        })();
        if begun.is_err() {
            // If it cannot be removed, it still has no number, so it is not mistaken for a run.
            let _ = runs.remove_all(&hidden);
        }
        begun
    }

    /// Removes a run that never started. It disappears in one step: a run without its record is never visible.
    pub fn discard_run(&self, number: u32) -> Result<(), StoreError> {
        let runs = self.dir.open_dir("runs").map_err(StoreError::io("runs"))?;
        let gone = format!(".gone-{number}-{}", std::process::id());
        runs.rename_new(&number.to_string(), &runs, &gone).map_err(StoreError::io(format!("runs/{number}")))?;
        runs.remove_all(&gone).map_err(StoreError::io(gone))
    }
}

impl RunFolder {
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// In a copy of the folder it names no process: those that it was written with belong to the original.
    pub fn record(&self) -> Result<RunRecord, StoreError> {
        let mut record: RunRecord = require(&self.dir, RECORD)?;
        // For a run that has ended it may be a second name of the outcome, whose fields do not belong to the record.
        if record.more.contains_key(CLOSING) {
            record.more.clear();
        }
        if is_of_another(&self.dir, record.folder.take())? {
            record.agent = record.agent.map(Identity::of_no_boot);
            record.launcher = record.launcher.map(Identity::of_no_boot);
            (record.serial, record.holder, record.cgroup) = (None, None, None);
            record.bounds.clear();
        }
        Ok(record)
    }

    fn of_this_folder(&self, record: &RunRecord) -> Result<RunRecord, StoreError> {
        Ok(RunRecord { folder: Some(id_of(&self.dir)?), ..record.clone() })
    }

    /// The record of the first run of a session that is not visible to other processes yet.
    pub fn write_first_record(&self, record: &RunRecord) -> Result<(), StoreError> {
        create(&self.dir, RECORD, &self.of_this_folder(record)?)
    }

    pub fn write_record(&self, record: &RunRecord) -> Result<(), StoreError> {
        write(&self.dir, RECORD, &self.of_this_folder(record)?)
    }

    /// Whether the program of a run that had to wait was started, or never will be.
    pub fn claim(&self) -> Result<Option<Claim>, StoreError> {
        read(&self.dir, "claim.json")
    }

    /// Publishes a claim. `false`: another process was first, and its claim is valid.
    pub fn publish_claim(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.dir.publish_once("claim.json", &to_json(claim)).map_err(StoreError::io("claim.json"))
    }

    pub fn exit(&self) -> Result<Option<Exit>, StoreError> {
        read(&self.dir, "exit.json")
    }

    pub fn outcome(&self) -> Result<Option<Outcome>, StoreError> {
        read(&self.dir, OUTCOME)
    }

    /// Whether it has ended and that is recorded.
    pub fn has_outcome(&self) -> Result<bool, StoreError> {
        Ok(self.dir.stat(OUTCOME).map_err(StoreError::io(OUTCOME))?.is_some())
    }

    /// `Ok(false)`: there is one already, and it stays. The file also contains the fields of the record, where there is
    /// room for them ([`Self::merge_record`]).
    pub fn publish_outcome(&self, outcome: &Outcome, record: &RunRecord) -> Result<bool, StoreError> {
        let bytes = with_record(outcome, &self.of_this_folder(record)?).unwrap_or_else(|| to_json(outcome));
        self.dir.publish_once(OUTCOME, &bytes).map_err(StoreError::io(OUTCOME))
    }

    /// Makes `run.json` a second name of the outcome, if the outcome has everything that the record has: so a run that
    /// has ended takes one block less. Both stay readable by their names, also for older versions. Best effort.
    pub(crate) fn merge_record(&self) {
        let fields = |name| read::<Map<String, Value>>(&self.dir, name).ok().flatten();
        let (Some(mut record), Some(outcome)) = (fields(RECORD), fields(OUTCOME)) else { return };
        SESSION_COPY.iter().for_each(|name| drop(record.remove(*name)));
        if !record.contains_key(CLOSING) && record.iter().all(|(name, value)| outcome.get(name) == Some(value)) {
            let _ = self.dir.replace_by_link(RECORD, OUTCOME);
        }
    }
}

/// Whether a file in this folder was written into another one, of which this one is a copy. Older versions did not note
/// where they wrote.
fn is_of_another(dir: &Dir, written_into: Option<FolderId>) -> Result<bool, StoreError> {
    Ok(written_into.map(|folder| Ok::<_, StoreError>(folder != id_of(dir)?)).transpose()?.unwrap_or(false))
}

fn id_of(dir: &Dir) -> Result<FolderId, StoreError> {
    let (device, inode) = dir.device_and_inode().map_err(StoreError::io("."))?;
    Ok(FolderId { device, inode })
}

/// An outcome with the fields of the record added; `None` when that would take more than one block.
fn with_record(outcome: &Outcome, record: &RunRecord) -> Option<Vec<u8>> {
    const BLOCK: usize = 4096;
    // From this field a reader of the record knows that the other fields are the outcome's.
    outcome.closing.as_ref()?;
    let mut fields = fields_of(outcome)?;
    for (name, value) in fields_of(record)? {
        if !SESSION_COPY.contains(&name.as_str()) && fields.insert(name, value).is_some() {
            return None;
        }
    }
    Some(to_json(&fields)).filter(|bytes| bytes.len() <= BLOCK)
}

fn fields_of(record: &impl Serialize) -> Option<Map<String, Value>> {
    match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => Some(fields),
        Ok(_) | Err(_) => None,
    }
}

pub fn read<T: DeserializeOwned>(dir: &Dir, name: &str) -> Result<Option<T>, StoreError> {
    let Some(bytes) = dir.read(name).map_err(StoreError::io(name))? else {
        return Ok(None);
    };
    match serde_json::from_slice(&bytes) {
        Ok(record) => Ok(Some(record)),
        Err(error) => Err(newer_or_damaged(name, &bytes, &error)),
    }
}

/// A file that readers can do without: a damaged one counts as missing.
pub fn read_dispensable(dir: &Dir, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    match dir.read(name) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(None),
        other => other.map_err(StoreError::io(name)),
    }
}

fn require<T: DeserializeOwned>(dir: &Dir, name: &str) -> Result<T, StoreError> {
    read(dir, name)?.ok_or_else(|| StoreError::Missing { file: name.to_owned() })
}

/// A record that we cannot read may be valid for the version that wrote it.
fn newer_or_damaged(name: &str, bytes: &[u8], error: &serde_json::Error) -> StoreError {
    let schema = serde_json::from_slice::<serde_json::Value>(bytes).ok().and_then(|value| value["schema"].as_u64());
    match schema {
        Some(schema) if schema > u64::from(SCHEMA) => StoreError::Newer { file: name.to_owned(), schema },
        Some(_) | None => StoreError::Damaged { file: name.to_owned(), reason: error.to_string() },
    }
}

fn create<T: Serialize>(dir: &Dir, name: &str, record: &T) -> Result<(), StoreError> {
    dir.create(name, &to_json(record)).map_err(StoreError::io(name))
}

fn write<T: Serialize>(dir: &Dir, name: &str, record: &T) -> Result<(), StoreError> {
    // A record that is empty after a power cut would damage a session for which promises were made to people.
    dir.replace(name, &to_json(record), Sync::Bytes).map_err(StoreError::io(name))
}

/// The size of session.json, which is written once: a file of another size was damaged since.
#[must_use]
pub fn session_size(session: &Session) -> u64 {
    to_json(session).len() as u64
}

/// Records are plain data: strings, numbers, lists and maps with string keys, which always have a JSON form.
pub fn to_json<T: Serialize>(record: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(record).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(crate) mod tests {
    use super::*;
    use ostler_core::record::{Channel, Ending, Lines, Plan};

    pub(crate) fn record(run: u32) -> RunRecord {
        let plan = Plan {
            channel: Channel::Lines(Lines::OneTurn),
            keep: false,
            ending: Ending::EndOfInput,
            linger_ms: 0,
            rules: ostler_core::rules::Rules::default(),
        };
        RunRecord::new(run, Vec::new(), plan)
    }

    #[test]
    fn a_run_begins_once_with_its_record_and_who_comes_second_leaves_no_trace() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(home.path()).unwrap());
        folder.make_run(1).unwrap();
        folder.dir().create("session.json", b"{}").unwrap();
        assert_eq!(folder.begin_run(&record(2), After::Rest).unwrap().record().unwrap().run, 2);
        let second = folder.begin_run(&record(2), After::Rest);
        assert!(
            matches!(second, Err(StoreError::Io { error, .. }) if error.kind() == std::io::ErrorKind::AlreadyExists)
        );
        let mut names = folder.dir().open_dir("runs").unwrap().names().unwrap();
        names.sort();
        assert_eq!(names, ["1", "2"]);
        assert_eq!(folder.newest_run().unwrap(), 2);
        folder.discard_run(2).unwrap();
        assert_eq!(folder.dir().open_dir("runs").unwrap().names().unwrap(), ["1"], "taken back without a trace");
    }

    #[test]
    fn the_processes_in_a_copy_of_a_folder_are_those_of_the_original() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(home.path()).unwrap());
        let me = Identity::me().unwrap();
        let helper =
            HelperRecord { process: me.clone(), version: "1".to_owned(), crashes: 2, gave_up: false, folder: None };
        folder.write_first_holder(&helper).unwrap();
        folder.write_keeper(&helper).unwrap();
        let run = folder.make_run(1).unwrap();
        let record = RunRecord { agent: Some(me.clone()), holder: Some(7), cgroup: Some("/g".to_owned()), ..record(1) };
        run.write_record(&record).unwrap();
        assert_eq!((folder.holder().unwrap().unwrap(), folder.keeper().unwrap().unwrap()), (helper.clone(), helper));
        assert_eq!(run.record().unwrap(), record);

        let renamed = home.path().join("runs/2");
        std::fs::rename(home.path().join("runs/1"), &renamed).unwrap();
        assert_eq!(folder.run(2).unwrap().record().unwrap(), record, "the same folder under another name");
        let copy = Folder::new(Dir::open(&renamed).unwrap());
        std::fs::copy(home.path().join("holder.json"), renamed.join("holder.json")).unwrap();
        assert!(!copy.holder().unwrap().unwrap().process.may_live());
        let other = folder.make_run(3).unwrap();
        std::fs::copy(renamed.join(RECORD), home.path().join("runs/3").join(RECORD)).unwrap();
        let copied = other.record().unwrap();
        let agent_lives = copied.agent.as_ref().map(Identity::may_live);
        assert_eq!((agent_lives, copied.holder, copied.cgroup), (Some(false), None, None));

        let mut old: Map<String, Value> = read::<Map<String, Value>>(folder.dir(), "holder.json").unwrap().unwrap();
        old.remove("folder");
        folder.dir().replace("keeper.json", &to_json(&old), Sync::No).unwrap();
        assert_eq!(folder.keeper().unwrap().unwrap().process, me, "older versions did not note the folder");
    }

    fn ended() -> Outcome {
        ostler_core::outcome::judge(&ostler_core::life::State::new(record(1).plan), 0)
    }

    fn is_merged(run: &RunFolder) -> bool {
        let inode = |name| run.dir().stamp(name).unwrap().unwrap().inode;
        inode(RECORD) == inode(OUTCOME)
    }

    #[test]
    fn the_record_of_a_run_that_has_ended_is_a_second_name_of_its_outcome_and_reads_the_same() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(home.path()).unwrap());
        let run = folder.make_run(1).unwrap();
        let session: Session = serde_json::from_value(serde_json::json!({
            "schema": 1, "id": "q5b7k2mz", "agent": "command", "cwd": "/", "mode": "headless",
            "created": "2026-11-18T00:00:00Z",
        }))
        .unwrap();
        let mut record = RunRecord { argv: vec!["a \"word\"".to_owned()], ..record(1) };
        record.session_size = Some(session_size(&session));
        record.session = Some(Box::new(session));
        run.write_record(&record).unwrap();
        run.merge_record();
        assert_eq!(run.record().unwrap(), record, "it has not ended");
        let closing = serde_json::json!({
            "session": record.session, "session_size": 1, "run": 1, "ended": "2026-11-18T00:00:00Z", "turns": 0,
            "queued": 0, "inbox": 0,
        });
        let outcome = Outcome { closing: Some(serde_json::from_value(closing).unwrap()), ..ended() };
        run.publish_outcome(&outcome, &record).unwrap();
        for _ in 0..2 {
            run.merge_record();
            assert!(is_merged(&run));
            assert_eq!(run.outcome().unwrap().unwrap(), outcome);
            assert_eq!(run.record().unwrap(), RunRecord { session: None, session_size: None, ..record.clone() });
            let mut names = run.dir().names().unwrap();
            names.sort();
            assert_eq!(names, [OUTCOME, RECORD]);
        }
        run.write_record(&record).unwrap();
        assert_eq!(run.outcome().unwrap().unwrap(), outcome, "a record that is written again is a file of its own");
    }

    #[test]
    fn a_record_that_the_outcome_does_not_say_in_full_stays_a_file_of_its_own() {
        let long = RunRecord { argv: vec!["x".repeat(4096)], ..record(1) };
        for (written, published) in [(long.clone(), long), (RunRecord { holder: Some(7), ..record(1) }, record(1))] {
            let home = tempfile::tempdir().unwrap();
            let folder = Folder::new(Dir::open(home.path()).unwrap());
            let run = folder.make_run(1).unwrap();
            run.write_record(&written).unwrap();
            run.publish_outcome(&ended(), &published).unwrap();
            run.merge_record();
            assert!(!is_merged(&run));
            assert_eq!(run.record().unwrap(), written);
        }
    }
}
