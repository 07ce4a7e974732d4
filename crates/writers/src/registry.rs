//! Agents' own lists of their processes: a file for each process, in a folder of the agent.
//!
//! The file of a process that is killed stays, and its pid may be given to another process. So a file counts only while
//! the kernel knows a process of this user with that pid and that start; any other file is stale.

use crate::processes::{self, describe};
use crate::{ConversationOwner, Evidence, Variable};
use jiff::Timestamp;
use ostler_agents::Agent;
use ostler_agents::ownership::Registered;
use ostler_sys::process::Identity;
use ostler_sys::process_table;
use std::io;
use std::path::{Path, PathBuf};

/// File times and start times are each counted in steps of some milliseconds.
const CLOCK_MS: i64 = 50;

/// The process that wrote this record, if it lives. If the record has no start time, the file must be younger than the
/// process: a pid that was reused belongs to a process that started after the file was written.
fn process(record: &Registered, written: Option<Timestamp>) -> io::Result<Option<Identity>> {
    let living = process_table::of_this_user(record.pid)?;
    Ok(living.filter(|living| match record.start {
        Some(start) => living.start() == start,
        None => written.is_some_and(|written| {
            processes::started(living.start()).as_millisecond() <= written.as_millisecond() + CLOCK_MS
        }),
    }))
}

/// Every process of this agent that runs with this home, or only those of one conversation.
pub fn registered(agent: &dyn Agent, variable: Variable<'_>, at: Option<&str>) -> io::Result<Vec<ConversationOwner>> {
    let mut found = Vec::new();
    for file in files(agent, variable) {
        let Some((record, written)) = read(agent, &file) else {
            continue;
        };
        if at.is_some_and(|at| record.native_id.as_deref() != Some(at)) {
            continue;
        }
        let Some(process) = process(&record, written)?.and_then(|living| describe(&living)) else {
            continue;
        };
        let mut owner = ConversationOwner::new(agent.name(), record.native_id, Evidence::Registry, process);
        // The folder of the conversation, even if the process has changed its folder since.
        owner.cwd = record.cwd.or(owner.cwd);
        owner.status = record.status;
        found.push(owner);
    }
    Ok(found)
}

/// Files of processes that have exited, which the agent itself does not remove.
pub fn stale(agent: &dyn Agent, variable: Variable<'_>) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for file in files(agent, variable) {
        if let Some((record, written)) = read(agent, &file)
            && process(&record, written)?.is_none()
        {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}

fn files(agent: &dyn Agent, variable: Variable<'_>) -> Vec<PathBuf> {
    let Some(folder) = agent.registry(variable) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

/// `None` for a file that is being written or removed just now, or that is not a record.
fn read(agent: &dyn Agent, file: &Path) -> Option<(Registered, Option<Timestamp>)> {
    let record = agent.registered(&std::fs::read(file).ok()?)?;
    let written = std::fs::metadata(file).and_then(|stat| stat.modified()).ok();
    Some((record, written.and_then(|time| Timestamp::try_from(time).ok())))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    struct Child(std::process::Child);

    impl Child {
        fn start() -> (Child, Identity) {
            let _alone = crate::alone();
            let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
            let who = Identity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
            (Child(child), who)
        }
    }

    impl Drop for Child {
        fn drop(&mut self) {
            // If the process has already exited, both calls only report that.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn home_with(records: &[Value]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join(".claude/sessions");
        std::fs::create_dir_all(&sessions).unwrap();
        for (number, record) in records.iter().enumerate() {
            std::fs::write(sessions.join(format!("{number}.json")), record.to_string()).unwrap();
        }
        home
    }

    fn claude() -> &'static dyn Agent {
        ostler_agents::find("claude").unwrap()
    }

    fn all(variable: Variable<'_>) -> io::Result<Vec<ConversationOwner>> {
        registered(claude(), variable, None)
    }

    fn all_stale(variable: Variable<'_>) -> io::Result<Vec<PathBuf>> {
        stale(claude(), variable)
    }

    fn look<T>(home: &tempfile::TempDir, ask: impl Fn(Variable<'_>) -> T) -> T {
        let path = home.path().to_string_lossy().into_owned();
        ask(&|name| (name == "HOME").then(|| path.clone()))
    }

    #[test]
    fn a_record_counts_only_while_the_kernel_confirms_number_and_start() {
        let (child, who) = Child::start();
        let start = who.start();
        let home = home_with(&[
            json!({"pid": who.pid(), "procStart": start.to_string(), "sessionId": "right", "cwd": "/w", "new": 1}),
            json!({"pid": who.pid(), "procStart": start + 1, "sessionId": "another start"}),
            json!({"pid": 1, "procStart": "0", "sessionId": "not of this user"}),
            json!({"pid": -1, "sessionId": "everyone"}),
            json!("no record at all"),
        ]);
        let found = look(&home, all).unwrap();
        let ids: Vec<_> = found.iter().map(|owner| (owner.native_id.as_deref(), owner.pid)).collect();
        assert_eq!(ids, [(Some("right"), who.pid())]);
        assert_eq!(found[0].cwd.as_deref(), Some("/w"));
        assert_eq!(look(&home, all_stale).unwrap().len(), 3);
        drop(child);
        assert_eq!(look(&home, all).unwrap(), []);
        assert_eq!(look(&home, all_stale).unwrap().len(), 4);
    }

    #[test]
    fn without_a_start_time_a_file_older_than_the_process_is_not_its_own() {
        let (_child, who) = Child::start();
        let home = home_with(&[json!({"pid": who.pid(), "sessionId": "s"})]);
        assert_eq!(look(&home, all).unwrap().len(), 1);
        let file = home.path().join(".claude/sessions/0.json");
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        std::fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(look(&home, all).unwrap(), []);
    }
}
